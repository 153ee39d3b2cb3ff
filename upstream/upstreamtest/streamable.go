package upstreamtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// Streamable runs a legacy server over Streamable HTTP until the test ends. Its handshake takes any revision and begins a
// session, whose id and revision each later request must name; it has no stream of its own. With events each reply is a
// stream, otherwise those are in JSON whose first message is the response. A disconnect cancels nothing.
func Streamable(t *testing.T, events bool, h Handler) *httptest.Server {
	t.Helper()
	p := &streamable{t: t, h: h, events: events, running: make(map[string]*cancelable), revised: make(map[string]string)}
	s := httptest.NewServer(p)
	t.Cleanup(func() {
		p.cancel("") // a test that failed ends all the same
		s.Close()
	})
	return s
}

// A streamable is the server of Streamable.
type streamable struct {
	t        *testing.T
	h        Handler
	events   bool
	sessions atomic.Int64

	mu      sync.Mutex // guards the rest
	running map[string]*cancelable
	revised map[string]string // revision by session, "" once it is forgotten
}

// A cancelable is a request that is being handled.
type cancelable struct {
	canceled chan struct{}
	once     sync.Once
}

func (c *cancelable) cancel() { c.once.Do(func() { close(c.canceled) }) }

// ServeHTTP answers one request.
func (p *streamable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session := r.Header.Get(mcp.HeaderSession)
	switch r.Method {
	case http.MethodDelete:
		p.cancel(session + " ")
		return
	case http.MethodPost:
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return // the engine gave up while it sent
	}
	m, err := wire.ParseRequest(data)
	if err != nil {
		p.t.Errorf("the engine sent %q: %v", data, err)
		return
	}
	if m.Method == mcp.MethodInitialize {
		p.initialize(w, m)
		return
	}
	p.mu.Lock()
	revision, known := p.revised[session]
	p.mu.Unlock()
	if known && revision == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if !known || r.Header.Get(mcp.HeaderVersion) != revision {
		p.t.Errorf("the engine sent %s in session %q with revision %q, want %q", m.Method, session, r.Header.Get(mcp.HeaderVersion), revision)
	}
	if m.Kind != wire.Request {
		if m.Method == mcp.NotificationCancelled {
			id, _ := m.Params.Value("requestId")
			p.cancel(session + " " + string(id) + " ")
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p.handle(w, r, m, revision)
}

func (p *streamable) initialize(w http.ResponseWriter, m *wire.Message) {
	revision, _ := m.Params.String("protocolVersion")
	session := fmt.Sprint("session-", p.sessions.Add(1))
	p.mu.Lock()
	p.revised[session] = revision
	p.mu.Unlock()
	w.Header().Set(mcp.HeaderSession, session)
	out := &reply{t: p.t, w: w, id: m.ID}
	if p.events {
		out.open()
	}
	out.Send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"protocolVersion":"` + revision + `","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"scripted","version":"1"}}}`)
}

// handle runs the handler until it returns, a cancel names the request, or its session ends.
func (p *streamable) handle(w http.ResponseWriter, r *http.Request, m *wire.Message, revision string) {
	key := r.Header.Get(mcp.HeaderSession) + " " + string(m.ID) + " "
	c := &cancelable{canceled: make(chan struct{})}
	p.mu.Lock()
	p.running[key] = c
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, key)
	}()
	defer c.cancel()
	out := &reply{t: p.t, w: w, id: m.ID}
	sender := Sender(forgetful{out, p, r.Header.Get(mcp.HeaderSession)})
	if p.events {
		out.open()
		sender = out
	}
	p.h(&Request{Message: m, Revision: revision, Canceled: c.canceled, Sender: sender})
}

// A forgetful is a reply that has not begun, in a session that can be forgotten.
type forgetful struct {
	*reply
	server  *streamable
	session string
}

// Forget ends the session and answers as one that never knew it.
func (f forgetful) Forget() {
	f.server.mu.Lock()
	f.server.revised[f.session] = ""
	f.server.mu.Unlock()
	f.w.WriteHeader(http.StatusNotFound)
}

// cancel cancels the requests whose key begins so.
func (p *streamable) cancel(prefix string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, c := range p.running {
		if strings.HasPrefix(key, prefix) {
			c.cancel()
		}
	}
}

// open begins a stream before there is a message to send.
func (r *reply) open() {
	r.stream = true
	r.w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(r.w).Flush()
}
