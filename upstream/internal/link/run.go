package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mcp-gateway/internal/process"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// A VerdictError is what the server said that trying again cannot change, such as another revision. Dial returns it.
type VerdictError struct {
	Text string // what each side said and which setting would work, for a person
}

// Error gives the text.
func (e *VerdictError) Error() string { return e.Text }

// A RefusedError is a server that refuses the gateway's credential. Dial returns it, and pauses then grow up to five
// minutes.
type RefusedError struct {
	Err error
}

// Error gives what was refused.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap gives what was refused.
func (e *RefusedError) Unwrap() error { return e.Err }

// An EndedError is the end of a session as a server may bring it about at any time, which says nothing against another
// session: the next attempt begins at once, and calls wait for it. Where sessions keep ending so soon after they began,
// it is an end as any other.
type EndedError struct {
	Err error
	// Asked says that it is known from the answer to a call, so that it comes no more often than calls are made: such an end is
	// none of those that come too soon.
	Asked bool
}

// Error gives how it ended.
func (e *EndedError) Error() string { return e.Err.Error() }

// Unwrap gives how it ended.
func (e *EndedError) Unwrap() error { return e.Err }

// An outcome of dial.
type outcome uint8

const (
	connected outcome = iota
	failed
	stopped // nothing more is to be tried
)

// run owns the session until Close, or until there is nothing more to try.
func (l *Link[S]) run() {
	defer close(l.gone)
	for {
		switch l.dial() {
		case connected:
			l.serve()
			if !l.replace() {
				return
			}
		case stopped:
			return
		}
		if l.renewing() {
			continue
		}
		if !l.wait() {
			return
		}
	}
}

// dial makes one attempt.
func (l *Link[S]) dial() outcome {
	l.began = time.Now()
	l.mu.Lock()
	select {
	case <-l.kick: // what it asked for begins now
	default:
	}
	if l.trying.Err() != nil {
		l.mu.Unlock()
		return stopped
	}
	l.set(upstream.Connecting, l.status.Err)
	l.mu.Unlock()

	ctx, cancel := context.WithTimeout(l.trying, l.cfg.StartTimeout)
	defer cancel()
	s, info, err := l.cfg.Dial(ctx)
	if err != nil && ctx.Err() != nil && l.trying.Err() == nil {
		err = fmt.Errorf("not connected within start_timeout (%v): %w", l.cfg.StartTimeout, err)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		return l.fail(s, err)
	}
	l.session, l.owned = s, true
	if l.trying.Err() != nil {
		return stopped
	}
	l.live = true
	l.served.Store(false)
	l.lost = make(chan error, 1)
	l.pause.Max = l.cfg.Max
	l.status.Session++
	l.status.Revision, l.status.Discover = info.Revision, info.Discover
	l.set(upstream.Live, nil)
	l.connected = l.status.Since
	l.cfg.Log.Info("upstream connected", "upstream", l.cfg.ID, "revision", info.Revision, "took", time.Since(l.began))
	return connected
}

// fail judges an attempt that failed. mu is held.
func (l *Link[S]) fail(s S, err error) outcome {
	l.attempts++
	l.status.Failures = l.attempts
	_, held := errors.AsType[*process.HeldError](err)
	if held {
		l.session, l.owned = s, true
	}
	if held && l.ctx.Err() == nil {
		l.hold(err)
		return stopped
	}
	if l.trying.Err() != nil {
		return stopped
	}
	if _, verdict := errors.AsType[*VerdictError](err); verdict {
		l.set(upstream.Verdict, err)
		l.cfg.Log.Error("upstream given up: the server cannot be used as it is configured", "upstream", l.cfg.ID, "error", err)
		return stopped
	}
	l.pause.Max = l.cfg.Max
	if _, refused := errors.AsType[*RefusedError](err); refused {
		l.pause.Max = max(l.cfg.Max, refusedMax)
	}
	l.set(upstream.Backoff, err)
	l.cfg.Log.Warn("upstream not connected", "upstream", l.cfg.ID, "error", err)
	return failed
}

// hold ends the tries: nothing is started beside what may still run. mu is held.
func (l *Link[S]) hold(err error) {
	l.set(upstream.Held, err)
	l.cfg.Log.Error("upstream held: its process could not be ended, so no other is started", "upstream", l.cfg.ID, "error", err)
}

// serve waits for the end of the live session and counts its notices meanwhile.
func (l *Link[S]) serve() {
	s, lost := l.session, l.lost // both change only in run
	calm := time.NewTimer(quiet)
	calm.Stop()
	defer calm.Stop()
	for {
		now := time.Now()
		l.count(l.changes.due(now)) // first what the session before has left
		if next := l.changes.next(); !next.IsZero() {
			calm.Reset(next.Sub(now))
		}
		select {
		case <-s.Done():
			l.Lost(s, s.Err())
			return
		case <-lost:
			return
		case <-l.ctx.Done():
			return
		case <-l.changes.notice:
		case <-calm.C:
		}
	}
}

// lose takes the live session out of use. mu is held.
func (l *Link[S]) lose(err error) {
	if err == nil {
		err = errors.New("the session ended")
	}
	l.live = false
	l.lost <- err
	state := upstream.Backoff
	if end, ok := errors.AsType[*EndedError](err); ok {
		l.renew, l.asked, state = true, end.Asked, upstream.Connecting
	}
	if l.trying.Err() != nil {
		state = upstream.Closing
	}
	l.set(state, err)
	l.cfg.Log.Warn("upstream lost", "upstream", l.cfg.ID, "error", err)
}

// renewing reports whether the next attempt is to begin at once, once for each session.
func (l *Link[S]) renewing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	renew := l.renew
	l.renew = false
	if renew && l.short >= crashes && l.trying.Err() == nil {
		l.set(upstream.Backoff, l.status.Err)
		return false
	}
	return renew
}

// replace ends a session that was lost and judges how long it lived. It reports false where no attempt may follow.
func (l *Link[S]) replace() bool {
	if l.ctx.Err() != nil {
		return false // Close ends the session
	}
	lived := time.Since(l.connected)
	if err := l.endSession(); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.ctx.Err() == nil {
			l.hold(err)
		}
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case lived >= settled:
		l.short = 0
		l.pause.Reset()
	case l.renew && (l.asked || l.served.Load()):
		// A server may end a session that it has served, however often: the next one costs a handshake.
	default:
		if l.short++; l.short == crashes {
			l.cfg.Log.Error("upstream keeps ending soon after it started; it is tried only rarely from here on",
				"upstream", l.cfg.ID, "sessions", crashes, "interval", l.cfg.Max)
		}
	}
	l.status.Looping = l.short >= crashes
	return true
}

// endSession ends what the link owns and forgets it, unless something of it still runs.
func (l *Link[S]) endSession() error {
	l.mu.Lock()
	s, owned := l.session, l.owned
	l.mu.Unlock()
	if !owned {
		return nil
	}
	if err := s.Close(); err != nil {
		if _, held := errors.AsType[*process.HeldError](err); held {
			return err
		}
		l.cfg.Log.Debug("upstream's session ended with an error", "upstream", l.cfg.ID, "error", err)
	}
	var none S
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session, l.owned = none, false
	l.tell() // to those who wait for it to be gone
	return nil
}

// wait spaces out the attempts. It reports false once none is to follow.
func (l *Link[S]) wait() bool {
	looping := l.short >= crashes
	pause := l.pause.Next()
	if looping {
		pause = l.cfg.Max
	}
	until := time.Now().Add(pause)
	l.mu.Lock()
	if l.trying.Err() == nil {
		l.status.Until = until
		l.tell()
	}
	failure := l.status.Err
	l.mu.Unlock()
	var changed <-chan struct{}
	if l.cfg.Changed != nil && wantsCredential(failure) {
		changed = l.cfg.Changed()
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-changed:
			return true
		case <-l.trying.Done():
			return false
		case <-l.kick:
			if l.cfg.AlwaysTry {
				return true
			}
			if early := l.began.Add(l.cfg.Min); !looping && early.Before(until) {
				timer.Reset(max(0, time.Until(early)))
			}
		}
	}
}

// wantsCredential reports whether an attempt failed for want of a credential that the server takes.
func wantsCredential(failure error) bool {
	if _, refused := errors.AsType[*RefusedError](failure); refused {
		return true
	}
	e, ok := errors.AsType[*upstream.Error](failure)
	return ok && e.Cause == upstream.NoCredential
}

// set moves to a state and tells it. mu is held.
func (l *Link[S]) set(state upstream.State, err error) {
	l.status.State, l.status.Since, l.status.Until, l.status.Err = state, time.Now(), time.Time{}, err
	if state != upstream.Live {
		l.status.Revision, l.status.Discover = "", wire.Object{}
	}
	l.tell()
}

// tell wakes all who wait for a change. mu is held.
func (l *Link[S]) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}
