package pipe

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
)

// logged is a log that a test reads once nobody writes to it.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(what))
}

// A server that sends nothing but what cannot be used fills no log, and all of it is accounted for.
func TestAFloodThatCannotBeUsedIsCountedInsteadOfLogged(t *testing.T) {
	var out logged
	inBubble(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&out, nil)) }, func(t *testing.T, p *Pipe, s *server) {
		said := []any{
			`{"id":`, `[`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`,
			&SkippedError{Err: fmt.Errorf("too large"), Head: []byte(`{"method":`)},
		}
		const rounds = 200
		for i := range rounds * len(said) {
			s.says <- said[i%len(said)]
		}
		synctest.Wait()
		if got := out.count("level=WARN"); got != complaintBurst {
			t.Errorf("%d lines, want %d", got, complaintBurst)
		}
		<-time.After(complaintPause)
		s.says <- said[0]
		synctest.Wait()
		if got := out.count(fmt.Sprintf("messages=%d\n", rounds*len(said)-complaintBurst)); got != 1 {
			t.Errorf("what was not logged is told %d times, want once, before the next line", got)
		}
		s.says <- said[0]
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if got := out.count("messages=1\n"); got != 1 {
			t.Errorf("what was not logged is told %d times at the end, want once", got)
		}
	})
}

// A listen lasts as long as the connection: it does not keep an error without an id from the only call.
func TestAListenIsNoCall(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		listen := call(t.Context(), p, mcp.MethodListen, `{}`)
		only := call(t.Context(), p, "tools/call", `{}`)
		s.says <- `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`
		wantError(t, (<-only).err, upstream.NoResponse, upstream.Unusable)
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{}}`
		wantResult(t, <-listen, `{}`)
	})
}
