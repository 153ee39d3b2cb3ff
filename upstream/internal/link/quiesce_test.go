package link

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/process"
	"mcp-gateway/upstream"
)

// A running attempt is ended, its caller told, and Close waits for it.
func TestQuiesceEndsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		d := &dialer{script: []func(context.Context) (*session, error){func(ctx context.Context) (*session, error) {
			<-ctx.Done()
			<-time.After(4 * time.Second) // it cleans up
			ended.Store(true)
			return nil, ctx.Err()
		}}}
		l, out := start(t, d, nil)
		waits := make(chan error, 1)
		go func() {
			_, err := l.Session(t.Context())
			waits <- err
		}()
		synctest.Wait()
		l.Quiesce()
		l.Quiesce()
		wantCause(t, <-waits, upstream.ClosedByGateway)
		wantState(t, l, upstream.Closing)
		if ended.Load() {
			t.Fatal("Quiesce waited for the attempt")
		}
		<-time.After(5 * time.Second)
		if wantState(t, l, upstream.Closing); !ended.Load() {
			t.Error("the attempt goes on")
		}
		closeLink(t, l)
		if !ended.Load() || d.attempts() != 1 || out.count("level=WARN") != 0 {
			t.Errorf("the attempt has ended: %v; %d attempts, %d warnings", ended.Load(), d.attempts(), out.count("level=WARN"))
		}
	})
}

func TestQuiesceInBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){fails(errors.New("down"))}}
		l, _ := start(t, d, func(c *Config[*session]) { c.AlwaysTry = true })
		synctest.Wait()
		l.Quiesce()
		_, err := l.Session(t.Context())
		wantCause(t, err, upstream.ClosedByGateway)
		<-time.After(time.Hour)
		if status := wantState(t, l, upstream.Closing); d.attempts() != 1 || status.Err == nil {
			t.Errorf("%d attempts, status %+v", d.attempts(), status)
		}
		closeLink(t, l)
	})
}

// The live session goes on, and none follows it, however it ends.
func TestQuiesceLeavesTheLiveSession(t *testing.T) {
	for name, end := range map[string]error{"lost": errors.New("gone"), "ended": &EndedError{Err: errors.New("gone")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession()
				s.slow = 2 * time.Second
				d := &dialer{script: []func(context.Context) (*session, error){works(s)}}
				l, _ := start(t, d, nil)
				synctest.Wait()
				l.Quiesce()
				<-time.After(time.Hour)
				if got, err := l.Session(t.Context()); got != s || err != nil {
					t.Fatalf("session %p (%v), want %p", got, err, s)
				}
				l.Lost(s, end)
				_, err := l.Session(t.Context())
				wantCause(t, err, upstream.ClosedByGateway)
				began := time.Now()
				if state := l.Settled(t.Context(), s); state != upstream.Closing || time.Since(began) != s.slow {
					t.Errorf("settled as %s after %v", state, time.Since(began))
				}
				<-time.After(time.Hour)
				if wantState(t, l, upstream.Closing); d.attempts() != 1 || s.closed() != 1 {
					t.Errorf("%d attempts, closed %d times", d.attempts(), s.closed())
				}
				closeLink(t, l)
			})
		})
	}
}

// A session that came as Quiesce did is not used, and Close ends it.
func TestQuiesceWhileASessionComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession()
		d := &dialer{script: []func(context.Context) (*session, error){func(context.Context) (*session, error) {
			<-time.After(time.Second) // deaf to ctx
			return s, nil
		}}}
		l, out := start(t, d, nil)
		synctest.Wait()
		l.Quiesce()
		<-time.After(time.Minute)
		wantState(t, l, upstream.Closing)
		closeLink(t, l)
		if s.closed() != 1 || out.count("connected") != 0 {
			t.Errorf("closed %d times, said to be connected: %d", s.closed(), out.count("connected"))
		}
	})
}

func TestQuiesceBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){works(newSession())}}
		l := New(Config[*session]{Dial: d.dial})
		l.Quiesce()
		l.Start()
		synctest.Wait()
		if d.attempts() != 0 {
			t.Error("a link that is to be quiet dialed")
		}
		closeLink(t, l)
	})
}

// What cannot be ended is told by Close all the same.
func TestQuiesceOfAHeldSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession()
		s.refuse = []error{errHeld, errHeld}
		l, _ := start(t, &dialer{script: []func(context.Context) (*session, error){works(s)}}, nil)
		synctest.Wait()
		l.Quiesce()
		l.Lost(s, errors.New("gone"))
		synctest.Wait()
		_, err := l.Session(t.Context())
		wantCause(t, err, upstream.HeldProcess)
		if _, held := errors.AsType[*process.HeldError](l.Close()); !held {
			t.Error("Close does not say what is held")
		}
		closeLink(t, l)
	})
}

func TestQuiesceOfAStartThatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession()
		d := &dialer{script: []func(context.Context) (*session, error){func(ctx context.Context) (*session, error) {
			<-ctx.Done()
			return s, errHeld
		}}}
		l, _ := start(t, d, nil)
		synctest.Wait()
		l.Quiesce()
		synctest.Wait()
		wantState(t, l, upstream.Held)
		closeLink(t, l)
	})
}

// However long nobody answers, attempts are made as the pauses allow and no more, and nothing gathers.
func TestTenThousandRefusedConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const refused = 10_000
		d := &dialer{script: []func(context.Context) (*session, error){fails(errors.New("connection refused"))}}
		l, _ := start(t, d, nil) // 1+2+4+8+16 s, then 30 s each
		began := time.Now()
		for d.attempts() < refused {
			_, err := l.Session(t.Context()) // which may bring the next one forward, to Min after the last
			wantCause(t, err, upstream.Reconnecting)
			<-time.After(300 * time.Millisecond)
		}
		took := time.Since(began)
		closeLink(t, l)
		if least := (refused - 1) * l.cfg.Min; took < least || d.most != 1 {
			t.Errorf("%d attempts within %v, want at least %v; %d at once", refused, took, least, d.most)
		}
	})
}

func TestAThousandSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions = 1_000
		d := &dialer{script: []func(context.Context) (*session, error){dies(settled)}}
		l, _ := start(t, d, nil)
		for d.attempts() <= sessions {
			<-time.After(settled)
		}
		status, _ := l.Status()
		if want := uint64(d.attempts()); status.Session != want && status.Session != want-1 {
			t.Errorf("%d sessions of %d attempts", status.Session, want)
		}
		closeLink(t, l)
	})
}
