package front

import (
	"context"
	"sync"
)

// flights are the calls that run, and the requests that are served.
type flights struct {
	mu     sync.Mutex // guards all below
	all    map[*flight]struct{}
	byID   map[flightKey]*flight
	served int
	cause  error         // why the front closes; nil until then
	idle   chan struct{} // closed once closing and nothing is served any more
}

// A flight is one call that runs.
type flight struct {
	key    flightKey
	cancel context.CancelCauseFunc
}

// A flightKey names the call that a legacy client may cancel: an id means something within its session only. The zero
// key cannot be cancelled by anybody.
type flightKey struct {
	session sessionID
	id      string
}

func newFlights() *flights {
	return &flights{all: map[*flight]struct{}{}, byID: map[flightKey]*flight{}, idle: make(chan struct{})}
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

// begin gives a call the context that it runs in. A later call with the same key takes its place for cancelling.
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
		f.byID[key] = call
	}
	return ctx, call
}

// end must be called for every begin.
func (f *flights) end(call *flight) {
	f.mu.Lock()
	delete(f.all, call)
	if f.byID[call.key] == call {
		delete(f.byID, call.key)
	}
	f.mu.Unlock()
	call.cancel(nil)
}

// cancelOne ends the call of that key, if there is one.
func (f *flights) cancelOne(key flightKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if call := f.byID[key]; call != nil {
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
