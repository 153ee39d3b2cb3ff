package exchange

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"mcp-gateway/internal/leakcheck"
	"mcp-gateway/upstream"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const ours = `{"jsonrpc":"2.0","id":7,"result":{"ok":true}}`

// newClient makes a client of the server at address.
func newClient(t *testing.T, address string, change ...func(*Config)) *Client {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{URL: u}
	for _, f := range change {
		f(&cfg)
	}
	c := New(cfg)
	t.Cleanup(c.Close)
	return c
}

// A maker makes clients as newClient does.
type maker func(t *testing.T, address string, change ...func(*Config)) *Client

// eachTransport runs a test over connections of the client's own, and over net/http's transport.
func eachTransport(t *testing.T, test func(*testing.T, maker)) {
	t.Run("own", func(t *testing.T) { test(t, newClient) })
	t.Run("net/http", func(t *testing.T) {
		test(t, func(t *testing.T, address string, change ...func(*Config)) *Client {
			c := newClient(t, address, change...)
			c.address = ""
			return c
		})
	})
}

func request() *Request {
	return &Request{
		ID:     []byte("7"),
		Body:   []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`),
		Header: http.Header{"Content-Type": {"application/json"}},
	}
}

// serve runs h as the server until the test ends.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// answer writes one reply as it is.
func answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// A rawServer hands each connection to a script.
type rawServer struct {
	net.Listener
	accepted atomic.Int64
	wg       sync.WaitGroup
}

// serveRaw runs script on each connection, which is closed after it, until the test ends.
func serveRaw(t *testing.T, script func(n int64, c *net.TCPConn)) *rawServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{Listener: l}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := s.accepted.Add(1)
			s.wg.Go(func() {
				defer c.Close()
				script(n, c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.wg.Wait()
	})
	return s
}

func (s *rawServer) url() string { return "http://" + s.Addr().String() }

// readRequest takes one whole request off c.
func readRequest(t *testing.T, r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	body := make([]byte, req.ContentLength)
	if _, err := req.Body.Read(body); err != nil && len(body) == 0 {
		t.Errorf("body of the request: %v", err)
	}
	return true
}

func want(t *testing.T, err error, outcome upstream.Outcome, cause upstream.Cause, status int) *upstream.Error {
	t.Helper()
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		t.Fatalf("error is %v, want %s (%s)", err, outcome, cause)
	}
	if e.Outcome != outcome || e.Cause != cause || e.HTTPStatus != status {
		t.Fatalf("error is %v with HTTP status %d, want %s (%s) with %d", e, e.HTTPStatus, outcome, cause, status)
	}
	return e
}

// pipes makes script the server of each connection, numbered from 1, in memory. The function that it returns closes the
// client and waits for the scripts.
func pipes(c *Client, script func(n int64, r *bufio.Reader, far net.Conn)) (end func()) {
	var n atomic.Int64
	var scripts sync.WaitGroup
	c.dialer = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		scripts.Go(func() {
			defer far.Close()
			script(n.Add(1), bufio.NewReader(far), far)
		})
		return near, nil
	}
	return func() {
		c.Close()
		scripts.Wait()
	}
}
