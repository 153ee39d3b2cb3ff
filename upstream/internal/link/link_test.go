package link

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/process"
	"mcp-gateway/upstream"
)

func TestASessionIsGivenWhileItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newSession(), newSession()
		d := &dialer{script: []func(context.Context) (*session, error){works(first), works(second)}}
		l, _ := start(t, d, nil)
		s, err := l.Session(t.Context())
		if s != first || err != nil {
			t.Fatalf("session %v, %v", s, err)
		}
		status := wantState(t, l, upstream.Live)
		if status.Session != 1 || status.Revision != "2025-11-25" || status.Discover.IsZero() || status.Err != nil {
			t.Errorf("status %+v", status)
		}
		first.die("it fell over")
		// Before anybody else could notice: a dead session is never given.
		_, err = l.Session(t.Context())
		wantCause(t, err, upstream.Reconnecting)
		if status = wantState(t, l, upstream.Backoff); status.Err == nil || status.Err.Error() != "it fell over" || status.Revision != "" || !status.Discover.IsZero() {
			t.Errorf("status %+v", status)
		}
		<-time.After(time.Second)
		if s, err = l.Session(t.Context()); s != second || err != nil {
			t.Fatalf("session %v, %v", s, err)
		}
		if status = wantState(t, l, upstream.Live); status.Session != 2 {
			t.Errorf("status %+v", status)
		}
		if first.closed() != 1 {
			t.Errorf("the dead session was closed %d times", first.closed())
		}
		closeLink(t, l)
		if second.closed() != 1 {
			t.Errorf("the live session was closed %d times", second.closed())
		}
		_, err = l.Session(t.Context())
		wantCause(t, err, upstream.ClosedByGateway)
	})
}

func TestACallWaitsForAnAttemptAtMostFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){hangs}}
		l, _ := start(t, d, nil)
		defer closeLink(t, l)
		begin := time.Now()
		_, err := l.Session(t.Context())
		wantCause(t, err, upstream.ConnectingStill)
		if waited := time.Since(begin); waited != 5*time.Second {
			t.Errorf("waited %v", waited)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = l.Session(ctx)
		wantCause(t, err, upstream.DeadlineUnsent)

		ctx, stop := context.WithCancelCause(t.Context())
		why := errors.New("the client went away")
		time.AfterFunc(time.Second, func() { stop(why) })
		_, err = l.Session(ctx)
		wantCause(t, err, upstream.CanceledUnsent)
		if !errors.Is(err, why) {
			t.Errorf("error %v does not say why", err)
		}
	})
}

// A call that has waited for something else before waits the less for a session.
func TestACallWaitsAsLongAsItsContextSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := start(t, &dialer{script: []func(context.Context) (*session, error){hangs}}, nil)
		defer closeLink(t, l)
		for _, want := range []time.Duration{-time.Second, 0, time.Second, 7 * time.Second} {
			begin := time.Now()
			_, err := l.Session(upstream.WithWait(t.Context(), begin.Add(want)))
			wantCause(t, err, upstream.ConnectingStill)
			if waited := time.Since(begin); waited != max(0, want) {
				t.Errorf("waited %v, want %v", waited, want)
			}
		}
	})
}

func TestACallGetsTheSessionItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := newSession()
		d := &dialer{script: []func(context.Context) (*session, error){func(context.Context) (*session, error) {
			<-time.After(4 * time.Second)
			return want, nil
		}}}
		l, _ := start(t, d, nil)
		defer closeLink(t, l)
		if s, err := l.Session(t.Context()); s != want || err != nil {
			t.Fatalf("session %v, %v", s, err)
		}
	})
}

func TestACallIsToldWhenTheAttemptItWaitsForFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("no such file")
		d := &dialer{script: []func(context.Context) (*session, error){func(context.Context) (*session, error) {
			<-time.After(time.Second)
			return nil, why
		}}}
		l, _ := start(t, d, nil)
		defer closeLink(t, l)
		begin := time.Now()
		_, err := l.Session(t.Context())
		wantCause(t, err, upstream.Reconnecting)
		if !errors.Is(err, why) || time.Since(begin) != time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

func TestPausesGrowAndBeginAnewAfterASessionThatSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := fails(errors.New("down"))
		settles := dies(settled)
		d := &dialer{script: []func(context.Context) (*session, error){down, down, down, dies(settled - 1), settles, down}}
		l, _ := start(t, d, nil)
		defer closeLink(t, l)
		status := func() upstream.Status { s, _ := l.Status(); return s }
		synctest.Wait()
		if got := time.Until(status().Until); got != time.Second {
			t.Errorf("the next attempt is said to be in %v", got)
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		var pauses []time.Duration
		for i, at := range d.at[1:] {
			pauses = append(pauses, at.Sub(d.at[i]).Round(time.Second))
		}
		sec := time.Second
		want := []time.Duration{1 * sec, 2 * sec, 4 * sec, 30*sec + 8*sec, 30*sec + 1*sec, 2 * sec, 4 * sec, 8 * sec, 16 * sec}
		if !slices.Equal(pauses, want) {
			t.Errorf("pauses %v, want %v", pauses, want)
		}
		if d.most != 1 {
			t.Errorf("%d attempts ran at once", d.most)
		}
	})
}

func TestACallInBackoffHurriesTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){fails(errors.New("down"))}}
		l, _ := start(t, d, func(c *Config[*session]) { c.Min, c.Max = time.Second, time.Hour })
		defer closeLink(t, l)
		<-time.After(10 * time.Minute) // the pauses are long by now
		synctest.Wait()
		before := d.attempts()
		for range 95 { // nine seconds and a half of calls
			_, err := l.Session(t.Context())
			wantCause(t, err, upstream.Reconnecting)
			<-time.After(100 * time.Millisecond)
		}
		if got := d.attempts() - before; got != 10 {
			t.Errorf("%d attempts, want one at once and one a second", got)
		}
	})
}

func TestAlwaysTryWaitsForAnAttemptOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.Unreachable}
		want := newSession()
		down := fails(refused)
		d := &dialer{script: []func(context.Context) (*session, error){down, down, works(want)}}
		l, _ := start(t, d, func(c *Config[*session]) { c.AlwaysTry, c.Min = true, time.Minute })
		defer closeLink(t, l)
		synctest.Wait()
		wantState(t, l, upstream.Backoff)
		_, err := l.Session(t.Context())
		wantCause(t, err, upstream.Unreachable)
		if d.attempts() != 2 {
			t.Fatalf("%d attempts, want the first and the call's", d.attempts())
		}
		if s, err := l.Session(t.Context()); s != want || err != nil {
			t.Fatalf("session %v, %v", s, err)
		}
	})
}

func TestACrashLoopIsToldOnceAndTriedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){dies(time.Millisecond)}}
		l, out := start(t, d, nil)
		defer closeLink(t, l)
		<-time.After(16 * time.Second) // 1+2+4+8 s, then the cap
		synctest.Wait()
		if got := d.attempts(); got != 5 {
			t.Fatalf("%d attempts", got)
		}
		for range 100 { // calls do not bring the next one forward
			_, err := l.Session(t.Context())
			wantCause(t, err, upstream.Reconnecting)
			<-time.After(100 * time.Millisecond)
		}
		if got := d.attempts(); got != 5 {
			t.Errorf("%d attempts", got)
		}
		<-time.After(time.Minute)
		if got := d.attempts(); got != 7 {
			t.Errorf("%d attempts, want one each 30 s", got)
		}
		if got := out.count("level=ERROR"); got != 1 {
			t.Errorf("%d lines at ERROR, want 1", got)
		}
	})
}

func TestASessionThatSettledEndsTheCountOfCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short := dies(time.Millisecond)
		d := &dialer{script: []func(context.Context) (*session, error){short, short, short, short, dies(settled), short, short, short, short, hangs}}
		l, out := start(t, d, nil)
		defer closeLink(t, l)
		<-time.After(time.Hour)
		if d.attempts() < 10 || out.count("level=ERROR") != 0 {
			t.Errorf("%d attempts, %d lines at ERROR", d.attempts(), out.count("level=ERROR"))
		}
	})
}

func TestAVerdictEndsTheTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		verdict := &VerdictError{Text: "it speaks 2026-07-28 only"}
		d := &dialer{script: []func(context.Context) (*session, error){fails(verdict)}}
		l, out := start(t, d, nil)
		<-time.After(time.Hour)
		if status := wantState(t, l, upstream.Verdict); !errors.Is(status.Err, verdict) {
			t.Errorf("status %+v", status)
		}
		_, err := l.Session(t.Context())
		wantCause(t, err, upstream.GivenUp)
		<-time.After(time.Hour)
		if d.attempts() != 1 || out.count("level=ERROR") != 1 {
			t.Errorf("%d attempts, %d lines at ERROR", d.attempts(), out.count("level=ERROR"))
		}
		closeLink(t, l)
	})
}

func TestARefusedCredentialIsTriedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){fails(&RefusedError{errors.New("401")})}}
		l, _ := start(t, d, nil)
		defer closeLink(t, l)
		<-time.After(time.Hour)
		synctest.Wait()
		status := wantState(t, l, upstream.Backoff)
		if got := status.Until.Sub(status.Since); got != 5*time.Minute {
			t.Errorf("pause %v", got)
		}
	})
}

func TestAnAttemptEndsAtStartTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){hangs}}
		l, _ := start(t, d, func(c *Config[*session]) { c.StartTimeout = time.Minute })
		defer closeLink(t, l)
		<-time.After(time.Minute)
		synctest.Wait()
		status := wantState(t, l, upstream.Backoff)
		if want := "not connected within start_timeout (1m0s): context deadline exceeded"; status.Err.Error() != want {
			t.Errorf("error %q, want %q", status.Err, want)
		}
	})
}

func TestAHeldProcessStopsAllStarts(t *testing.T) {
	t.Run("at the end of a session", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSession()
			s.refuse = []error{errHeld, errHeld}
			s.slow = 6 * time.Second
			heldFirst(t, s, works(s), func(l *Link[*session]) {
				if _, err := l.Session(t.Context()); err != nil {
					t.Fatal(err)
				}
				l.Lost(s, errors.New("its stdin failed"))
				// A call of that session answers only when it is known what became of it.
				if state := l.Settled(t.Context(), s); state != upstream.Held {
					t.Errorf("settled as %q", state)
				}
			})
		})
	})
	t.Run("in a failed start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSession()
			s.refuse = []error{errHeld}
			heldFirst(t, s, func(context.Context) (*session, error) { return s, errHeld }, func(*Link[*session]) { synctest.Wait() })
		})
	})
}

// heldFirst runs lose on a link that then holds s, whose Close fails once more and then works.
func heldFirst(t *testing.T, s *session, dial func(context.Context) (*session, error), lose func(*Link[*session])) {
	d := &dialer{script: []func(context.Context) (*session, error){dial}}
	l, out := start(t, d, nil)
	lose(l)
	wantState(t, l, upstream.Held)
	_, err := l.Session(t.Context())
	wantCause(t, err, upstream.HeldProcess)
	<-time.After(time.Hour)
	if d.attempts() != 1 {
		t.Errorf("%d attempts beside what may still run", d.attempts())
	}
	if out.count("level=ERROR") != 1 {
		t.Errorf("%d lines at ERROR", out.count("level=ERROR"))
	}
	err = l.Close()
	if held, ok := errors.AsType[*process.HeldError](err); !ok || held.PID != 7 {
		t.Fatalf("Close: %v", err)
	}
	wantState(t, l, upstream.Closing)
	closeLink(t, l) // tries just that again
	before := s.closed()
	closeLink(t, l)
	if s.closed() != before {
		t.Error("a Close after a success ended the session again")
	}
}

func TestSettledWaitsForTheEndOfALostSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession()
		s.slow = 6 * time.Second
		d := &dialer{script: []func(context.Context) (*session, error){works(s), works(newSession())}}
		l, _ := start(t, d, nil)
		defer closeLink(t, l)
		if _, err := l.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.die("gone")
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l.Settled(ctx, s)
		if got := time.Since(begin); got != time.Second {
			t.Errorf("Settled waited %v, not until its ctx ended", got)
		}
		if state := l.Settled(t.Context(), s); state != upstream.Backoff || time.Since(begin) != s.slow {
			t.Errorf("settled as %q after %v", state, time.Since(begin))
		}
		if d.attempts() != 1 {
			t.Error("an attempt began before the session before it was gone")
		}
	})
}
