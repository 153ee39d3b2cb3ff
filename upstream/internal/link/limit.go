package link

import (
	"container/list"
	"context"
	"sync"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
)

// A Limit bounds the calls on one upstream, so that a server that is slow gathers only as many as are allowed, and what does
// not fit is refused before it is sent. Places are given in the order in which they were asked for. It is safe for concurrent
// use.
type Limit struct {
	concurrency, queue int
	status             func() (upstream.Status, <-chan struct{})

	mu       sync.Mutex // guards the rest
	inFlight int
	listing  bool      // the place that is kept for lists is taken
	waiting  list.List // of chan struct{}, each closed when its call is given a place
	shed     uint64
	quiesced chan struct{} // closed when no call waits any more
}

// NewLimit allows concurrency calls in flight, or any number where that is 0, and beside them queue that wait. status is that
// of the upstream's link: a call does not wait for an upstream that has been given up or closed.
func NewLimit(concurrency, queue int, status func() (upstream.Status, <-chan struct{})) *Limit {
	return &Limit{concurrency: concurrency, queue: queue, status: status, quiesced: make(chan struct{})}
}

// Acquire takes a place for one call of the method, and waits for it within ctx. Release gives it back. An error is an
// *upstream.Error of a call that was not sent. One place beside the others is kept for tools/list: what a client calls
// must not hide what it could call.
func (l *Limit) Acquire(ctx context.Context, method string) error {
	l.mu.Lock()
	if method == mcp.MethodToolsList && !l.listing {
		l.listing = true
		l.mu.Unlock()
		return nil
	}
	if l.concurrency <= 0 || l.inFlight < l.concurrency {
		l.inFlight++
		l.mu.Unlock()
		return nil
	}
	if l.waiting.Len() >= l.queue {
		l.shed++
		l.mu.Unlock()
		return &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.QueueFull}
	}
	given := make(chan struct{})
	place := l.waiting.PushBack(given)
	l.mu.Unlock()
	err := l.wait(ctx, given)
	if err != nil {
		l.leave(place, given)
	}
	return err
}

// wait returns once the place is given, or there is a reason not to wait for it.
func (l *Limit) wait(ctx context.Context, given <-chan struct{}) error {
	for {
		status, changed := l.status()
		switch status.State {
		case upstream.Verdict, upstream.Held, upstream.Closing, upstream.Closed:
			return unavailable(status)
		}
		select {
		case <-given:
			return nil
		case <-ctx.Done():
			return upstream.Ended(ctx, false, context.Cause(ctx))
		case <-l.quiesced:
			return &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.ClosedByGateway}
		case <-changed:
		}
	}
}

// leave takes a call out of the queue that does not wait any longer. A place that it was given at the same moment goes on.
func (l *Limit) leave(place *list.Element, given <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-given:
		l.next()
	default:
		l.waiting.Remove(place)
	}
}

// Release gives the place of a call of the method back.
func (l *Limit) Release(method string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if method == mcp.MethodToolsList && l.listing {
		l.listing = false // though another list may have had it: then that one's place is this one's
		return
	}
	l.next()
}

// next hands a place to the call that has waited longest, or takes it back. mu is held.
func (l *Limit) next() {
	first := l.waiting.Front()
	if first == nil {
		l.inFlight--
		return
	}
	close(l.waiting.Remove(first).(chan struct{}))
}

// Quiesce ends the calls that wait, as closed by the gateway, and lets no other wait from here on. Those that have a place
// keep it. It may be called again.
func (l *Limit) Quiesce() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.quiesced:
	default:
		close(l.quiesced)
	}
}

// Load is what the limit holds now.
func (l *Limit) Load() upstream.Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	load := upstream.Load{InFlight: l.inFlight, Waiting: l.waiting.Len(), Shed: l.shed}
	if l.listing {
		load.InFlight++
	}
	return load
}
