package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/upstream"
)

func TestRepliesFindTheirCallsInAnyOrder(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		first := call(t.Context(), p, "tools/call", `{"name":"a"}`)
		second := call(t.Context(), p, "tools/call", "{\n \"name\": \"b\"\r\n}")
		s.hear(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`)
		s.hear(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"b"}}`)
		s.says <- `{"jsonrpc":"2.0","id":2,"result":{"n":12345678901234567890, "n":2}}`
		s.says <- `{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no","more":true}}`
		wantResult(t, <-second, `{"n":12345678901234567890, "n":2}`)
		r := <-first
		if r.err != nil || r.message.Error == nil || string(r.message.Error.Raw.Raw()) != `{"code":-5,"message":"no","more":true}` {
			t.Errorf("the server's error came as %+v, %v", r.message, r.err)
		}
	})
}

func TestRepliesInABatch(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		first := call(t.Context(), p, "a", "{}")
		second := call(t.Context(), p, "b", "{}")
		s.says <- `[{"jsonrpc":"2.0","id":2,"result":{"r":2}},7,{"jsonrpc":"2.0","id":1,"result":{"r":1}}]`
		wantResult(t, <-first, `{"r":1}`)
		wantResult(t, <-second, `{"r":2}`)
	})
}

func TestWhatIsNobodysReplyHarmsNoCall(t *testing.T) {
	for _, said := range []any{
		`{"jsonrpc":"2.0","id":77,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"unknown notification"}}`,
		`{"jsonrpc":"2.0","error":{"code":-32601,"message":"unknown notification"}}`,
		`{"jsonrpc":"2.0","id":"x","result":{}}`,
		`{"jsonrpc":"2.0","id":"1","result":{}}`,
		`{"jsonrpc":"2.0","id":1.0,"result":{}}`,
		`{broken`, `[`, `[]`, `[[]]`, `{}`, "{\"id\":1\xff",
		`{"jsonrpc":"2.0","method":"notifications/whatever","params":{"requestId":1}}`,
		&SkippedError{Err: errors.New("too large"), Head: []byte(`{"jsonrpc":"2.0","method":"x","params":{`), Tail: []byte(`},"id":1}`)},
		&SkippedError{Err: errors.New("too large"), Head: []byte(`{"jsonrpc":"2.0","id":9,"result":{`)},
	} {
		t.Run(fmt.Sprint(said), func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
				c := call(t.Context(), p, "tools/call", "{}")
				s.says <- said
				synctest.Wait()
				s.says <- `{"jsonrpc":"2.0","id":1,"result":{"ok":true}}`
				wantResult(t, <-c, `{"ok":true}`)
			})
		})
	}
}

func TestAnUnusableReplyEndsOnlyItsOwnCall(t *testing.T) {
	for _, test := range []struct {
		said  any
		cause upstream.Cause
	}{
		{`{"jsonrpc":"2.0","id":1}`, upstream.Unusable},
		{`{"jsonrpc":"2.0","id":1,"result":7}`, upstream.Unusable},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, upstream.Unusable},
		{`{"jsonrpc":"2.0","id":1,"error":"no"}`, upstream.Unusable},
		{`{"jsonrpc":"2.0","id":1,"result":{}} {}`, upstream.Unusable},
		{`{"jsonrpc":"2.0","id":1,"result":{`, upstream.Unusable},
		{&SkippedError{Err: errors.New("too large"), Head: []byte(`{"jsonrpc":"2.0","id":1,"result":{`)}, upstream.TooLarge},
		{&SkippedError{Err: errors.New("too large"), Head: []byte(`{"result":{`), Tail: []byte(`}, "id": 1}`)}, upstream.TooLarge},
		{&SkippedError{Err: errors.New("too large"), Head: []byte(`{"result":{`), Tail: []byte(`},"id":1,"jsonrpc":"2.0"}`)}, upstream.TooLarge},
	} {
		t.Run(fmt.Sprint(test.said), func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
				bad := call(t.Context(), p, "tools/call", "{}")
				good := call(t.Context(), p, "tools/call", "{}")
				s.says <- test.said
				wantError(t, (<-bad).err, upstream.NoResponse, test.cause)
				s.says <- `{"jsonrpc":"2.0","id":2,"result":{"ok":true}}`
				wantResult(t, <-good, `{"ok":true}`)
			})
		})
	}
}

func TestAReplyWithoutAnIDIsThatOfTheOnlyCall(t *testing.T) {
	for _, test := range []struct {
		said  any
		cause upstream.Cause
	}{
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`, upstream.Unusable},
		{`{"jsonrpc":"2.0","error":{"code":-32600,"message":"invalid request"}}`, upstream.Unusable},
		{&SkippedError{Err: errors.New("too large"), Head: []byte(`{"result":`), Tail: []byte(`}`)}, upstream.TooLarge},
	} {
		t.Run(fmt.Sprint(test.said), func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
				first := call(t.Context(), p, "tools/call", "{}")
				second := call(t.Context(), p, "tools/call", "{}")
				s.says <- test.said // two in flight: it is not known whose it is
				synctest.Wait()
				s.says <- `{"jsonrpc":"2.0","id":2,"result":{}}`
				wantResult(t, <-second, `{}`)
				s.says <- test.said
				wantError(t, (<-first).err, upstream.NoResponse, test.cause)
			})
		})
	}
}

func TestARepeatedReplyIsDropped(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		first := call(t.Context(), p, "a", "{}")
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{"r":1}}`
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{"r":1}}`
		s.says <- `{"jsonrpc":"2.0","id":2,"result":{"r":"before it was asked"}}`
		wantResult(t, <-first, `{"r":1}`)
		synctest.Wait()
		second := call(t.Context(), p, "a", "{}")
		s.says <- `{"jsonrpc":"2.0","id":2,"result":{"r":2}}`
		wantResult(t, <-second, `{"r":2}`)
	})
}

func TestADeadlineCancelsOnTheWireAndReturnsAtOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := call(ctx, p, "tools/call", "{}")
		s.hear(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`)
		begin := time.Now()
		wantError(t, (<-c).err, upstream.NoResponse, upstream.Deadline)
		if got := time.Since(begin); got != time.Second {
			t.Errorf("it returned after %v", got)
		}
		s.hear(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"its deadline passed"}}`)
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{}}` // late
		again := call(t.Context(), p, "tools/call", "{}")
		s.says <- `{"jsonrpc":"2.0","id":2,"result":{}}`
		wantResult(t, <-again, `{}`)
	})
}

func TestACancelIsSentWithTheServersID(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		other := call(t.Context(), p, "tools/call", "{}")
		ctx, cancel := context.WithCancelCause(t.Context())
		c := call(ctx, p, "tools/call", "{}")
		<-s.heard
		<-s.heard
		why := errors.New("the client went away")
		cancel(why)
		err := (<-c).err
		wantError(t, err, upstream.NoResponse, upstream.Canceled)
		if !errors.Is(err, why) {
			t.Errorf("error %v does not say why", err)
		}
		s.hear(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the caller canceled it"}}`)
		s.silent()
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{}}`
		wantResult(t, <-other, `{}`)
	})
}

func TestWhatOpensAConnectionIsNotCanceled(t *testing.T) {
	for _, method := range []string{"initialize", "server/discover"} {
		inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			c := call(ctx, p, method, "{}")
			<-s.heard
			wantError(t, (<-c).err, upstream.NoResponse, upstream.Deadline)
			s.silent()
		})
	}
}

func TestACallThatHasEndedIsNotSent(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantError(t, (<-call(ctx, p, "tools/call", "{}")).err, upstream.NotSent, upstream.CanceledUnsent)
		s.silent()
	})
}

func TestWhatWaitsBehindAStuckServerIsWithdrawn(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		release := make(chan struct{})
		s.onWrite(func(frame []byte) (int, error) {
			<-release
			s.heard <- string(frame)
			return len(frame) + 1, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := call(ctx, p, "a", "{}")
		waits := call(ctx, p, "b", "{}")
		s.says <- `{"jsonrpc":"2.0","id":2,"result":{"guessed":"its id"}}`
		wantError(t, (<-begun).err, upstream.NoResponse, upstream.Deadline)
		wantError(t, (<-waits).err, upstream.NotSent, upstream.DeadlineUnsent)
		<-time.After(3 * time.Second) // nobody cares for the cancel any more
		close(release)
		s.hear(`{"jsonrpc":"2.0","id":1,"method":"a","params":{}}`)
		s.silent() // neither the withdrawn call nor the cancel
	})
}

// A server that stops reading keeps nobody longer than their deadline, however many ask.
func TestMoreCallsThanTheWriterTakesAheadEndWithTheirContexts(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		s.deaf()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := call(ctx, p, "a", "{}")
		var calls []<-chan result
		for range 2 * legRoom {
			calls = append(calls, call(ctx, p, "a", "{}"))
		}
		wantError(t, (<-begun).err, upstream.NoResponse, upstream.Deadline)
		for _, c := range calls {
			wantError(t, (<-c).err, upstream.NotSent, upstream.DeadlineUnsent)
		}
	})
}

func TestTheEndOfTheServerEndsItsCalls(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		answered := call(t.Context(), p, "a", "{}")
		pending := call(t.Context(), p, "a", "{}")
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{"last":"words"}}`
		s.says <- io.EOF
		wantResult(t, <-answered, `{"last":"words"}`)
		wantError(t, (<-pending).err, upstream.NoResponse, upstream.ConnectionLost)
		<-p.Done()
		if !errors.Is(p.Err(), io.EOF) {
			t.Errorf("Err: %v", p.Err())
		}
		wantError(t, (<-call(t.Context(), p, "a", "{}")).err, upstream.NotSent, upstream.Reconnecting)
	})
}
