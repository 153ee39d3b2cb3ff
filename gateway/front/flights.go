package front

import (
	"context"
	"sync"
)

// flights are the calls that run, and the requests that are served.
type flights struct {
	mu     sync.Mutex // guards all below
	all    map[*flight]struct{}
	byKey  map[flightKey]*flight // the latest of each; older leads to the others
	served int
	cause  error         // why the front closes; nil until then
	idle   chan struct{} // closed once closing and nothing is served any more
}

// A flight is one call that runs.
type flight struct {
	key    flightKey
	cancel context.CancelCauseFunc
	// Others of the same key, which a client should not have: guarded by the mu of their flights.
	newer, older *flight
}

// A flightKey names the calls that a legacy client may cancel: an id means something within its session only. The zero
// key cannot be cancelled by anybody.
type flightKey struct {
	session sessionID
	id      string
}

func newFlights() *flights {
	return &flights{all: map[*flight]struct{}{}, byKey: map[flightKey]*flight{}, idle: make(chan struct{})}
}

// enter counts a request in, unless the front closes.
func (f *flights) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause != nil {
		return false
	}
	f.served++
	return true
}

func (f *flights) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.served--
	f.settle()
}

// settle must be called with mu held.
func (f *flights) settle() {
	if f.cause == nil || f.served > 0 {
		return
	}
	select {
	case <-f.idle:
	default:
		close(f.idle)
	}
}

// begin gives a call the context that it runs in. From then on it can be cancelled.
func (f *flights) begin(parent context.Context, key flightKey) (context.Context, *flight) {
	ctx, cancel := context.WithCancelCause(parent)
	call := &flight{key: key, cancel: cancel}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause != nil {
		cancel(f.cause)
	}
	f.all[call] = struct{}{}
	if key != (flightKey{}) {
		if call.older = f.byKey[key]; call.older != nil {
			call.older.newer = call
		}
		f.byKey[key] = call
	}
	return ctx, call
}

// end must be called for every begin.
func (f *flights) end(call *flight) {
	f.mu.Lock()
	delete(f.all, call)
	switch {
	case call.newer != nil:
		call.newer.older = call.older
	case call.older != nil:
		f.byKey[call.key] = call.older
	default:
		delete(f.byKey, call.key)
	}
	if call.older != nil {
		call.older.newer = call.newer
	}
	f.mu.Unlock()
	call.cancel(nil)
}

// cancelAll ends the calls of that key: where a client has given several one id, nobody can tell which it means.
func (f *flights) cancelAll(key flightKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for call := f.byKey[key]; call != nil; call = call.older {
		call.cancel(ErrCanceled)
	}
}

// cut ends all calls with cause. idle is closed once nothing is served any more.
func (f *flights) cut(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause == nil {
		f.cause = cause
	}
	for call := range f.all {
		call.cancel(cause)
	}
	f.settle()
}
