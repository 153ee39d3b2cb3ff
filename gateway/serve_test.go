package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcp-gateway/gateway/config"
	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// An ending engine tells when its process would have been ended.
type ending struct {
	fake
	closed chan struct{}
}

func (c *ending) Close() error {
	close(c.closed)
	return nil
}

// Clients that take nothing, or send nothing, keep their connection. They must not keep the children.
func TestSilentClientsDoNotHoldUpTheEnd(t *testing.T) {
	cfg, _, err := config.Parse("test", []byte("state_dir: "+t.TempDir()+"\nstart_grace: 1ms\nshutdown_timeout: 1ms\nupstreams: {a: {command: a}}"))
	if err != nil {
		t.Fatal(err)
	}
	e := &ending{fake: fake{tools: oneTool}, closed: make(chan struct{})}
	serving := make(told, 1)
	opts := Options{Log: io.Discard, Status: serving, Banner: "serving"}
	g, err := assemble(cfg, opts, func(config.Upstream, parts) (engine, error) { return e, nil })
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx, ln, nil) }()
	<-serving
	// An answer of 4 MB, which repeats the id, to a client that takes none of it; and a body that never comes.
	takesNothing := rawPost(t, ln, `{"jsonrpc":"2.0","id":"`+strings.Repeat("x", 4<<20-200)+`","method":"no/such"}`, 0)
	sendsNothing := rawPost(t, ln, `{`, 100)
	defer takesNothing.Close()
	defer sendsNothing.Close()
	stop()
	<-e.closed
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// told takes the word that requests are about to be served.
type told chan struct{}

func (c told) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "serving") {
		c <- struct{}{}
	}
	return len(p), nil
}

// rawPost sends a request whose body is announced longer by missing bytes, and reads nothing.
func rawPost(t *testing.T, ln net.Listener, body string, missing int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " + string(appendInt(nil, len(body)+missing)) + "\r\n\r\n"
	if _, err := io.WriteString(conn, head+body); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestGateOnTheWayToTheEnd(t *testing.T) {
	g := &Gateway{}
	g.front.Store(front.New(front.Config{Log: slog.New(slog.DiscardHandler)}))
	for _, tt := range []struct {
		stage      int32
		status     int
		connection string
		retry      string
	}{{serving, 404, "", ""}, {draining, 404, "close", ""}, {closing, 503, "close", "1"}} {
		g.stage.Store(tt.stage)
		w := httptest.NewRecorder()
		g.serveHTTP(w, httptest.NewRequest(http.MethodGet, "/elsewhere", nil))
		if w.Code != tt.status || w.Header().Get("Connection") != tt.connection || w.Header().Get("Retry-After") != tt.retry {
			t.Errorf("in stage %d: status %d, headers %v", tt.stage, w.Code, w.Header())
		}
	}
}
