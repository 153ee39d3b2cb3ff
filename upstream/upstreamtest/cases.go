package upstreamtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

func testStatus(t *testing.T, tr Transport) {
	u := start(t, tr, func(*Request) {})
	status, changed := u.Status()
	if status.Session != 1 || status.Revision != tr.Revision || !status.Discover.Has("capabilities") || status.Err != nil || status.Since.IsZero() {
		t.Errorf("a live upstream says %+v", status)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	<-changed
	if status, _ := u.Status(); status.State != upstream.Closed {
		t.Errorf("a closed upstream says %s", status.State)
	}
}

// All calls are in flight at once, and answered in the reverse order.
func testConcurrentCalls(t *testing.T, tr Transport) {
	const n = 16
	var mu sync.Mutex
	answers := make(map[string]chan struct{}, n)
	arrived := make(chan struct{}, n)
	for i := range n {
		answers[fmt.Sprint("tool", i)] = make(chan struct{})
	}
	u := start(t, tr, func(r *Request) {
		arrived <- struct{}{}
		mu.Lock()
		answer := answers[r.Name()]
		mu.Unlock()
		r.Wait(answer)
		r.Result(`"called":"` + r.Name() + `"`)
	})
	var calls []<-chan done
	for i := range n {
		calls = append(calls, call(t.Context(), u, fmt.Sprint("tool", i), "{}"))
	}
	for range n {
		<-arrived
	}
	for i := n - 1; i >= 0; i-- {
		name := fmt.Sprint("tool", i)
		close(answers[name])
		(<-calls[i]).result(t, tr, `"called":"`+name+`"`)
	}
}

func testBytesPassWhole(t *testing.T, tr Transport) {
	const arguments = `{"z":1,"a":12345678901234567890,"n":null,"f":1.10e+2,"s":"\u00e9\/\ud83d","e":{},"é":[ ]}`
	const members = `"content":[{"type":"text","text":"\ud83d cut","x":1.0}],"structuredContent":null,"unknown":{"b":2,"a":1,"a":3},"n":98765432109876543210,"_meta":{"example.com/k":[1, 2]}`
	u := start(t, tr, func(r *Request) {
		if got, _ := r.Message.Params.Value("arguments"); string(got) != arguments {
			t.Errorf("the server got %s, want %s", got, arguments)
		}
		r.Result(members)
	})
	(<-call(t.Context(), u, "any", arguments)).result(t, tr, members)
}

func testLargeMessages(t *testing.T, tr Transport) {
	long := `"` + strings.Repeat("0123456789abcdef", 2<<20/16) + `"`
	u := start(t, tr, func(r *Request) {
		arguments, _ := r.Message.Params.Object("arguments")
		got, _ := arguments.Value("long")
		r.Result(`"long":` + string(got))
	})
	(<-call(t.Context(), u, "any", `{"long":`+long+`}`)).result(t, tr, `"long":`+long)
}

func testServerError(t *testing.T, tr Transport) {
	const text = `{"hint":[1,{}],"code":4711,"message":"no \u00e9","data":{"n":12345678901234567890},"extra":null}`
	u := start(t, tr, func(r *Request) { r.Error(text) })
	d := <-call(t.Context(), u, "any", "{}")
	stated, ok := errors.AsType[*wire.Error](d.err)
	if !ok {
		t.Fatalf("the call gave %v, want the server's error", d.err)
	}
	if got := string(stated.AppendJSON(nil)); got != text {
		t.Errorf("error is %s, want %s", got, text)
	}
}

func testEndedBeforeTheSend(t *testing.T, tr Transport) {
	u := start(t, tr, func(*Request) { t.Error("the server got the call") })
	for cause, want := range map[error]upstream.Cause{
		context.DeadlineExceeded: upstream.DeadlineUnsent,
		context.Canceled:         upstream.CanceledUnsent,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		(<-call(ctx, u, "any", "{}")).failed(t, upstream.NotSent, want)
	}
}

// The server hears of the end, and the call beside it does not.
func testEndedWhileItRuns(t *testing.T, tr Transport) {
	arrived, heard, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	u := start(t, tr, func(r *Request) {
		arrived <- struct{}{}
		if r.Name() == "other" {
			r.Wait(release)
			r.Result("")
			return
		}
		<-r.Canceled
		heard <- struct{}{}
	})
	other := call(t.Context(), u, "other", "{}")
	<-arrived
	for cause, want := range map[error]upstream.Cause{
		context.DeadlineExceeded: upstream.Deadline,
		context.Canceled:         upstream.Canceled,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := call(ctx, u, "ended", "{}")
		<-arrived
		cancel(cause)
		(<-ended).failed(t, upstream.NoResponse, want)
		<-heard
	}
	close(release)
	(<-other).result(t, tr, "")
}

// A reply with the right id that is no response fails its call alone.
func testBadReplies(t *testing.T, tr Transport) {
	bad := map[string]string{
		"nothing in it":    `{"jsonrpc":"2.0","id":%s}`,
		"result no object": `{"jsonrpc":"2.0","id":%s,"result":[1]}`,
		"error no object":  `{"jsonrpc":"2.0","id":%s,"error":"bad"}`,
		"both":             `{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"m"}}`,
	}
	arrived, release := make(chan struct{}), make(chan struct{})
	u := start(t, tr, func(r *Request) {
		if format, ok := bad[r.Name()]; ok {
			r.Send(fmt.Sprintf(format, r.Message.ID))
			return
		}
		close(arrived)
		r.Wait(release)
		r.Result("")
	})
	other := call(t.Context(), u, "other", "{}")
	<-arrived
	for name := range bad {
		t.Run(name, func(t *testing.T) {
			(<-call(t.Context(), u, name, "{}")).failed(t, upstream.NoResponse, upstream.Unusable)
		})
	}
	close(release)
	(<-other).result(t, tr, "")
}

func testUnknownID(t *testing.T, tr Transport) {
	u := start(t, tr, func(r *Request) {
		r.Send(`{"jsonrpc":"2.0","id":987654321,"result":{"wrong":1}}`)
		r.Send(`{"jsonrpc":"2.0","id":"` + string(r.Message.ID) + `","result":{"wrong":2}}`)
		r.Send(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"wrong"}}`)
		r.Result(`"right":1`)
	})
	(<-call(t.Context(), u, "any", "{}")).result(t, tr, `"right":1`)
}

// A call that the server got and never answered may have run. The upstream comes back by itself, and what was not sent
// meanwhile may be repeated.
func testServerDies(t *testing.T, tr Transport) {
	u := start(t, tr, func(r *Request) {
		if r.Name() == "fatal" {
			r.Die()
			return
		}
		r.Result("")
	})
	(<-call(t.Context(), u, "fatal", "{}")).failed(t, upstream.NoResponse, upstream.ConnectionLost)
	for {
		Await(t, u, upstream.Live)
		d := <-call(t.Context(), u, "any", "{}")
		if e, ok := errors.AsType[*upstream.Error](d.err); ok && e.Outcome == upstream.NotSent {
			continue
		}
		d.result(t, tr, "")
		return
	}
}

func testClose(t *testing.T, tr Transport) {
	u := start(t, tr, func(*Request) { t.Error("the server got the call") })
	var closing sync.WaitGroup
	for range 2 {
		closing.Go(func() {
			if err := u.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	closing.Wait()
	if err := u.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	(<-call(t.Context(), u, "any", "{}")).failed(t, upstream.NotSent, upstream.ClosedByGateway)
}

func testCloseWhileCallsRun(t *testing.T, tr Transport) {
	arrived := make(chan struct{})
	u := start(t, tr, func(r *Request) {
		arrived <- struct{}{}
		<-r.Canceled
	})
	calls := []<-chan done{call(t.Context(), u, "one", "{}"), call(t.Context(), u, "two", "{}")}
	<-arrived
	<-arrived
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		(<-c).failed(t, upstream.NoResponse, upstream.ClosedByGateway)
	}
}
