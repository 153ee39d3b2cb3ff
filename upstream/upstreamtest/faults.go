package upstreamtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// faults are what a server can do to a call, by the name of the tool. Each has run the call unless it proves otherwise.
var faults = map[string]fault{
	"answers":    {0, func(r *Request, _ bool) { r.Result("") }},
	"errs":       {0, func(r *Request, _ bool) { r.Error(`{"code":-32603,"message":"no"}`) }},
	"dies":       {0, func(r *Request, _ bool) { r.Die() }},
	"forgets":    {0, func(r *Request, _ bool) { r.lose() }},
	"announces":  {0, func(r *Request, _ bool) { r.Announce(mcp.NotificationToolsChanged); r.Result("") }},
	"is late":    {0, func(r *Request, _ bool) { <-r.Canceled; r.Result("") }},
	"is useless": {0, func(r *Request, _ bool) { r.Send(`{"jsonrpc":"2.0","id":` + string(r.Message.ID) + `}`) }},
	"repeats":    {0, func(r *Request, _ bool) { r.preface(); r.Result(""); r.Result("") }},
	"talks": {0, func(r *Request, alone bool) {
		r.Send("Server started")
		if !alone {
			r.Result("")
		}
	}},
	"breaks off": {Parts, func(r *Request, _ bool) {
		r.preface()
		r.Part(`{"jsonrpc":"2.0","res`)
		r.Die()
	}},
	"breaks off at once": {Parts, func(r *Request, _ bool) { r.Part(`{"jsonr`); r.Die() }},
	"half-closes":        {Halves, func(r *Request, _ bool) { r.Sender.(HalfCloser).HalfClose() }},
	"refuses 401":        refuses(http.StatusUnauthorized),
	"refuses 403":        refuses(http.StatusForbidden),
	"refuses 400":        refuses(http.StatusBadRequest),
	"refuses 405":        refuses(http.StatusMethodNotAllowed),
	"refuses 409":        refuses(http.StatusConflict),
	"refuses 413":        refuses(http.StatusRequestEntityTooLarge),
	"refuses 429":        refuses(http.StatusTooManyRequests),
	"refuses 500":        refuses(http.StatusInternalServerError),
	"refuses 502":        refuses(http.StatusBadGateway),
	"refuses 503":        refuses(http.StatusServiceUnavailable),
	"redirects":          refuses(http.StatusTemporaryRedirect),
}

type fault struct {
	needs Feature
	play  func(r *Request, alone bool)
}

// refuses answers with the status where that is possible, else it dies.
func refuses(status int) fault {
	return fault{0, func(r *Request, _ bool) {
		if f, ok := r.Sender.(Refuser); !ok || !f.Refuse(status) {
			r.Die()
		}
	}}
}

// faulty is a server that does to each call what its name says, and answers it where it comes again after the once in its name.
// heard gets the mark of each call that is to be canceled.
func faulty(tr Transport, in *received, heard func(mark int64)) Handler {
	return func(r *Request) {
		name, first := strings.CutSuffix(r.Name(), " once")
		raw, _ := r.Message.Params.Value("mark")
		mark, _ := wire.Int(raw)
		fault, ok := faults[name]
		if !ok || first && in.of(mark).came > 1 { // the engine's own, such as a ping
			fault = faults["answers"]
		}
		if name == "is late" {
			heard(mark)
		}
		fault.play(r, tr.Alone)
	}
}

// once makes one call with the fault and judges it.
func once(t *testing.T, tr Transport, u upstream.Upstream, in *received, waits *sync.Map, name string, canceled bool) {
	t.Helper()
	Await(t, u, upstream.Live)
	mark := marks.Add(1)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if strings.HasPrefix(name, "is late") {
		waits.Store(mark, cancel)
	}
	call := callMarked(ctx, u, name, mark, `"arguments":{}`, nil)
	if canceled {
		cancel(context.Canceled)
	}
	in.judge(mark, name, <-call)
}

// stop is what a late server's call is given up by.
func stop(waits *sync.Map) func(mark int64) {
	return func(mark int64) {
		if cancel, ok := waits.LoadAndDelete(mark); ok {
			cancel.(context.CancelCauseFunc)(context.DeadlineExceeded)
		}
	}
}

// Under every failure a call arrives at most once but for the proofs, and what is said of it is true.
func testNothingIsSentTwice(t *testing.T, tr Transport) {
	in, waits := newReceived(t), new(sync.Map)
	u := startOn(t, tr, in, faulty(tr, in, stop(waits)))
	for name, fault := range faults {
		if tr.Lacks&fault.needs != 0 {
			continue
		}
		for _, name := range []string{name, name + " once", "answers"} {
			once(t, tr, u, in, waits, name, false)
		}
	}
}

// The same with several calls at once, any of which may be given up at any time.
func testRandomFaults(t *testing.T, tr Transport) {
	var names []string
	for name, fault := range faults {
		if tr.Lacks&fault.needs == 0 {
			names = append(names, name)
		}
	}
	rounds := 120
	if tr.Costly {
		rounds = 12
	}
	in, waits := newReceived(t), new(sync.Map)
	u := startOn(t, tr, in, faulty(tr, in, stop(waits)))
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range rounds {
				name := "answers"
				if rand.IntN(3) == 0 {
					name = names[rand.IntN(len(names))]
				}
				once(t, tr, u, in, waits, name, rand.IntN(8) == 0)
			}
		})
	}
	callers.Wait()
}

// A server that loses its session with every third call loses that call at most, and no other. What it proved not to have run
// may be called again.
func testEveryThirdCall(t *testing.T, tr Transport) {
	var n int
	var mu sync.Mutex
	in := newReceived(t)
	u := startOn(t, tr, in, func(r *Request) {
		mu.Lock()
		n++
		third := n%3 == 0
		mu.Unlock()
		if third {
			r.lose()
			return
		}
		r.Result("")
	})
	for range 10 {
		for sent := 0; sent < 3; {
			Await(t, u, upstream.Live)
			d := <-call(t.Context(), u, "any", "{}")
			e, failed := errors.AsType[*upstream.Error](d.err)
			switch {
			case failed && e.Outcome == upstream.NotSent, failed && e.Outcome == upstream.ErrorResponse: // no session followed in time
				continue
			case failed && (e.Outcome != upstream.NoResponse || e.Cause != upstream.ConnectionLost):
				t.Fatalf("the call gave %v", e)
			case !failed:
				d.result(t, tr, "")
			}
			sent++
		}
	}
}
