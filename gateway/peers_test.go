package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcp-gateway/gateway/config"
	"mcp-gateway/internal/wire"
)

// childEnv makes the test binary a server over stdio, of the kind that it names.
const childEnv = "GATEWAY_TEST_CHILD"

func init() {
	switch os.Getenv(childEnv) {
	case "":
		return
	case "legacy":
		_ = legacyServer().Run(context.Background(), &mcp.StdioTransport{}) // it ends with its stdin
	case "modern":
		answerLines(os.Stdin, os.Stdout, modernAnswer)
	case "old":
		answerLines(os.Stdin, os.Stdout, oldAnswer)
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "broken":
		fmt.Fprintln(os.Stderr, "no database, password hunter2hunter2")
		os.Exit(3)
	}
	os.Exit(0)
}

// child is an upstream of the configuration that is the test binary, as a server of that kind.
func child(t *testing.T, kind string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`command: %q, env: {%s: %s}`, self, childEnv, kind)
}

// legacyServer has the tools echo, which repeats its argument after the word you, and fail.
func legacyServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{
		Name: "echo", Title: "Echo", Description: "Says it again.\nAnd no more.",
		InputSchema: json.RawMessage(`{"type":"object"}`),
	}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "you: " + string(r.Params.Arguments)}}}, nil
	})
	server.AddTool(&mcp.Tool{Name: "fail", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "it broke"}}}, nil
		})
	return server
}

// serveTest serves h until the test ends.
func serveTest(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func legacyHTTP(t *testing.T) string {
	t.Helper()
	server := legacyServer()
	return serveTest(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}

func legacySSE(t *testing.T) string {
	t.Helper()
	server := legacyServer()
	return serveTest(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil))
}

// modernAnswer is what a small modern server says to one message; nil is nothing.
func modernAnswer(text []byte) []byte {
	m, err := wire.ParseRequest(text)
	if err != nil || m.ID == nil {
		return nil
	}
	result := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	switch m.Method {
	case "server/discover":
	case "tools/list":
		result = `{"resultType":"complete","tools":[{"name":"region","description":"Mirrors.","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]}`
	case "tools/call":
		result = `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`
	case "initialize":
		return wire.AppendError(nil, m.ID, &wire.Error{Code: -32022, Message: "no", Data: []byte(`{"supported":["2026-07-28"]}`)})
	default:
		return wire.AppendError(nil, m.ID, &wire.Error{Code: wire.CodeMethodNotFound, Message: "no such method"})
	}
	return wire.AppendResult(nil, m.ID, []byte(result))
}

// oldAnswer is what a server says that knows the handshake only.
func oldAnswer(text []byte) []byte {
	m, err := wire.ParseRequest(text)
	switch {
	case err != nil || m.ID == nil:
		return nil
	case m.Method == "initialize":
		return wire.AppendResult(nil, m.ID, []byte(`{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"1"}}`))
	}
	return wire.AppendError(nil, m.ID, &wire.Error{Code: wire.CodeMethodNotFound, Message: "no such method"})
}

func answerLines(in io.Reader, out io.Writer, answer func([]byte) []byte) {
	decoder := json.NewDecoder(in)
	for {
		var message json.RawMessage
		if decoder.Decode(&message) != nil {
			return
		}
		if text := answer(message); text != nil {
			fmt.Fprintf(out, "%s\n", text)
		}
	}
}

// modernHTTP serves a small modern server, after each of before has let the request pass.
func modernHTTP(t *testing.T, before ...func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	return serveTest(t, modernHandler(before...))
}

func modernHandler(before ...func(http.ResponseWriter, *http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, pass := range before {
			if !pass(w, r) {
				return
			}
		}
		body, _ := io.ReadAll(r.Body)
		answer := modernAnswer(body)
		if r.Method != http.MethodPost || answer == nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(answer), `"error"`) {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = w.Write(answer)
	})
}

// wants lets pass who shows the token.
func wants(token string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer "+token {
			return true
		}
		w.WriteHeader(http.StatusUnauthorized)
		return false
	}
}

// counts counts the requests.
func counts(n *atomic.Int64) func(http.ResponseWriter, *http.Request) bool {
	return func(http.ResponseWriter, *http.Request) bool { n.Add(1); return true }
}

// legacySocket speaks to each connection as a legacy server, in frames.
func legacySocket(t *testing.T) string {
	t.Helper()
	server := legacyServer()
	at := serveTest(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		conn := websocket.NetConn(r.Context(), ws, websocket.MessageText)
		_ = server.Run(r.Context(), &mcp.IOTransport{Reader: conn, Writer: conn})
	}))
	return "ws" + strings.TrimPrefix(at, "http")
}

// parsed is the configuration with these upstreams, whose state stays with the test.
func parsed(t *testing.T, upstreams string) *config.Config {
	t.Helper()
	cfg, _, err := config.Parse("test", []byte("state_dir: "+t.TempDir()+"\nupstreams: "+upstreams))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
