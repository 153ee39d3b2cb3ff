package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/upstream"
)

// One attempt replaces a session that the server has ended, without a pause, and calls wait for it.
func TestAnEndedSessionIsReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newSession(), newSession()
		d := &dialer{script: []func(context.Context) (*session, error){works(first), func(context.Context) (*session, error) {
			<-time.After(time.Second)
			return second, nil
		}}}
		l, _ := start(t, d, func(c *Config[*session]) { c.Min, c.Max = time.Hour, time.Hour })
		defer closeLink(t, l)
		synctest.Wait()
		began := time.Now()
		l.Lost(first, &EndedError{errors.New("gone")})
		if status := wantState(t, l, upstream.Connecting); status.Err.Error() != "gone" {
			t.Errorf("status %+v", status)
		}
		for range 2 {
			s, err := l.Session(t.Context())
			if err != nil || s != second {
				t.Fatalf("session %p (%v), want %p", s, err, second)
			}
		}
		if took := time.Since(began); took != time.Second || d.attempts() != 2 {
			t.Errorf("it took %v and %d attempts", took, d.attempts())
		}
	})
}

// A renewal that fails is tried again with pauses, as any attempt.
func TestARenewalThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newSession()
		d := &dialer{script: []func(context.Context) (*session, error){works(first), fails(errors.New("down"))}}
		l, _ := start(t, d, func(c *Config[*session]) { c.Min, c.Max = time.Hour, time.Hour })
		defer closeLink(t, l)
		synctest.Wait()
		l.Lost(first, &EndedError{errors.New("gone")})
		_, err := l.Session(t.Context())
		wantCause(t, err, upstream.Reconnecting)
		<-time.After(time.Minute)
		if wantState(t, l, upstream.Backoff); d.attempts() != 2 {
			t.Errorf("%d attempts", d.attempts())
		}
	})
}

// Sessions that a server ends as soon as they have begun are no reason to shake hands without end.
func TestSessionsThatKeepEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := func(context.Context) (*session, error) {
			s := newSession()
			s.err = &EndedError{errors.New("gone")}
			close(s.done)
			return s, nil
		}
		d := &dialer{script: []func(context.Context) (*session, error){ends}}
		l, out := start(t, d, func(c *Config[*session]) { c.Min, c.Max = time.Hour, time.Hour })
		defer closeLink(t, l)
		<-time.After(time.Minute)
		if wantState(t, l, upstream.Backoff); d.attempts() != crashes || out.count("level=ERROR") != 1 {
			t.Errorf("%d attempts and %d lines at ERROR, want %d and one", d.attempts(), out.count("level=ERROR"), crashes)
		}
	})
}
