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
		l.Lost(first, &EndedError{Err: errors.New("gone")})
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
		l.Lost(first, &EndedError{Err: errors.New("gone")})
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
			s.err = &EndedError{Err: errors.New("gone")}
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

// A session that has answered calls may be ended by its server as often as it likes.
func TestServedSessionsThatEndAreNoCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){func(context.Context) (*session, error) { return newSession(), nil }}}
		l, out := start(t, d, func(c *Config[*session]) { c.Min, c.Max = time.Hour, time.Hour })
		defer closeLink(t, l)
		for range 3 * crashes {
			s, err := l.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			l.Served()
			l.Lost(s, &EndedError{Err: errors.New("gone")})
		}
		if n := out.count("level=ERROR"); n != 0 || d.attempts() < 3*crashes {
			t.Errorf("%d lines at ERROR, %d attempts", n, d.attempts())
		}
		// One that did not answer counts, and so does one that ended in another way.
		for range crashes - 1 {
			s, err := l.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			l.Lost(s, &EndedError{Err: errors.New("gone")})
		}
		s, err := l.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.Served()
		l.Lost(s, errors.New("crashed"))
		synctest.Wait()
		if n := out.count("level=ERROR"); n != 1 {
			t.Errorf("%d lines at ERROR, want 1", n)
		}
	})
}

// Ends that only calls can find come no more often than calls are made, and are no crashes.
func TestEndsThatCallsFoundAreNoCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){func(context.Context) (*session, error) { return newSession(), nil }}}
		l, out := start(t, d, func(c *Config[*session]) { c.Min, c.Max = time.Hour, time.Hour })
		defer closeLink(t, l)
		end := func(asked bool) {
			t.Helper()
			s, err := l.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			l.Lost(s, &EndedError{Err: errors.New("gone"), Asked: asked})
			synctest.Wait()
		}
		for range crashes - 1 {
			end(false)
		}
		for range 3 * crashes {
			end(true)
			if status := wantState(t, l, upstream.Live); status.Looping {
				t.Fatal("it counts as one whose sessions end as soon as they have begun")
			}
		}
		end(false)
		if status := wantState(t, l, upstream.Backoff); !status.Looping || out.count("level=ERROR") != 1 {
			t.Errorf("status %+v, %d lines at ERROR", status, out.count("level=ERROR"))
		}
	})
}

// A refused credential is not shown again before the pause is over, and another one at once.
func TestAChangedCredentialIsTriedAtOnce(t *testing.T) {
	for name, failure := range map[string]error{
		"refused": &RefusedError{errors.New("401")},
		"none":    &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.NoCredential},
		"other":   errors.New("down"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				changed := make(chan struct{})
				d := &dialer{script: []func(context.Context) (*session, error){fails(failure), works(newSession())}}
				l, _ := start(t, d, func(c *Config[*session]) {
					c.Min, c.Max = time.Hour, time.Hour
					c.Changed = func() <-chan struct{} { return changed }
				})
				defer closeLink(t, l)
				synctest.Wait()
				wantState(t, l, upstream.Backoff)
				close(changed)
				synctest.Wait()
				if want := map[string]int{"refused": 2, "none": 2, "other": 1}[name]; d.attempts() != want {
					t.Errorf("%d attempts, want %d", d.attempts(), want)
				}
			})
		})
	}
}
