package upstreamtest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// marks numbers the calls of all tests, so that each is known by its own number wherever it arrives.
var marks atomic.Int64

// A received counts what a server got of each call. A call may arrive once, and once more after the server has proved that it
// did not run it.
type received struct {
	t     *testing.T
	mu    sync.Mutex // guards calls
	calls map[int64]*arrivals
}

type arrivals struct{ came, proofs int }

func newReceived(t *testing.T) *received { return &received{t: t, calls: make(map[int64]*arrivals)} }

// counted is h behind the count.
func (in *received) counted(h Handler) Handler {
	return func(r *Request) {
		raw, _ := r.Message.Params.Value("mark")
		mark, marked := wire.Int(raw)
		if r.Message.Method != mcp.MethodToolsCall || !marked {
			h(r)
			return
		}
		in.mu.Lock()
		call := in.calls[mark]
		if call == nil {
			call = new(arrivals)
			in.calls[mark] = call
		}
		call.came++
		in.mu.Unlock()
		h(&Request{Message: r.Message, Revision: r.Revision, Canceled: r.Canceled, Sender: prover{r.Sender, func() {
			in.mu.Lock()
			defer in.mu.Unlock()
			call.proofs++
		}}})
	}
}

// of is what came of one call.
func (in *received) of(mark int64) arrivals {
	in.mu.Lock()
	defer in.mu.Unlock()
	if call := in.calls[mark]; call != nil {
		return *call
	}
	return arrivals{}
}

// check fails the test for each call that came too often.
func (in *received) check() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for mark, call := range in.calls {
		if call.came > 1+min(call.proofs, 1) {
			in.t.Errorf("call %d arrived %d times, and the server proved %d times that it did not run", mark, call.came, call.proofs)
		}
	}
}

// judge holds what the engine said of a call against what arrived of it.
func (in *received) judge(mark int64, fault string, d done) {
	in.t.Helper()
	call := in.of(mark)
	ran := call.came - call.proofs
	e, failed := d.err.(*upstream.Error)
	switch {
	case ran > 1:
		in.t.Errorf("%s: the call ran %d times", fault, ran)
	case !failed && ran != 1: // a result, or the server's own error
		in.t.Errorf("%s: the call gave %v, and ran %d times", fault, d.err, ran)
	case failed && e.Outcome == upstream.NotSent && call.came != 0:
		in.t.Errorf("%s: %v, but it arrived %d times", fault, e, call.came)
	}
}

// A prover is a Sender that notes the proofs that a call did not run.
type prover struct {
	Sender
	proved func()
}

// Part is that of the Sender.
func (p prover) Part(text string) { p.Sender.(Parter).Part(text) }

// HalfClose is that of the Sender.
func (p prover) HalfClose() { p.Sender.(HalfCloser).HalfClose() }

// Announce is that of the Sender, or a message where it has none.
func (p prover) Announce(method string) {
	(&Request{Sender: p.Sender}).Announce(method)
}

// Forget is that of the Sender, or the death of the connection, which proves nothing.
func (p prover) Forget() {
	if f, ok := p.Sender.(Forgetter); ok {
		p.proved()
		f.Forget()
		return
	}
	p.Die()
}

// Refuse is that of the Sender, which may be none. What 401 refuses did not run.
func (p prover) Refuse(status int) bool {
	r, ok := p.Sender.(Refuser)
	if !ok || !r.Refuse(status) {
		return false
	}
	if status == http.StatusUnauthorized {
		p.proved()
	}
	return true
}

// A Credential is one whose source has another token whenever one was refused.
type Credential struct{ refreshed atomic.Uint64 }

// Sign sets the header of the newest token.
func (c *Credential) Sign(_ context.Context, r *http.Request) (uint64, error) {
	n := c.refreshed.Load()
	r.Header.Set("Authorization", fmt.Sprint("Bearer token", n))
	return n, nil
}

// Refresh makes a new token, once for all that were refused the one before.
// Changed is never closed: a refused token is asked about by Refresh.
func (*Credential) Changed() <-chan struct{} { return nil }

func (c *Credential) Refresh(_ context.Context, token uint64) error {
	c.refreshed.CompareAndSwap(token, token+1)
	return nil
}
