package pipe

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/upstream"
)

// A poster is a server that takes each frame on its own.
type poster struct {
	frames chan string   // what Send and Write got
	says   chan string   // what Read gives
	gone   chan struct{} // closed by Close
	post   func(ctx context.Context, frame string) error
}

func (p *poster) Read() ([]byte, error) {
	select {
	case text := <-p.says:
		return []byte(text), nil
	case <-p.gone:
		return nil, errors.New("the stream ended")
	}
}

func (p *poster) Write(frame []byte) (int, error) {
	p.frames <- string(frame)
	return len(frame), nil
}

func (p *poster) Send(ctx context.Context, frame []byte) error {
	p.frames <- string(frame)
	return p.post(ctx, string(frame))
}

func (p *poster) Close() error {
	select {
	case <-p.gone:
	default:
		close(p.gone)
	}
	return nil
}

func overPosts(t *testing.T, post func(s *poster, ctx context.Context, frame string) error, test func(t *testing.T, p *Pipe, s *poster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &poster{frames: make(chan string, 100), says: make(chan string), gone: make(chan struct{})}
		s.post = func(ctx context.Context, frame string) error { return post(s, ctx, frame) }
		p := New(s, Config{Log: slog.New(slog.DiscardHandler)})
		test(t, p, s)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

func failure(outcome upstream.Outcome, cause upstream.Cause) error {
	return &upstream.Error{Outcome: outcome, Cause: cause}
}

// hangs waits as an exchange does: for the end of ctx, or of the connection.
func hangs(s *poster, ctx context.Context, outcome upstream.Outcome, cause upstream.Cause) error {
	select {
	case <-ctx.Done():
		return failure(outcome, cause)
	case <-s.gone:
		return failure(outcome, upstream.ClosedByGateway)
	}
}

func TestAPostThatFailsEndsOnlyItsCall(t *testing.T) {
	overPosts(t, func(_ *poster, _ context.Context, frame string) error {
		if strings.Contains(frame, `"bad"`) {
			return failure(upstream.ErrorResponse, upstream.Refused)
		}
		return nil
	}, func(t *testing.T, p *Pipe, s *poster) {
		good := call(t.Context(), p, "good", "{}")
		wantError(t, (<-call(t.Context(), p, "bad", "{}")).err, upstream.ErrorResponse, upstream.Refused)
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{"ok":true}}`
		wantResult(t, <-good, `{"ok":true}`)
	})
}

func TestADeadlineBeforeThePostIsSentIsNotSent(t *testing.T) {
	overPosts(t, func(s *poster, ctx context.Context, _ string) error {
		return hangs(s, ctx, upstream.NotSent, upstream.DeadlineUnsent)
	}, func(t *testing.T, p *Pipe, s *poster) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantError(t, (<-call(ctx, p, "a", "{}")).err, upstream.NotSent, upstream.DeadlineUnsent)
		<-s.frames
		synctest.Wait()
		if len(s.frames) != 0 {
			t.Errorf("what was not sent is canceled: %s", <-s.frames)
		}
	})
}

func TestACallThatHasEndedIsNotPosted(t *testing.T) {
	overPosts(t, func(*poster, context.Context, string) error { return nil }, func(t *testing.T, p *Pipe, s *poster) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantError(t, (<-call(ctx, p, "a", "{}")).err, upstream.NotSent, upstream.CanceledUnsent)
		if len(s.frames) != 0 {
			t.Errorf("posted: %s", <-s.frames)
		}
	})
}

// The cancel does not overtake what it cancels.
func TestACancelFollowsItsPost(t *testing.T) {
	overPosts(t, func(s *poster, ctx context.Context, _ string) error {
		<-ctx.Done()
		<-time.After(time.Second)
		s.frames <- "the post has ended"
		return failure(upstream.NoResponse, upstream.Deadline)
	}, func(t *testing.T, p *Pipe, s *poster) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantError(t, (<-call(ctx, p, "a", "{}")).err, upstream.NoResponse, upstream.Deadline)
		<-s.frames
		for _, want := range []string{"the post has ended", `"requestId":1`} {
			if got := <-s.frames; !strings.Contains(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

// A reply may overtake the answer to its POST, which is left to end and not waited for.
func TestAReplyBeforeThePostIsTaken(t *testing.T) {
	var ended time.Time
	overPosts(t, func(s *poster, ctx context.Context, _ string) error {
		err := hangs(s, ctx, upstream.NoResponse, upstream.Canceled)
		ended = time.Now()
		return err
	}, func(t *testing.T, p *Pipe, s *poster) {
		ctx, cancel := context.WithCancel(t.Context())
		c := call(ctx, p, "a", "{}")
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{}}`
		wantResult(t, <-c, `{}`)
		began := time.Now()
		cancel()
		<-time.After(time.Minute)
		synctest.Wait()
		if got := ended.Sub(began); got != postWait {
			t.Errorf("the post was left for %v, want %v", got, postWait)
		}
		if len(s.frames) != 1 {
			t.Error("more than the call was sent")
		}
	})
}

func TestTheEndOfTheStreamEndsPosts(t *testing.T) {
	for _, test := range []struct {
		posted upstream.Outcome
		cause  upstream.Cause
	}{{upstream.NotSent, upstream.WriteFailed}, {upstream.NoResponse, upstream.ConnectionLost}} {
		overPosts(t, func(s *poster, ctx context.Context, _ string) error {
			return hangs(s, ctx, test.posted, upstream.Canceled)
		}, func(t *testing.T, p *Pipe, s *poster) {
			c := call(t.Context(), p, "a", "{}")
			_ = s.Close() // as the server's end does
			wantError(t, (<-c).err, test.posted, test.cause)
			wantError(t, (<-call(t.Context(), p, "b", "{}")).err, upstream.NotSent, upstream.Reconnecting)
			if err := p.Notify(t.Context(), "n", nil); err == nil {
				t.Error("a notification was sent after the end")
			}
		})
	}
}
