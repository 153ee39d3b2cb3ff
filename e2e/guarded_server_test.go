package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A guarded is a modern server that takes calls with a good token only, and counts what reaches it.
type guarded struct {
	URL     string
	accepts func(token string) bool

	mu       sync.Mutex // guards all below
	received map[string]int
	refused  map[string]int
	headers  []http.Header
}

func newGuarded(t *testing.T, accepts func(token string) bool) *guarded {
	t.Helper()
	s := &guarded{accepts: accepts, received: map[string]int{}, refused: map[string]int{}}
	server := httptest.NewServer(s)
	s.URL = server.URL + "/mcp"
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

func (s *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req struct {
		cannedRequest
		Params struct {
			Name      string
			Arguments struct{ ID string }
		}
	}
	if err != nil || json.Unmarshal(body, &req) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	id := req.Params.Arguments.ID
	good := s.accepts(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	s.mu.Lock()
	s.headers = append(s.headers, r.Header.Clone())
	if req.Method == "tools/call" {
		s.received[id]++
		if !good {
			s.refused[id]++
		}
	}
	s.mu.Unlock()
	if !good {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	member := `"error":{"code":-32601,"message":"no such method"}`
	switch req.Method {
	case "server/discover":
		member = `"result":` + cannedDiscover
	case "tools/list":
		member = `"result":{"ttlMs":0,"cacheScope":"public",` + cannedModern + toolsNamed("act") + `}`
	case "tools/call":
		member = `"result":{` + cannedModern + `"content":[{"type":"text","text":` + jsonText(id) + `}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, message(req.cannedRequest, member))
}

// act calls the tool of the upstream called id with an identity of the call.
func act(t *testing.T, g *gateway, upstream, id string) (reply, error) {
	t.Helper()
	return tryPost(t.Context(), g.URL, modernHeader("tools/call", upstream+"__act"),
		modernRequest(`1`, "tools/call", fmt.Sprintf(`"name":"%s__act","arguments":{"id":%q}`, upstream, id)))
}

// parallel makes n calls at once and fails the test for each that does not succeed, or that reached the server more often than once
// and once more for a refusal of its own.
func (s *guarded) parallel(t *testing.T, g *gateway, upstream, round string, n int) {
	t.Helper()
	var together sync.WaitGroup
	for i := range n {
		together.Go(func() {
			id := fmt.Sprintf("%s-%d", round, i)
			r, err := act(t, g, upstream, id)
			if err != nil || textOf(r) != id {
				t.Errorf("call %s: %v %v", id, r, err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.received[id] != 1+s.refused[id] || s.refused[id] > 1 {
				t.Errorf("call %s reached the server %d times, and was refused %d times", id, s.received[id], s.refused[id])
			}
		})
	}
	together.Wait()
}
