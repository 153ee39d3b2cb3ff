package link

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/process"
	"mcp-gateway/upstream"
)

func TestLostReachesOnlyTheLiveSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newSession(), newSession()
		d := &dialer{script: []func(context.Context) (*session, error){works(first), works(second)}}
		l, _ := start(t, d, nil)
		defer closeLink(t, l)
		if _, err := l.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.Lost(first, errors.New("a call found it dead"))
		status := wantState(t, l, upstream.Backoff) // at once, so that no other call gets it
		if status.Err.Error() != "a call found it dead" {
			t.Errorf("status %+v", status)
		}
		l.Lost(first, errors.New("another too"))
		<-time.After(time.Second)
		synctest.Wait()
		wantState(t, l, upstream.Live)
		l.Lost(first, errors.New("and one that came late"))
		synctest.Wait()
		wantState(t, l, upstream.Live)
		if second.closed() != 0 || first.closed() != 1 {
			t.Errorf("closed: %d times the first, %d the second", first.closed(), second.closed())
		}
	})
}

func TestCloseEndsARunningAttemptAndWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		d := &dialer{script: []func(context.Context) (*session, error){func(ctx context.Context) (*session, error) {
			<-ctx.Done()
			<-time.After(4 * time.Second) // it cleans up
			ended = true
			return nil, ctx.Err()
		}}}
		l, out := start(t, d, nil)
		synctest.Wait()
		done := make(chan struct{})
		go func() { defer close(done); closeLink(t, l) }()
		synctest.Wait()
		wantState(t, l, upstream.Closing)
		_, err := l.Session(t.Context())
		wantCause(t, err, upstream.ClosedByGateway)
		<-done
		if !ended {
			t.Error("Close returned before the attempt's clean-up")
		}
		if out.count("level=WARN") != 0 {
			t.Error("an attempt that Close ended is told as a failure")
		}
	})
}

func TestCloseEndsASessionThatCameTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession()
		d := &dialer{script: []func(context.Context) (*session, error){func(context.Context) (*session, error) {
			<-time.After(time.Second) // deaf to ctx
			return s, nil
		}}}
		l, out := start(t, d, nil)
		synctest.Wait()
		closeLink(t, l)
		if s.closed() != 1 {
			t.Errorf("closed %d times", s.closed())
		}
		if out.count("connected") != 0 {
			t.Error("it was said to be live after Close")
		}
	})
}

func TestACallThatWaitsIsToldOfClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){hangs}}
		l, _ := start(t, d, nil)
		time.AfterFunc(time.Second, func() { closeLink(t, l) })
		_, err := l.Session(t.Context())
		wantCause(t, err, upstream.ClosedByGateway)
		synctest.Wait()
	})
}

func TestCloseIsSharedAndRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession()
		s.slow = 6 * time.Second
		s.refuse = []error{errHeld}
		d := &dialer{script: []func(context.Context) (*session, error){works(s)}}
		l, _ := start(t, d, nil)
		synctest.Wait()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, held := errors.AsType[*process.HeldError](l.Close()); !held {
					t.Error("a caller of the shared attempt was not told what is held")
				}
			})
		}
		wg.Wait()
		if s.closed() != 1 {
			t.Errorf("the session was closed %d times by one attempt", s.closed())
		}
		closeLink(t, l)
		closeLink(t, l)
		if s.closed() != 2 {
			t.Errorf("the session was closed %d times, want once more", s.closed())
		}
	})
}

func TestAnErrorOfCloseThatHoldsNothingIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession()
		s.refuse = []error{errors.New("it complained")}
		l, _ := start(t, &dialer{script: []func(context.Context) (*session, error){works(s)}}, nil)
		synctest.Wait()
		closeLink(t, l)
	})
}

func TestCloseBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){works(newSession())}}
		l := New(Config[*session]{Dial: d.dial})
		closeLink(t, l)
		l.Start()
		synctest.Wait()
		wantState(t, l, upstream.Closed)
		if d.attempts() != 0 {
			t.Error("a closed link dialed")
		}
	})
}

func TestCloseInBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{script: []func(context.Context) (*session, error){fails(errors.New("down"))}}
		l, _ := start(t, d, nil)
		l.Start() // a second time
		synctest.Wait()
		closeLink(t, l)
		<-time.After(time.Hour)
		if d.attempts() != 1 {
			t.Errorf("%d attempts", d.attempts())
		}
	})
}

func TestEveryChangeOfStatusIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession()
		d := &dialer{script: []func(context.Context) (*session, error){func(context.Context) (*session, error) {
			<-time.After(time.Second)
			return nil, errors.New("down")
		}, func(context.Context) (*session, error) {
			<-time.After(time.Second)
			return s, nil
		}}}
		l, _ := start(t, d, nil)
		var states []upstream.State
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				status, changed := l.Status()
				if len(states) == 0 || states[len(states)-1] != status.State {
					states = append(states, status.State)
				}
				if status.State == upstream.Closed {
					return
				}
				<-changed
			}
		}()
		s.slow = time.Second
		<-time.After(10 * time.Second)
		closeLink(t, l)
		<-done
		want := []upstream.State{upstream.Connecting, upstream.Backoff, upstream.Connecting, upstream.Live, upstream.Closing, upstream.Closed}
		if !slices.Equal(states, want) {
			t.Errorf("states %v, want %v", states, want)
		}
	})
}
