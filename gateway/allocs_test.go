//go:build !race

package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"strconv"
	"testing"
	"time"

	"mcp-gateway/gateway/config"
	"mcp-gateway/upstream/modern"
)

// The limits of one small tools/call. They are exact counts and not times, so they hold on a busy machine. They are
// taken without the race detector, which allocates by itself.
const (
	maxHandlerAllocs, maxHandlerBytes = 50, 6 << 10
	maxHTTPAllocs, maxHTTPBytes       = 120, 12 << 10
)

const (
	smallCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__echo","arguments":{"message":"hello"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}`
	smallResult = `"result":{"resultType":"complete","content":[{"type":"text","text":"hello"}]}}`
	discovered  = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}`
	listed      = `"result":{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}}`
)

// answerTo is the canned answer of a server to a request of the gateway, with its id.
func answerTo(dst, body []byte) []byte {
	id := body[bytes.Index(body, []byte(`"id":`))+len(`"id":`):]
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(append(dst, id[:bytes.IndexByte(id, ',')]...), ',')
	switch {
	case bytes.Contains(body, []byte(`"server/discover"`)):
		return append(dst, discovered...)
	case bytes.Contains(body, []byte(`"tools/list"`)):
		return append(dst, listed...)
	}
	return append(dst, smallResult...)
}

// canned is a transport that answers from memory, one request at a time, and allocates nothing: what is counted is the
// handler's own share.
type canned struct {
	turn     chan struct{} // holds a token while no answer is being read
	request  []byte
	answer   []byte
	left     bytes.Reader
	response http.Response
}

func newCanned() *canned {
	c := &canned{turn: make(chan struct{}, 1), request: make([]byte, 4096), answer: make([]byte, 0, 4096)}
	c.turn <- struct{}{}
	c.response = http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: c}
	return c
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	<-c.turn
	if _, err := io.ReadFull(r.Body, c.request[:r.ContentLength]); err != nil {
		return nil, err
	}
	c.answer = answerTo(c.answer[:0], c.request[:r.ContentLength])
	c.left.Reset(c.answer)
	c.response.ContentLength = int64(len(c.answer))
	return &c.response, nil
}

func (c *canned) Read(p []byte) (int, error) { return c.left.Read(p) }

func (c *canned) Close() error {
	select {
	case c.turn <- struct{}{}:
	default: // closed before
	}
	return nil
}

// small serves one upstream at address, over transport, or over sockets with a nil one.
func small(tb testing.TB, address string, transport http.RoundTripper) *Gateway {
	tb.Helper()
	text := fmt.Sprintf("state_dir: %s\nupstreams: {up: {url: 'http://%s/mcp', tools: {allow: ['e*'], deny: ['x*']}}}", tb.TempDir(), address)
	cfg, _, err := config.Parse("test", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	g, err := assemble(cfg, Options{Log: io.Discard, Status: io.Discard}, func(u config.Upstream, with parts) (engine, error) {
		target, err := url.Parse(u.URL.Reveal())
		return modern.New(modern.Config{
			ID: u.ID, URL: target, StartTimeout: u.StartTimeout, ReconnectMin: u.Reconnect.Min, ReconnectMax: u.Reconnect.Max,
			Log: with.log, Transport: transport,
		}), err
	})
	if err != nil {
		tb.Fatal(err)
	}
	for _, m := range g.snapshot.Load().members {
		m.Start()
	}
	c := g.snapshot.Load().catalog
	c.Start()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	c.Settled(ctx)
	if !c.View().Listed("up") {
		tb.Fatal("the upstream has not listed")
	}
	tb.Cleanup(func() {
		if err := g.teardown(); err != nil {
			tb.Error(err)
		}
		_ = g.closeLog()
	})
	return g
}

func callHeader() http.Header {
	return http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"up__echo"},
	}
}

// A bin is a ResponseWriter that keeps the last answer.
type bin struct {
	header http.Header
	status int
	body   []byte
}

func (b *bin) Header() http.Header              { return b.header }
func (b *bin) WriteHeader(status int)           { b.status = status }
func (b *bin) Write(p []byte) (int, error)      { b.body = append(b.body, p...); return len(p), nil }
func (b *bin) SetReadDeadline(time.Time) error  { return nil }
func (b *bin) SetWriteDeadline(time.Time) error { return nil }
func (b *bin) Flush()                           {}

// handlerCall makes one call through the handler alone, with all that belongs to the caller made before.
func handlerCall(tb testing.TB) func() {
	g := small(tb, "127.0.0.1:1", newCanned())
	w := &bin{header: make(http.Header, 8), body: make([]byte, 0, 1024)}
	body, message := bytes.NewReader(nil), []byte(smallCall)
	r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:8080/mcp", nil)
	if err != nil {
		tb.Fatal(err)
	}
	r.Header, r.ContentLength, r.RemoteAddr = callHeader(), int64(len(smallCall)), "127.0.0.1:1"
	r.Body = io.NopCloser(body)
	handler := http.HandlerFunc(g.serveHTTP)
	return func() {
		body.Reset(message)
		clear(w.header)
		w.body = w.body[:0]
		handler.ServeHTTP(w, r)
		if w.status != http.StatusOK || !bytes.HasSuffix(w.body, []byte(smallResult)) {
			tb.Fatalf("%d %s", w.status, w.body)
		}
	}
}

// socketCall makes one call through net/http on both legs. What stands at both ends allocates nothing.
func socketCall(tb testing.TB) func() {
	backend := listen(tb)
	go serveCanned(backend)
	g := small(tb, backend.Addr().String(), nil)
	front := listen(tb)
	server := &http.Server{Handler: http.HandlerFunc(g.serveHTTP), BaseContext: g.front.Load().BaseContext}
	go server.Serve(front)
	tb.Cleanup(func() { server.Close() })
	conn, err := net.Dial("tcp", front.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	var request bytes.Buffer
	fmt.Fprintf(&request, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", front.Addr(), len(smallCall))
	if err := callHeader().Write(&request); err != nil {
		tb.Fatal(err)
	}
	request.WriteString("\r\n" + smallCall)
	answer := make([]byte, 4096)
	return func() {
		if _, err := conn.Write(request.Bytes()); err != nil {
			tb.Fatal(err)
		}
		n := 0
		for !bytes.HasSuffix(answer[:n], []byte(smallResult)) {
			m, err := conn.Read(answer[n:])
			if err != nil || n+m == len(answer) {
				tb.Fatalf("%v after %s", err, answer[:n])
			}
			n += m
		}
	}
}

func listen(tb testing.TB) net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { ln.Close() })
	return ln
}

// serveCanned answers every POST on ln until it is closed.
func serveCanned(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			in, body, out := make([]byte, 0, 8192), make([]byte, 0, 512), make([]byte, 0, 1024)
			for {
				n, err := conn.Read(in[len(in):cap(in)])
				if err != nil {
					return
				}
				in = in[:len(in)+n]
				request, ok := whole(in)
				if !ok {
					continue
				}
				body = answerTo(body[:0], request)
				out = append(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
				out = strconv.AppendInt(out, int64(len(body)), 10)
				out = append(append(out, "\r\n\r\n"...), body...)
				if _, err := conn.Write(out); err != nil {
					return
				}
				in = in[:0]
			}
		}()
	}
}

// whole is the body of the request in in, once all of it is there.
func whole(in []byte) ([]byte, bool) {
	const field = "Content-Length: "
	end := bytes.Index(in, []byte("\r\n\r\n"))
	at := bytes.Index(in, []byte(field))
	if end < 0 || at < 0 {
		return nil, false
	}
	length := 0
	for _, c := range in[at+len(field):] {
		if c < '0' || c > '9' {
			break
		}
		length = 10*length + int(c-'0')
	}
	body := in[end+len("\r\n\r\n"):]
	return body, len(body) == length
}

// cost is what one call allocates, in all goroutines together.
func cost(call func()) (allocs, size float64) {
	for range 200 {
		call()
	}
	const runs = 2000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range runs {
		call()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / runs, float64(after.TotalAlloc-before.TotalAlloc) / runs
}

func TestAllocations(t *testing.T) {
	for _, tt := range []struct {
		name          string
		call          func(testing.TB) func()
		allocs, bytes float64
	}{
		{"handler", handlerCall, maxHandlerAllocs, maxHandlerBytes},
		{"net/http on both legs", socketCall, maxHTTPAllocs, maxHTTPBytes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			allocs, size := cost(tt.call(t))
			t.Logf("%.1f allocations, %.0f bytes; at most %.0f and %.0f", allocs, size, tt.allocs, tt.bytes)
			if allocs > tt.allocs || size > tt.bytes {
				t.Errorf("a small call costs %.1f allocations and %.0f bytes; at most %.0f and %.0f", allocs, size, tt.allocs, tt.bytes)
			}
		})
	}
}

func BenchmarkHandler(b *testing.B) {
	call := handlerCall(b)
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

func BenchmarkBothLegs(b *testing.B) {
	call := socketCall(b)
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}
