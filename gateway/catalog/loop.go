package catalog

import (
	"context"
	"errors"
	"sync"
	"time"

	"mcp-gateway/internal/backoff"
	"mcp-gateway/upstream"
)

// pause is the least time between a listing and the next one of the same upstream, so that a server which changes its tools, or loses
// its session, whenever it is asked is not asked without end. The listing after a first one, and one that a call
// has asked for, need not wait for it.
const pause = time.Second

// retry paces a listing that failed on a live session.
func retry() *backoff.Backoff {
	return &backoff.Backoff{Min: 500 * time.Millisecond, Max: 30 * time.Second}
}

// A source is one upstream's place in the catalog. Attempts at listing are counted from 1; none runs beside another.
type source struct {
	Source
	settled chan struct{} // closed when it has listed or failed once
	wish    chan struct{} // capacity 1: wished has grown
	once    sync.Once

	// Catalog.mu guards all below.
	next     chan struct{} // closed and replaced whenever an attempt or a state has ended
	state    upstream.State
	session  uint64 // of state
	err      error
	failed   bool     // the last attempt on the live session
	listing  *listing // the published one
	borrowed bool     // listing is of the engine before, and this one has not listed yet
	last     Report

	begun, ended uint64    // the last attempt that has
	listed       time.Time // when an attempt has last succeeded
	wished       uint64    // the attempt that was asked for
	asked        time.Time // when a call has
	changes      uint64    // the server's notices so far
	due          uint64    // the attempt that follows the last notice
	since        time.Time // of the first notice that no attempt which has ended follows
	during       time.Time // of the first notice since the running attempt began
	adopted      bool      // from the catalog before, which has been told of changes so far
	owed         bool      // a list was served between a notice and the end of the attempt due
}

func newSource(s Source) *source {
	return &source{Source: s, settled: make(chan struct{}), wish: make(chan struct{}, 1), next: make(chan struct{}),
		state: upstream.Connecting}
}

func (s *source) settle() { s.once.Do(func() { close(s.settled) }) }

// ask wants another attempt, at once. Catalog.mu must be held.
func (s *source) ask() {
	s.wished = s.begun + 1
	select {
	case s.wish <- struct{}{}:
	default:
	}
}

func (s *source) wake() {
	close(s.next)
	s.next = make(chan struct{})
}

// onTheWay reports whether a listing can still come of what runs.
func (s *source) onTheWay() bool {
	return !s.failed && (s.state == upstream.Connecting || s.state == upstream.Live)
}

// A loop is the life of one upstream in the catalog. It alone changes what its source holds, but for what calls ask for.
type loop struct {
	c *Catalog
	s *source

	running *attempt // nil while none runs
	tried   uint64   // the session of the last attempt; 0 has to be tried anew
	pace    *backoff.Backoff
	// When the next attempt may begin: for a new session or a notice, after a failure.
	earliest, again time.Time
}

// An attempt is one listing on its way.
type attempt struct {
	number   uint64 // among those of all catalogs
	session  uint64
	revision string
	follows  bool // a notice of the server's
	cancel   context.CancelFunc
	done     chan struct{}

	listing *listing // after done, as err
	err     error
}

var errSessionEnded = errors.New("the session ended while its tools were listed")

func (c *Catalog) follow(s *source) {
	l := &loop{c: c, s: s, pace: retry()}
	status, _ := s.Upstream.Status()
	c.mu.Lock()
	switch {
	case !s.adopted:
		// The first listing follows these; before it there was nothing that they could have changed.
		s.changes = status.Changes.Tools
	case s.listing != nil && !s.borrowed && !s.failed && s.state == upstream.Live:
		l.tried = s.session
	}
	c.mu.Unlock()
	for c.ctx.Err() == nil {
		l.step()
	}
	if l.running != nil {
		<-l.running.done
	}
}

// step takes in what has happened, begins what is due, and waits for the next thing to happen.
func (l *loop) step() {
	status, changed := l.s.Upstream.Status()
	l.note(status)
	var done <-chan struct{}
	var wake <-chan time.Time
	if l.running == nil && status.State == upstream.Live {
		if at, due := l.at(status); due && !at.After(time.Now()) {
			l.begin(status)
		} else if due {
			wake = time.After(time.Until(at))
		}
	}
	if l.running != nil {
		done = l.running.done
	}
	select {
	case <-changed:
	case <-l.s.wish:
	case <-wake:
	case <-done:
		l.finish()
	case <-l.c.ctx.Done():
	}
}

// at is when the next attempt may begin on the live session, if any is due.
func (l *loop) at(status upstream.Status) (at time.Time, due bool) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	switch {
	case l.s.wished > l.s.begun:
		return time.Time{}, true
	case l.s.due > l.s.begun, l.tried != status.Session:
		return l.earliest, true
	case l.s.failed:
		return l.again, true
	}
	return l.s.listed.Add(l.s.Poll), l.s.Poll > 0
}

// note takes in a status. What has given up for good contributes nothing any more, and no listing of a session that has ended will.
func (l *loop) note(status upstream.Status) {
	c, s := l.c, l.s
	if a := l.running; a != nil && (status.State != upstream.Live || status.Session != a.session) {
		a.cancel()
	}
	c.mu.Lock()
	if status.Changes.Tools != s.changes {
		s.changes = status.Changes.Tools
		l.notice()
	}
	same := s.state == status.State && s.session == status.Session
	c.mu.Unlock()
	if same {
		return
	}
	if status.State != upstream.Live {
		l.tried = 0
	}
	c.take(s, func() (silent bool) {
		s.state, s.session, s.err = status.State, status.Session, status.Err
		s.failed = false
		if gone(status.State) {
			s.listing = nil
		}
		return false
	})
	if gone(status.State) || status.State == upstream.Backoff {
		s.settle()
	}
}

// gone reports whether an upstream of that state contributes nothing any more.
func gone(state upstream.State) bool {
	switch state {
	case upstream.Verdict, upstream.Held, upstream.Closing, upstream.Closed:
		return true
	}
	return false
}

// notice marks the listing as old before it tells the listeners, so that none of them is served what it was told is old. Catalog.mu
// must be held.
func (l *loop) notice() {
	s, now := l.s, time.Now()
	if s.due <= s.ended {
		s.since = now
	}
	if s.due <= s.begun {
		s.during = now
	}
	s.due = s.begun + 1
	s.owed = s.owed || !l.c.served // nobody is told of it here
	if l.c.cfg.Policy.AllowsSome("", s.ID) {
		l.c.notify()
	}
}

func (l *loop) begin(status upstream.Status) {
	c, s := l.c, l.s
	ctx, cancel := context.WithTimeout(c.ctx, s.Timeout)
	a := &attempt{session: status.Session, revision: status.Revision, cancel: cancel, done: make(chan struct{})}
	c.mu.Lock()
	s.begun++
	a.number = c.hub.attempts.Add(1)
	a.follows = s.due == s.begun
	before := s.listing
	c.mu.Unlock()
	l.running = a
	go func() {
		defer close(a.done)
		a.listing, a.err = c.drain(ctx, s, before)
	}()
}

// finish publishes what the attempt has listed, if its session is still the live one.
func (l *loop) finish() {
	c, s, a := l.c, l.s, l.running
	l.running = nil
	a.cancel()
	if c.ctx.Err() != nil {
		return
	}
	now, _ := s.Upstream.Status()
	if now.State != upstream.Live || now.Session != a.session {
		a.err = errSessionEnded
	}
	l.tried = a.session
	switch {
	case a.err == nil:
		l.pace.Reset()
	case crowded(a.err):
		l.tried = 0
		c.cfg.Log.Debug("the calls on an upstream leave no place to list its tools; trying again", "upstream", s.ID)
	case !errors.Is(a.err, errSessionEnded):
		l.again = time.Now().Add(l.pace.Next())
		c.cfg.Log.Warn("could not list the tools of an upstream; trying again", "upstream", s.ID, "error", a.err)
	}
	l.earliest = time.Now().Add(pause)
	c.take(s, func() (silent bool) {
		if a.err == nil && (s.listing == nil || s.borrowed) {
			l.earliest = time.Now()
		}
		return c.publish(s, a)
	})
	if !crowded(a.err) {
		s.settle()
	}
}

// crowded reports whether a listing did not fit beside the calls on its upstream, which says nothing of the server: the next attempt
// follows soon.
func crowded(err error) bool {
	e, ok := errors.AsType[*upstream.Error](err)
	return ok && e.Cause == upstream.QueueFull
}

// publish takes in what an attempt has ended with. It is silent where all that were served a list since the server's notice had this
// one, which they were told of then. Catalog.mu must be held.
func (c *Catalog) publish(s *source, a *attempt) (silent bool) {
	s.ended = s.begun
	if s.due > s.ended {
		s.since = s.during
	}
	if errors.Is(a.err, errSessionEnded) || crowded(a.err) {
		return false
	}
	if a.err != nil {
		s.failed, s.err = true, a.err
		return false
	}
	silent = a.follows && !s.owed
	s.failed, s.err, s.owed, s.listed = false, nil, false, time.Now()
	if s.listing == nil || s.borrowed || s.listing.attempt < a.number {
		c.logLeftOut(s, a.listing)
		a.listing.revision, a.listing.attempt = a.revision, a.number
		s.listing, s.borrowed = a.listing, false
	}
	return silent
}
