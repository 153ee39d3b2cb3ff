package legacy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/sse"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/link"
	"mcp-gateway/upstream/upstreamtest"
)

// A streamServer is a scripted server over HTTP+SSE.
type streamServer struct {
	t        *testing.T
	h        upstreamtest.Handler
	endpoint string // how it is named; %d is the stream
	// post takes a POST in place of the server where it reports true.
	post func(w http.ResponseWriter, r *http.Request, body string) bool

	mu      sync.Mutex // guards the rest
	streams []*stream
}

// A stream is one GET.
type stream struct {
	peer *peer
	mu   sync.Mutex // guards writes
	w    http.ResponseWriter
	part bool // of an event
	gone bool // nothing may be written any more
	dead chan struct{}
	once sync.Once
	half bool // it is dead in one direction only
}

// streams runs the server, whose stream is at /sse.
func streams(t *testing.T, s *streamServer) string {
	t.Helper()
	s.t = t
	if s.endpoint == "" {
		s.endpoint = "/messages?stream=%d"
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sse", s.get)
	mux.HandleFunc("POST /messages", s.take)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/sse"
}

func (s *streamServer) get(w http.ResponseWriter, r *http.Request) {
	out := &stream{w: w, dead: make(chan struct{})}
	out.peer = newPeer(s.t, s.h, out)
	defer out.peer.end()
	defer out.leave()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	out.mu.Lock() // the client is not to answer before this is through
	s.mu.Lock()
	fmt.Fprintf(w, ": welcome\r\n\r\nevent: endpoint\r\ndata: "+s.endpoint+"\r\n\r\n", len(s.streams))
	s.streams = append(s.streams, out)
	s.mu.Unlock()
	_ = http.NewResponseController(w).Flush()
	out.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-out.dead:
		out.leave()
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			if out.half {
				_ = c.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, c)
			}
			_ = c.Close()
		}
	}
}

func (s *streamServer) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if s.post != nil && s.post(w, r, string(body)) {
		return
	}
	var n int
	_, _ = fmt.Sscan(r.URL.Query().Get("stream"), &n)
	s.mu.Lock()
	out := s.streams[n]
	s.mu.Unlock()
	out.peer.take(body)
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprint(w, "Accepted")
}

// leave ends all writing.
func (s *stream) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
}

// Send writes one event, or what is left of one.
func (s *stream) Send(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	if s.part {
		s.part = false
		_, _ = io.WriteString(s.w, message+"\n\n")
	} else {
		_, _ = s.w.Write(sse.AppendEvent(nil, []byte(message)))
	}
	_ = http.NewResponseController(s.w).Flush()
}

// Part writes what is no whole event yet.
func (s *stream) Part(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	if !s.part {
		s.part = true
		text = "data: " + text
	}
	_, _ = io.WriteString(s.w, text)
	_ = http.NewResponseController(s.w).Flush()
}

// Die cuts the stream.
func (s *stream) Die() { s.once.Do(func() { close(s.dead) }) }

// HalfClose ends the stream, and leaves its connection to the engine.
func (s *stream) HalfClose() {
	s.once.Do(func() {
		s.half = true
		close(s.dead)
	})
}

func overStream(c *Config, r *Remote) { c.SSE = r }

// streamUpstream is an upstream at address that has begun to connect.
func streamUpstream(t *testing.T, address string, change ...func(*Config)) (*Upstream, *logged) {
	t.Helper()
	cfg, out := remote(t, address, overStream, change...)
	return begin(t, cfg), out
}

func TestContractOverSSE(t *testing.T) {
	upstreamtest.Run(t, upstreamtest.Transport{
		Revision: mcp.LegacyLatest,
		Start: func(t *testing.T, h upstreamtest.Handler) upstream.Upstream {
			u, _ := streamUpstream(t, streams(t, &streamServer{h: h}))
			return u
		},
		Mute: func(t *testing.T) (upstream.Upstream, <-chan struct{}) {
			address, taken := upstreamtest.Mute(t)
			u, _ := streamUpstream(t, "http://"+address)
			return u, taken
		},
	})
}

func TestTheFirstMessagesOverSSE(t *testing.T) {
	var heard strings.Builder
	note := func(r *http.Request, body []byte) {
		fmt.Fprintf(&heard, "%s %s\n", r.Method, r.URL)
		_ = r.Header.Write(&heard)
		fmt.Fprintf(&heard, "%s\n", body)
	}
	answers := make(chan string, 3)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		note(r, body)
		switch text := string(body); {
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: endpoint\ndata: take?session=1#x\n\n")
			for {
				_ = http.NewResponseController(w).Flush()
				select {
				case text := <-answers:
					_, _ = w.Write(sse.AppendEvent(nil, []byte(text)))
				case <-r.Context().Done():
					return
				}
			}
		case strings.Contains(text, `"initialize"`):
			answers <- `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}}`
		case strings.Contains(text, `"id":2`):
			answers <- `{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`
		}
	}))
	t.Cleanup(s.Close)
	u, _ := streamUpstream(t, s.URL+"/a/sse?a=b", func(c *Config) {
		c.SSE.Header = http.Header{"X-Team": {"tools"}}
		c.SSE.Credential = new(counted)
	})
	if _, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList}); err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	golden(t, "first-sse.txt", strings.ReplaceAll(heard.String(), "\r\n", "\n"))
}

func TestAnEndpointIsOfTheSameOrigin(t *testing.T) {
	for _, test := range []struct{ stream, named, want string }{
		{"http://h/a/sse?k=v", "/messages?s=1", "http://h/messages?s=1"},
		{"http://h/a/sse?k=v", "messages?s=1#f", "http://h/a/messages?s=1"},
		{"http://h/a/sse?k=v", "?s=1", "http://h/a/sse?s=1"},
		{"http://h/a/sse", "http://h:80/m", "http://h:80/m"},
		{"https://h:443/a/sse", "https://h/m", "https://h/m"},
		{"http://H/sse", "HTTP://h/m", "http://h/m"},
		{"http://h/sse", "http://u:p@h/m", "http://h/m"},
		{"http://[::1]:8/sse", "http://[::1]:8/m", "http://[::1]:8/m"},
		{"http://h/sse", "http://other/m", ""},
		{"http://h/sse", "//other/m", ""},
		{"http://h/sse", "http://h:81/m", ""},
		{"http://h/sse", "https://h/m", ""},
		{"http://h/sse", "https://h:80/m", ""},
		{"http://h/sse", "http://h@other/m", ""},
		{"http://h/sse", "http:opaque", ""},
		{"http://h/sse", "file:///etc/passwd", ""},
		{"http://h/sse", "ws://h/m", ""},
		{"http://h/sse", "ht tp://\x01", ""},
		{"http://h/sse", "/" + strings.Repeat("x", maxEndpoint), ""},
	} {
		at, err := url.Parse(test.stream)
		if err != nil {
			t.Fatal(err)
		}
		got, err := endpoint(at, []byte(test.named))
		if test.want == "" && err == nil || test.want != "" && (err != nil || got.String() != test.want) {
			t.Errorf("%s names %.80q: %v, %v; want %q", test.stream, test.named, got, err, test.want)
		}
	}
}

func TestAnEndpointElsewhereGetsNothing(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("another origin was sent a message")
	}))
	defer elsewhere.Close()
	address := streams(t, &streamServer{endpoint: strings.Replace(elsewhere.URL, "://", "://user:planted@", 1) + "/m?key=planted&stream=%d"})
	u, _ := streamUpstream(t, address)
	text := upstreamtest.Await(t, u, upstream.Backoff).Err.Error()
	if !strings.Contains(text, elsewhere.URL) || !strings.Contains(text, strings.TrimSuffix(address, "/sse")) || strings.Contains(text, "planted") {
		t.Errorf("error %q does not name both origins, and no more", text)
	}
}

func TestAStreamThatCannotBeUsedSaysWhy(t *testing.T) {
	answer := func(status int, media, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	const events = "text/event-stream"
	for _, test := range []struct {
		name string
		h    http.HandlerFunc
		want string
	}{
		{"html", answer(200, "text/html", "<html>"), "text/html"},
		{"json", answer(200, "application/json", "{}"), "application/json"},
		{"redirect", answer(307, events, ""), "redirects are not followed"},
		{"401", answer(401, events, ""), "check the credential"},
		{"403", answer(403, events, ""), "check the credential"},
		{"404", answer(404, "text/plain", "secret"), "HTTP 404"},
		{"405", answer(405, "text/plain", "secret"), "`transport: sse` taken out"},
		{"500", answer(500, "text/plain", "secret"), "HTTP 500"},
		{"empty", answer(200, events, ""), "ended before it named an endpoint"},
		{"half", answer(200, events, "event: endpoint\ndata: /messages"), "ended before it named an endpoint"},
		{"message first", answer(200, events, "data: {}\n\nevent: endpoint\ndata: /m\n\n"), "does not begin with an endpoint"},
		{"no url", answer(200, events, "event: endpoint\ndata: %zz\n\n"), "is no url"},
		{"too large", answer(200, events, "event: endpoint\ndata: /"+strings.Repeat("x", maxEndpoint)+"\n\n"), "is over 8 KiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := httptest.NewServer(test.h)
			t.Cleanup(s.Close)
			u, _ := streamUpstream(t, s.URL+"/sse?key=planted")
			err := upstreamtest.Await(t, u, upstream.Backoff).Err
			if text := err.Error(); !strings.Contains(text, test.want) || strings.Contains(text, "planted") || strings.Contains(text, "secret") {
				t.Errorf("error %q, want %q", text, test.want)
			}
			if _, refused := errors.AsType[*link.RefusedError](err); refused != (test.name == "401" || test.name == "403") {
				t.Errorf("error %v: refused %v", err, refused)
			}
		})
	}
}

func TestAStreamThatHangs(t *testing.T) {
	for _, before := range []string{"", ": welcome\n\n"} {
		arrived := make(chan struct{}, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if before != "" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, before)
				_ = http.NewResponseController(w).Flush()
			}
			select {
			case arrived <- struct{}{}:
			default: // a later attempt
			}
			<-r.Context().Done()
		}))
		t.Cleanup(s.Close)

		slow, _ := streamUpstream(t, s.URL, func(c *Config) { c.StartTimeout = 50 * time.Millisecond })
		err := upstreamtest.Await(t, slow, upstream.Backoff).Err
		if !strings.Contains(err.Error(), "not connected within start_timeout (50ms)") {
			t.Errorf("error %v", err)
		}
		if err := slow.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-arrived:
		default:
		}

		u, _ := streamUpstream(t, s.URL)
		<-arrived
		failed := call(t.Context(), u, "any")
		for range 2 {
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
		}
		wantError(t, <-failed, upstream.NotSent, upstream.ClosedByGateway)
	}
}

func TestAModernServerOverSSEIsAVerdict(t *testing.T) {
	s := new(streamServer)
	s.post = func(w http.ResponseWriter, r *http.Request, _ string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.streams[0].Send(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2026-07-28"}}`)
		return true
	}
	u, _ := streamUpstream(t, streams(t, s))
	const want = "the gateway offered 2025-11-25, but the server answered with 2026-07-28, which has no handshake; " +
		"set `protocol: modern`, take `transport: sse` out and check the path of `url`"
	if got := upstreamtest.Await(t, u, upstream.Verdict).Err.Error(); got != want {
		t.Errorf("verdict %q\nwant    %q", got, want)
	}
}

// stuck is a transport that never connects for a call of the tool stuck, nor for a call of the tool unreachable.
type stuck struct{ *http.Transport }

func (s stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(body), `"unreachable"`) {
			return nil, errors.New("connection refused")
		}
		if strings.Contains(string(body), `"stuck"`) {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(strings.NewReader(string(body)))
	}
	return s.Transport.RoundTrip(r)
}

func (s stuck) Close() error {
	s.CloseIdleConnections()
	return nil
}
