package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

// A heardMessage is what a server was told, as far as it concerns calls and their cancels.
type heardMessage struct {
	ID     json.RawMessage
	Method string
	Params struct{ RequestID json.RawMessage }
}

// A hearer is what a server was told, whatever its transport.
type hearer interface {
	heard() []heardMessage
	gone() int // POSTs of calls that the gateway has left
}

// A recorder is a server over every transport of HTTP that records what it is told. The call whose id is wait is never
// answered.
type recorder struct {
	*effects
	mu   sync.Mutex // guards all below
	told []heardMessage
	left int
}

func newRecorder(t *testing.T, transport string) *recorder {
	t.Helper()
	r := &recorder{effects: &effects{modern: transport == "http-modern", file: filepath.Join(t.TempDir(), "effects"), life: t.Context(),
		streams: map[string]chan string{}}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", r.recorded(r.post))
	mux.HandleFunc("GET /sse", r.events)
	mux.HandleFunc("POST /messages", r.recorded(r.message))
	mux.HandleFunc("GET /ws", r.webSocket)
	r.server = newFlaky(t, mux)
	r.URL = r.server.URL
	return r
}

func (r *recorder) record(message []byte) {
	var req heardMessage
	if json.Unmarshal(message, &req) == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told = append(r.told, req)
	}
}

func (r *recorder) recorded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r.record(body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		next(w, req)
		if bytes.Contains(body, []byte(`"tools/call"`)) && req.Context().Err() != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.left++
		}
	}
}

func (r *recorder) webSocket(w http.ResponseWriter, req *http.Request) {
	conn, err := websocket.Accept(w, req, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	for {
		_, frame, err := conn.Read(r.life)
		if err != nil {
			return
		}
		r.record(frame)
		c, answer := answerEffects(frame, false)
		if answer != "" && c.Params.Arguments.Fault != "hang" && conn.Write(r.life, websocket.MessageText, []byte(answer)) != nil {
			return
		}
	}
}

func (r *recorder) heard() []heardMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]heardMessage(nil), r.told...)
}

func (r *recorder) gone() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// A cannedStdio is a hearer by its record.
func (c cannedStdio) heard() (messages []heardMessage) {
	record, _ := os.ReadFile(c.record) // it may not have started yet
	for line := range bytes.Lines(record) {
		var req heardMessage
		if json.Unmarshal(line, &req) == nil {
			messages = append(messages, req)
		}
	}
	return messages
}

func (c cannedStdio) gone() int { return 0 }

// cancelled is the part of a configuration for a server with a tool that never answers, and how it is called.
func cancelled(t *testing.T, transport string) (upstream, hang, fine string, h hearer) {
	t.Helper()
	hang = `"name":"acts__act","arguments":{"id":"1","fault":"hang","when":"before"}`
	fine = `"name":"acts__act","arguments":{"id":"2","fault":"none"}`
	switch transport {
	case "stdio", "stdio-modern":
		role, pin := "faulty", "legacy"
		if transport == "stdio-modern" {
			role, pin = "faulty-modern", "modern"
		}
		c := newCannedStdio(t, role)
		return c.command() + "    protocol: " + pin + "\n", `"name":"acts__silent"`, `"name":"acts__fine"`, c
	}
	r := newRecorder(t, transport)
	switch transport {
	case "http":
		upstream = "    url: " + r.URL + "/mcp\n    protocol: legacy\n"
	case "http-modern":
		upstream = "    url: " + r.URL + "/mcp\n"
	case "sse":
		upstream = "    url: " + r.URL + "/sse\n    protocol: legacy\n    transport: sse\n"
	case "ws":
		upstream = "    url: ws" + strings.TrimPrefix(r.URL, "http") + "/ws\n"
	}
	return upstream, hang, fine, r
}

// TestAStoppedCallStopsItsTool has modern clients that disconnect and legacy clients that cancel. On every transport the server
// is told by its means, and once; a legacy client that only disconnects stops nothing.
func TestAStoppedCallStopsItsTool(t *testing.T) {
	for _, transport := range []string{"stdio", "stdio-modern", "http", "http-modern", "sse", "ws"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			upstream, hang, fine, h := cancelled(t, transport)
			g := serve(t, "shutdown_timeout: 1s\nupstreams:\n  acts:\n"+upstream)
			g.allListed(t)
			session := handshake(t, g.URL, "2025-11-25")
			header := legacyHeader(session.revision, session.session)

			// begun starts a call and waits until the server has it; what comes of it is told once it is over.
			begun := func(ctx context.Context, header http.Header, body []byte) <-chan reply {
				before := len(only(h, "tools/call"))
				over := make(chan reply, 1)
				go func() {
					r, _ := tryPost(ctx, g.URL, header, body)
					over <- r
				}()
				if !eventually(patience, func() bool { return len(only(h, "tools/call")) == before+1 }) {
					t.Fatal("the call never arrived")
				}
				return over
			}
			stopped := func(n int) {
				t.Helper()
				if transport == "http-modern" {
					if !eventually(patience, func() bool { return h.gone() == n }) {
						t.Errorf("%d calls were left, want %d", h.gone(), n)
					}
				} else if !eventually(patience, func() bool { return len(only(h, "notifications/cancelled")) >= n }) {
					t.Errorf("the server was never told of stop %d", n)
				}
			}

			ctx, disconnect := context.WithCancel(t.Context())
			over := begun(ctx, modernHeader("tools/call", nameOf(hang)), modernRequest(`1`, "tools/call", hang))
			disconnect()
			<-over
			stopped(1)

			// A legacy client may come back for the answer of what it leaves.
			ctx, disconnect = context.WithCancel(t.Context())
			over = begun(ctx, header, legacyRequest(`"left"`, "tools/call", hang))
			disconnect()
			<-over

			over = begun(t.Context(), header, legacyRequest(`"stop"`, "tools/call", hang))
			r := post(t, g.URL, header, []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"stop"}}`))
			if r.status != http.StatusAccepted {
				t.Errorf("notifications/cancelled: %v", r)
			}
			if r := <-over; r.status != http.StatusAccepted && r.status != http.StatusOK || r.result != nil || r.failure != nil {
				t.Errorf("the cancelled call is answered: %v", r)
			}
			stopped(2)

			// What is left of a call would be behind it by now.
			if r := (modernClient{g.URL}).ask(t, `1`, "tools/call", fine); textOf(r) == "" {
				t.Errorf("afterwards: %v", r)
			}
			judgeCancels(t, transport, h)
		})
	}
}

// only are the messages of one method.
func only(h hearer, method string) (messages []heardMessage) {
	for _, m := range h.heard() {
		if m.Method == method {
			messages = append(messages, m)
		}
	}
	return messages
}

// judgeCancels holds the cancels against the calls: the first was left by a modern client, the second by a legacy one, the third was
// cancelled.
func judgeCancels(t *testing.T, transport string, h hearer) {
	t.Helper()
	calls := only(h, "tools/call")
	if len(calls) != 4 {
		t.Fatalf("the server was called %d times, want 4", len(calls))
	}
	var got []string
	for _, c := range only(h, "notifications/cancelled") {
		got = append(got, string(c.Params.RequestID))
	}
	want := []string{string(calls[0].ID), string(calls[2].ID)}
	if transport == "http-modern" {
		want = nil
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("cancelled were %q, want %q", got, want)
	}
	if strings.HasPrefix(transport, "http") && h.gone() != 2 {
		t.Errorf("%d calls were left, want 2", h.gone())
	}
}

// TestWhatDoesNotFitIsShed has an upstream that takes one call at a time, and lets one more wait.
func TestWhatDoesNotFitIsShed(t *testing.T) {
	for era, pin := range map[string]string{"modern": "", "legacy": legacyPin} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			web := newFaulty(t, era == "modern")
			g := serve(t, "upstreams:\n  web: {url: "+quoted(web.URL)+pin+", concurrency: 1, queue: 1}\n")
			g.allListed(t)
			first := started(t, g.URL, "web__held")
			<-web.entered
			// Of the next two one waits and the other does not fit, whichever comes first.
			one, two := started(t, g.URL, "web__held"), started(t, g.URL, "web__held")
			var shed reply
			waits := two
			select {
			case shed = <-one:
			case shed = <-two:
				waits = one
			case r := <-first:
				t.Fatalf("the first call: %v", r)
			}
			want := verdict{"not-sent", "queue-full", "web", "tools/call", "safe", 0}
			if v, text, ok := failed(shed); !ok || v != want || text == "" {
				t.Errorf("the call that does not fit: %+v %q, want %+v", v, text, want)
			}
			if n := web.asked("held"); n != 1 {
				t.Errorf("the server has %d calls, want 1", n)
			}
			web.release()
			unharmed(t, []<-chan reply{first, waits})
			if n := web.asked("held"); n != 2 {
				t.Errorf("the server was called %d times, want 2", n)
			}
		})
	}
}
