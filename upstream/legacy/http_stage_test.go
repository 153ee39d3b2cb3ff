package legacy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// A stage is a server over Streamable HTTP of which a test plays a part. What the test's own play does not answer gets
// what a plain server would say: each handshake begins a session, s-1 and so on; messages are taken, and there is neither
// a stream nor an end of sessions.
type stage struct {
	*httptest.Server
	revision string
	play     func(w http.ResponseWriter, r *heard) (played bool)

	mu       sync.Mutex // guards the rest
	sessions int
	seen     []string
}

// A heard is one request.
type heard struct {
	*http.Request
	what    string // the JSON-RPC method, else the HTTP one, or "answer"
	session string
	id      string
	body    string
}

func newStage(t *testing.T, revision string, play func(w http.ResponseWriter, r *heard) bool) *stage {
	t.Helper()
	s := &stage{revision: revision, play: play}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *stage) serve(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r := &heard{Request: req, what: req.Method, session: req.Header.Get(mcp.HeaderSession), body: string(body)}
	if req.Method == http.MethodPost {
		m, err := wire.ParseReply(body)
		switch {
		case err != nil:
			r.what = "broken"
		case m.Method == "":
			r.what, r.id = "answer", string(m.ID)
		default:
			r.what, r.id = m.Method, string(m.ID)
		}
	}
	s.mu.Lock()
	s.seen = append(s.seen, strings.TrimSpace(r.what+" "+r.session))
	s.mu.Unlock()
	if s.play != nil && s.play(w, r) {
		return
	}
	switch {
	case r.what == mcp.MethodInitialize:
		s.mu.Lock()
		s.sessions++
		w.Header().Set(mcp.HeaderSession, fmt.Sprint("s-", s.sessions))
		s.mu.Unlock()
		r.result(w, `{"protocolVersion":"`+s.revision+`","capabilities":{}}`)
	case req.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.id == "" || r.what == "answer":
		w.WriteHeader(http.StatusAccepted)
	default:
		r.result(w, `{"by":"`+r.session+`"}`)
	}
}

// result answers in JSON.
func (r *heard) result(w http.ResponseWriter, result string) {
	r.json(w, http.StatusOK, `{"jsonrpc":"2.0","id":ID,"result":`+result+`}`)
}

// json answers with a text in which ID is the request's.
func (r *heard) json(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.ReplaceAll(text, "ID", r.id))
}

// events answers with a stream, in whose text ID is the request's, and leaves it open.
func (r *heard) events(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, strings.ReplaceAll(text, "ID", r.id))
	_ = http.NewResponseController(w).Flush()
}

// told is what the server got but for GETs, whose time is their own.
func (s *stage) told() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var told []string
	for _, what := range s.seen {
		if !strings.HasPrefix(what, http.MethodGet) {
			told = append(told, what)
		}
	}
	return strings.Join(told, ", ")
}

// ask calls a tool, and may be sent again.
func ask(t *testing.T, u *Upstream) (string, error) {
	t.Helper()
	return askWith(t, u, &upstream.Request{Resend: new(upstream.Budget)})
}

func askWith(t *testing.T, u *Upstream, req *upstream.Request) (string, error) {
	t.Helper()
	req.Method = mcp.MethodToolsCall
	if req.Params.IsZero() {
		req.Params = object(t, `{"name":"any"}`)
	}
	resp, err := u.Call(t.Context(), req)
	if err != nil {
		return "", err
	}
	return string(resp.Result.Raw()), nil
}

func object(t *testing.T, text string) wire.Object {
	t.Helper()
	o, err := wire.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}
