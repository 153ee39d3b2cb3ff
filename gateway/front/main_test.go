package front

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"mcp-gateway/internal/leakcheck"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/seal"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const (
	testMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	testInfo = `{"name":"mcp-gateway","version":"1.2.3"}`
)

func testRing(t testing.TB) *seal.Ring {
	t.Helper()
	ring, err := seal.NewRing([][]byte{bytes.Repeat([]byte{7}, seal.KeySize)})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// start serves a Front on a real socket. Close is left to the server's clean-up, which waits for the handlers.
func start(t *testing.T, cfg Config) (*Front, *httptest.Server) {
	t.Helper()
	cfg.Ring = testRing(t)
	cfg.ServerInfo = []byte(testInfo)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Dispatch == nil {
		cfg.Dispatch = canned
	}
	f := New(cfg)
	server := httptest.NewUnstartedServer(f)
	server.Config.BaseContext = f.BaseContext
	server.Start()
	t.Cleanup(server.Close)
	return f, server
}

// canned answers by the tool's name, as some upstream would.
func canned(_ context.Context, req *Request) *Reply {
	if req.Method == mcp.MethodToolsList {
		return &Reply{Revision: mcp.Modern, Result: object(`{"tools":[{"name":"a__x","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"z":1}],` +
			`"resultType":"complete","ttlMs":0,"cacheScope":"private"}`)}
	}
	code, failing := strings.CutPrefix(req.Name, "error")
	switch {
	case req.Name == "legacy":
		return &Reply{Revision: mcp.Revision20251125, Type: "complete", Result: object(`{"content":[{"type":"text","text":"\ud83d"}],"n":12345678901234567890, "structuredContent" : null,"ttlMs":"mine","x":null}`)}
	case req.Name == "modern":
		return &Reply{Revision: mcp.Modern, Type: "complete", Result: object(`{"resultType":"complete", "content":[],"cacheScope":"public","structuredContent":[1.0]}`)}
	case req.Name == "params":
		return &Reply{Revision: mcp.Modern, Type: "complete", Result: object(`{"got":` + string(req.Params.Raw()) + `}`)}
	case req.Name == "client":
		return &Reply{Revision: mcp.Modern, Type: "complete", Result: object(fmt.Sprintf(`{"capabilities":%q,"level":%q,"notify":%v}`,
			req.Client.Capabilities, req.Client.LogLevel, req.Notify != nil))}
	case req.Name == "notify":
		for _, n := range notifications {
			req.Notify(n)
		}
		return done
	case req.Name == "own mismatch":
		return &Reply{Error: &wire.Error{Code: mcp.CodeHeaderMismatch, Message: "the header says something else"}}
	case req.Name == "panic":
		panic("a bug")
	case failing:
		m, err := wire.ParseReply([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":` + code + `,"message":"m","data":{"d":1},"more":true}}`))
		if err != nil {
			panic(err)
		}
		return &Reply{Error: m.Error}
	}
	return &Reply{Error: &wire.Error{Code: wire.CodeInvalidParams, Message: `unknown tool "` + req.Name + `"`}}
}

// notifications are what the tool "notify" sends.
var notifications = []upstream.Notification{
	{Method: mcp.NotificationProgress, Params: object(`{"progressToken":"1","progress":1.0,"x":` + "\n" + `{"é":"\u00e9"}}`)},
	{Method: mcp.NotificationProgress, Params: object(`{"progressToken":1,"progress":2}`)},
	{Method: mcp.NotificationProgress, Params: object(`{"progress":3}`)},
	{Method: mcp.NotificationMessage, Params: object(`{"level":"debug","data":1}`)},
	{Method: mcp.NotificationMessage, Params: object(`{"level":"warning","data":12345678901234567890,"_meta":{"io.modelcontextprotocol/subscriptionId":7,"a":null}}`)},
	{Method: mcp.NotificationMessage, Params: object(`{"level":"emergency","data":null}`)},
	{Method: mcp.NotificationMessage, Params: object(`{"level":"loud","data":2}`)},
	{Method: mcp.NotificationMessage, Params: object(`{"data":3}`)},
	{Method: mcp.NotificationToolsChanged},
	{Method: mcp.NotificationCancelled, Params: object(`{"requestId":1}`)},
}

// changes are counted for whoever asks.
type changes struct {
	mu      sync.Mutex // guards all below
	count   uint64
	changed chan struct{}
}

func (c *changes) of(string) (uint64, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.count, c.changed
}

func (c *changes) add() {
	_, _ = c.of("")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	close(c.changed)
	c.changed = nil
}

func object(text string) wire.Object {
	o, err := wire.ParseObject([]byte(text))
	if err != nil {
		panic(err)
	}
	return o
}

// header makes an http.Header of pairs, keys as they are.
func header(pairs ...string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}

func modernHeader(method, name string, more ...string) http.Header {
	h := header("Mcp-Protocol-Version", mcp.Modern, "Mcp-Method", method)
	if name != "" {
		h["Mcp-Name"] = []string{name}
	}
	for i := 0; i < len(more); i += 2 {
		h[more[i]] = append(h[more[i]], more[i+1])
	}
	return h
}

func callBody(id, name string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `",` + testMeta + `}}`
}

func legacyCall(id, name string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `"}}`
}

type answer struct {
	status int
	header http.Header
	body   string
}

// send sends one request and reads the whole answer.
func send(t testing.TB, method, url string, h http.Header, body string) answer {
	t.Helper()
	return sendReader(t, method, url, h, strings.NewReader(body))
}

func sendReader(t testing.TB, method, url string, h http.Header, body io.Reader) answer {
	t.Helper()
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h
	if host := h["Host"]; host != nil {
		req.Host = host[0]
	}
	resp, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(text)}
}

// initialize begins a session and gives its token.
func initialize(t testing.TB, url, revision string, more ...string) string {
	t.Helper()
	got := send(t, http.MethodPost, url, header(more...), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+revision+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	token := got.header.Get("Mcp-Session-Id")
	if got.status != http.StatusOK || token == "" {
		t.Fatalf("initialize: %d %q, session %q", got.status, got.body, token)
	}
	return token
}

func (a answer) want(t testing.TB, status int, parts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("status %d, want %d; body %q", a.status, status, a.body)
	}
	for _, part := range parts {
		if !strings.Contains(a.body, part) {
			t.Errorf("body %q, want it to hold %q", a.body, part)
		}
	}
}
