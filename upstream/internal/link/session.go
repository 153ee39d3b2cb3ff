package link

import (
	"context"
	"errors"
	"time"

	"mcp-gateway/upstream"
)

// Session is the live session, or an *upstream.Error with outcome not-sent that says why there is none. During an attempt
// it waits for it, within ctx and until upstream.WaitUntil says, or for 5 s where ctx does not. In backoff it does not wait, and starts the next attempt, at most every
// Config.Min; with Config.AlwaysTry it starts it at once and waits as for any attempt.
func (l *Link[S]) Session(ctx context.Context) (S, error) {
	var none S
	var expired <-chan time.Time
	waited, failures := false, uint64(0)
	for {
		s, status, changed, attempts, live := l.look()
		if live {
			select {
			case <-s.Done():
				l.Lost(s, s.Err())
				continue
			default:
				return s, nil
			}
		}
		switch {
		case status.State == upstream.Connecting:
		case status.State != upstream.Backoff:
			return none, unavailable(status)
		case waited && attempts != failures, !waited && !l.cfg.AlwaysTry:
			if !waited {
				l.hurry()
			}
			return none, unavailable(status)
		case !waited:
			l.hurry()
		}
		if !waited {
			until, ok := upstream.WaitUntil(ctx)
			if !ok {
				until = time.Now().Add(connectWait)
			}
			timer := time.NewTimer(time.Until(until))
			defer timer.Stop()
			waited, failures, expired = true, attempts, timer.C
		}
		select {
		case <-changed:
		case <-expired:
			return none, &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.ConnectingStill, Err: status.Err}
		case <-ctx.Done():
			return none, upstream.Ended(ctx, false, context.Cause(ctx))
		}
	}
}

// Judge gives the failure of a call on s the cause held where s was lost and what it left can hold the place of another session. It
// waits for that as Settled does, so that no text promises a reconnect that cannot be.
func (l *Link[S]) Judge(ctx context.Context, s S, err error) error {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return err
	}
	switch e.Cause {
	case upstream.ConnectionLost, upstream.WriteFailed, upstream.StdinFailed, upstream.Reconnecting:
		if l.Settled(ctx, s) == upstream.Held {
			e.Cause = upstream.HeldProcess
		}
	}
	return e
}

func (l *Link[S]) look() (s S, status upstream.Status, changed <-chan struct{}, attempts uint64, live bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.status, l.changed, l.attempts, l.live
}

// hurry asks for the next attempt.
func (l *Link[S]) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status.State != upstream.Backoff {
		return
	}
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// unavailable is the failure of a call that finds no session and does not wait for one.
func unavailable(status upstream.Status) error {
	e := &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.Reconnecting, Err: status.Err}
	switch status.State {
	case upstream.Verdict:
		e.Cause = upstream.GivenUp
	case upstream.Held:
		e.Cause = upstream.HeldProcess
	case upstream.Closing, upstream.Closed:
		e.Cause = upstream.ClosedByGateway
	case upstream.Backoff:
		// These two say more than that it is being tried again: what to look at.
		if dial, ok := errors.AsType[*upstream.Error](status.Err); ok && dial.Outcome == upstream.NotSent &&
			(dial.Cause == upstream.Unreachable || dial.Cause == upstream.NoCredential) {
			e.Cause = dial.Cause
		}
	}
	return e
}
