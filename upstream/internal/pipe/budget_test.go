package pipe

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"mcp-gateway/upstream"
)

// Large replies count until their caller has passed them on. Beyond the budget the pipe, which must be read, drops them.
func TestLargeRepliesHaveABudget(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		const fits = 2
		p.room = fits * 3 * largeReply
		text := strings.Repeat("x", 2*largeReply)
		var holds [fits + 1]upstream.Hold
		ask := func(id int, hold *upstream.Hold) result {
			done := make(chan result, 1)
			go func() {
				m, err := p.Call(t.Context(), "a", []byte(`{}`), nil, hold)
				done <- result{m, err}
			}()
			<-s.heard
			s.says <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"s":"%s"}}`, id, text)
			return <-done
		}
		for i := range fits {
			if r := ask(i+1, &holds[i]); r.err != nil {
				t.Fatal(r.err)
			}
		}
		wantError(t, ask(fits+1, &holds[fits]).err, upstream.NoResponse, upstream.TooLarge)
		small := call(t.Context(), p, "a", `{}`)
		<-s.heard
		s.says <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, fits+2)
		wantResult(t, <-small, `{}`)
		holds[0].Release()
		if r := ask(fits+3, nil); r.err != nil {
			t.Errorf("a released share is not given again: %v", r.err)
		}
		for i := range holds {
			holds[i].Release()
		}

		// Of a call that is given up, nothing stays.
		ctx, cancel := context.WithCancel(t.Context())
		given := call(ctx, p, "a", `{}`)
		<-s.heard
		cancel()
		<-given
		s.says <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"s":"%s"}}`, fits+4, text)
		synctest.Wait()
		if got := p.held.Load(); got != 0 {
			t.Errorf("%d bytes are still counted", got)
		}
	})
}
