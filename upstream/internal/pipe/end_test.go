package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

func TestAFailedWriteIsToldByWhatCrossed(t *testing.T) {
	for _, test := range []struct {
		reached int
		outcome upstream.Outcome
		cause   upstream.Cause
	}{
		{0, upstream.NotSent, upstream.WriteFailed},
		{1, upstream.NoResponse, upstream.ConnectionLost},
	} {
		t.Run(fmt.Sprint(test.reached), func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
				answered := call(t.Context(), p, "a", "{}")
				pending := call(t.Context(), p, "a", "{}")
				fail := make(chan struct{})
				s.onWrite(func([]byte) (int, error) {
					<-fail
					// It still answers what it had read.
					s.says <- `{"jsonrpc":"2.0","id":1,"result":{"late":"but here"}}`
					return test.reached, os.ErrClosed
				})
				failed := call(t.Context(), p, "a", "{}")
				behind := call(t.Context(), p, "a", "{}")
				close(fail)
				wantError(t, (<-failed).err, test.outcome, test.cause)
				wantError(t, (<-behind).err, upstream.NotSent, upstream.StdinFailed)
				wantResult(t, <-answered, `{"late":"but here"}`)
				wantError(t, (<-pending).err, upstream.NoResponse, upstream.ConnectionLost)
				wantError(t, (<-call(t.Context(), p, "a", "{}")).err, upstream.NotSent, upstream.StdinFailed)
				<-p.Done()
				if s.closes == 0 {
					t.Error("a pipe without a way in was not closed")
				}
			})
		})
	}
}

func TestADeadlineDoesNotMakeAFailedWriteAMaybe(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		s.hang = make(chan struct{})
		s.onWrite(func([]byte) (int, error) { return 0, os.ErrClosed })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantError(t, (<-call(ctx, p, "a", "{}")).err, upstream.NotSent, upstream.WriteFailed)
		close(s.hang)
	})
}

func TestTheLastWordsReachEveryCall(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		var calls []<-chan result
		for range legRoom {
			calls = append(calls, call(t.Context(), p, "a", "{}"))
		}
		for i := range calls {
			s.says <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i+1)
		}
		s.says <- io.EOF
		for _, c := range calls {
			wantResult(t, <-c, `{}`)
		}
	})
}

func TestCloseEndsCallsAndIsNoLoss(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		sent := call(t.Context(), p, "a", "{}")
		s.deaf()
		half := call(t.Context(), p, "a", "{}")
		queued := call(t.Context(), p, "a", "{}")
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := p.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		wg.Wait()
		wantError(t, (<-sent).err, upstream.NoResponse, upstream.ClosedByGateway)
		wantError(t, (<-half).err, upstream.NoResponse, upstream.ClosedByGateway)
		wantError(t, (<-queued).err, upstream.NotSent, upstream.ClosedByGateway)
		wantError(t, (<-call(t.Context(), p, "a", "{}")).err, upstream.NotSent, upstream.ClosedByGateway)
		select {
		case <-p.Done():
			t.Error("Close reads as a loss")
		default:
		}
	})
}

func TestADeadlineEndsACallOfALostPipe(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		release := make(chan struct{})
		s.onWrite(func(frame []byte) (int, error) { // stuck in spite of Close
			<-release
			return len(frame), nil
		})
		c := call(ctx, p, "a", "{}")
		s.says <- io.EOF
		wantError(t, (<-c).err, upstream.NoResponse, upstream.Deadline)
		close(release)
	})
}

func TestTheServersRequestsAreAnswered(t *testing.T) {
	for _, test := range []struct{ asks, want string }{
		{`{"jsonrpc":"2.0","id":"p-1","method":"ping"}`, `{"jsonrpc":"2.0","id":"p-1","result":{}}`},
		{`{"jsonrpc":"2.0","id":9007199254740993,"method":"roots/list"}`,
			`{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32601,"message":"the method is not supported by this client"}}`},
		{`{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}}`,
			`{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"elicitation is not supported by this client"}}`},
		{`{"jsonrpc":"2.0","id":-1,"method":"sampling/createMessage","params":{}}`,
			`{"jsonrpc":"2.0","id":-1,"error":{"code":-1,"message":"sampling is not supported by this client"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"x"}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method is not supported by this client"}}`},
	} {
		t.Run(test.asks, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
				s.says <- test.asks
				s.hear(test.want)
			})
		})
	}
}

func TestARequestThatCannotBeAnsweredIsNot(t *testing.T) {
	for _, id := range []string{`null`, `{}`, `[1]`, `true`, `"` + strings.Repeat("x", 1<<10) + `"`} {
		inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
			s.says <- `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`
			s.silent()
		})
	}
}

func TestAFloodOfRequestsStopsNothing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		pending := call(t.Context(), p, "a", "{}")
		s.hear(`{"jsonrpc":"2.0","id":1,"method":"a","params":{}}`)
		s.deaf()
		for i := range 900 {
			s.says <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i)
		}
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{}}`
		wantResult(t, <-pending, `{}`)
		if got := len(p.answers); got != answerRoom {
			t.Errorf("%d answers wait, want no more than %d", got, answerRoom)
		}
	})
}

func TestNotificationsReachTheEngineInOrder(t *testing.T) {
	var got []string
	inBubble(t, func(c *Config) {
		c.OnNotification = func(method string, params wire.Object) { got = append(got, method+string(params.Raw())) }
	}, func(t *testing.T, p *Pipe, s *server) {
		s.says <- `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
		s.says <- `[{"jsonrpc":"2.0","method":"a","params":{"n":1}},{"jsonrpc":"2.0","method":"b"}]`
		synctest.Wait()
	})
	if want := `[notifications/tools/list_changed a{"n":1} b]`; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestNotifyIsWrittenInOrder(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		if err := p.Notify(t.Context(), "notifications/initialized", nil); err != nil {
			t.Fatal(err)
		}
		call(t.Context(), p, "a", "{}")
		s.hear(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		s.hear(`{"jsonrpc":"2.0","id":1,"method":"a","params":{}}`)
		s.onWrite(func([]byte) (int, error) { return 0, os.ErrClosed })
		if err := p.Notify(t.Context(), "b", nil); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a failed Notify: %v", err)
		}
		wantError(t, p.Notify(t.Context(), "b", nil), upstream.NotSent, upstream.StdinFailed)
	})
}

func TestNotifyEndsWithItsContext(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		s.deaf()
		call(t.Context(), p, "a", "{}")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Notify(ctx, "b", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Notify: %v", err)
		}
	})
}

func FuzzTake(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	f.Add(`[{"jsonrpc":"2.0","id":"1","error":{"code":-32700,"message":""}}]`)
	f.Add(`{"id":1,"method":"ping"}`)
	f.Fuzz(func(t *testing.T, frame string) {
		inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
			c := call(t.Context(), p, "a", "{}")
			s.says <- frame
			synctest.Wait()
			s.says <- `{"jsonrpc":"2.0","id":1,"result":{}}`
			<-c
			d := call(t.Context(), p, "a", "{}")
			s.says <- `{"jsonrpc":"2.0","id":2,"result":{"other":"unharmed"}}`
			wantResult(t, <-d, `{"other":"unharmed"}`)
		})
	})
}

func FuzzIDOf(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"result":{`, `}}`)
	f.Add(`{"result":{`, `},"id":1}`)
	f.Fuzz(func(t *testing.T, head, tail string) {
		if id, ok := idOf([]byte(head), []byte(tail)); ok && id < 0 {
			t.Errorf("id %d", id)
		}
	})
}
