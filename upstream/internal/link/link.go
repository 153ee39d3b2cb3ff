// Package link keeps one upstream connected. It is the only owner of that upstream's session: it dials, waits with
// growing pauses after failures, replaces a session that ended, stops for good where trying again is no use, and
// closes. No attempt runs beside another, and none begins before the session before it is known to be gone.
//
// A [Link] knows nothing of revisions and transports: an engine gives it a Dial function, and asks it for the live
// session at each call ([Link.Session]). Start with [Config] and run.go, which is the owner's whole life.
package link

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mcp-gateway/internal/backoff"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

const (
	// connectWait bounds how long a call waits for an attempt, so that a slow start is told instead of felt.
	connectWait = 5 * time.Second
	// settled is the life of a session after which the next failure counts as a first one.
	settled = 30 * time.Second
	// crashes is how many sessions in a row may end before they settled until pauses are as long as allowed.
	crashes = 5
	// refusedMax replaces Max while the server refuses the gateway's credential: a person has to act first.
	refusedMax = 5 * time.Minute
)

// A Session is one connection of an engine to its server. Implementations are pointers.
type Session interface {
	// Done is closed once the session has ended by itself, never only because of Close.
	Done() <-chan struct{}
	// Err says why, after Done.
	Err() error
	// Close ends the session and waits. It may be called again. A *process.HeldError means that something still runs
	// and that a later Close tries again; any other error is only told.
	Close() error
}

// Info is what an attempt learned of the server.
type Info struct {
	Revision string
	Discover wire.Object // as server/discover tells it
}

// Config is what a Link is made of.
type Config[S Session] struct {
	ID string // of the upstream, for the log

	// Dial connects. It ends soon after ctx does, which is at the latest after StartTimeout. Before it returns an error it
	// has ended all that it started. Where that failed, it returns the session with the error, which then holds a
	// *process.HeldError, and the session's Close tries again. A *VerdictError or a *RefusedError in the error says more
	// than that it failed.
	Dial func(ctx context.Context) (S, Info, error)

	StartTimeout time.Duration
	Min, Max     time.Duration // of the pauses between attempts
	// AlwaysTry lets a call in backoff start an attempt at once and wait for it, where an attempt costs little.
	AlwaysTry bool
	// Changed gives a channel that is closed once the server may be shown another credential than the one that it has
	// refused, which is tried at once. Nil is never.
	Changed func() <-chan struct{}
	Log     *slog.Logger
}

// A Link keeps one upstream connected. It is safe for concurrent use.
type Link[S Session] struct {
	cfg     Config[S]
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	trying  context.Context // ends with ctx, or with Quiesce before it: no attempt outlives it
	settle  context.CancelFunc
	kick    chan struct{} // a call asks for the next attempt; sent under mu, only in backoff
	changes changes
	gone    chan struct{} // closed when run has returned

	// Only run touches these.
	pause     backoff.Backoff
	began     time.Time // the last attempt
	connected time.Time // the last session
	short     int       // sessions in a row that ended before they settled

	served atomic.Bool // the live session has answered a call

	mu       sync.Mutex // guards the rest
	started  bool
	status   upstream.Status
	changed  chan struct{} // closed at the next change of status
	session  S             // from its dial to the confirmed end of its teardown
	owned    bool          // session is set
	live     bool          // session may be used, if it has not ended since
	lost     chan error    // capacity 1: the first reason why session cannot be used
	renew    bool          // the session ended with an EndedError, and no attempt has begun since
	asked    bool          // that error's
	attempts uint64        // that have failed
	closing  *closing      // the attempt to close that runs or has succeeded
}

// A closing is one attempt to close, shared by all who ask for it.
type closing struct {
	done chan struct{}
	err  error // after done
}

// New only builds; Start begins.
func New[S Session](cfg Config[S]) *Link[S] {
	l := &Link[S]{
		cfg:     cfg,
		kick:    make(chan struct{}, 1),
		changes: changes{notice: make(chan struct{}, 1)},
		gone:    make(chan struct{}),
		changed: make(chan struct{}),
		pause:   backoff.Backoff{Min: cfg.Min, Max: cfg.Max},
		status:  upstream.Status{State: upstream.Connecting, Since: time.Now()},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.trying, l.settle = context.WithCancel(l.ctx)
	return l
}

// Start begins the first attempt and returns at once. After Close or Quiesce, or a second time, it does nothing.
func (l *Link[S]) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started || l.trying.Err() != nil {
		return
	}
	l.started = true
	go l.run()
}

// Refuse is for a link that must not start: it is held from here on, for the reason that err gives. It does nothing after Start.
func (l *Link[S]) Refuse(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started && l.closing == nil {
		l.started = true
		close(l.gone)
		l.set(upstream.Held, err)
	}
}

// Status is the state now, and a channel that is closed at the next change.
func (l *Link[S]) Status() (upstream.Status, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status, l.changed
}

// Served says that the live session has answered a call. It may be said for each.
func (l *Link[S]) Served() {
	if !l.served.Load() {
		l.served.Store(true)
	}
}

// Lost says that s cannot be used, and why. The live session is then ended and replaced, at once after an EndedError; any
// other has been already.
func (l *Link[S]) Lost(s S, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.live || any(l.session) != any(s) {
		return
	}
	l.lose(err)
}

// Settled waits until s is known to be gone or known to be held, at the longest until ctx ends, and gives the state then.
// A call that was lost with its session asks this before it answers, so that no text promises a reconnect that cannot be.
func (l *Link[S]) Settled(ctx context.Context, s S) upstream.State {
	for {
		l.mu.Lock()
		state, changed := l.status.State, l.changed
		ending := l.owned && any(l.session) == any(s) && state != upstream.Held
		l.mu.Unlock()
		if !ending {
			return state
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state
		}
	}
}

// Quiesce begins no attempt any more and ends one that runs, which Close waits for. The calls that wait for a session end as they
// do at Close. A live session goes on; once it is lost, none follows it. It returns at once, and may be called again.
func (l *Link[S]) Quiesce() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trying.Err() != nil {
		return
	}
	l.settle() // within mu, so that run sees both this state and the end of trying or neither
	switch l.status.State {
	case upstream.Connecting, upstream.Backoff:
		l.set(upstream.Closing, l.status.Err)
	}
}

// Close ends the link: a running attempt, the session, and all that an earlier one left. It waits for that. Callers at the same
// time share one attempt, and one that failed is tried again by the next Close. The error holds the *process.HeldError of
// what still runs.
func (l *Link[S]) Close() error {
	l.mu.Lock()
	if c := l.closing; c != nil {
		l.mu.Unlock()
		<-c.done
		return c.err
	}
	c := &closing{done: make(chan struct{})}
	l.closing = c
	l.live = false
	l.cancel() // within mu, so that run sees both this state and the end of ctx or neither
	l.set(upstream.Closing, l.status.Err)
	started := l.started
	l.mu.Unlock()

	if started {
		<-l.gone
	}
	c.err = l.endSession()
	l.mu.Lock()
	if c.err != nil {
		l.closing = nil
	} else {
		l.set(upstream.Closed, nil)
	}
	l.mu.Unlock()
	close(c.done)
	return c.err
}
