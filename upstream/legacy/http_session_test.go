package legacy

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

const handshake = "initialize, notifications/initialized s-1"

// A reply to a call says what it says about the session, and no more.
func TestALostSession(t *testing.T) {
	const call, again = ", tools/call s-1", ", initialize, notifications/initialized s-2, tools/call s-2"
	for _, test := range []struct {
		name   string
		status int
		text   string
		first  string // the result, else the outcome
		then   string // what the server got after it until a second call was answered
	}{
		{"404, empty", 404, "", `{"by":"s-2"}`, again + ", tools/call s-2"},
		{"404, an error without an id", 404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, `{"by":"s-2"}`, again + ", tools/call s-2"},
		{"404, no JSON", 404, `<html>`, `{"by":"s-2"}`, again + ", tools/call s-2"},
		{"404, an error with our id", 404, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"no"}}`, "JSON-RPC error -32001: no", again},
		{"404, a result with our id", 404, `{"jsonrpc":"2.0","id":ID,"result":{"odd":1}}`, `{"odd":1}`, again},
		{"404, our id in what cannot be read", 404, `{"jsonrpc":"2.0","id":ID,"result":7}`, "no-response (http-error)", ", ping s-1, tools/call s-1"},
		{"400, empty", 400, "", "no-response", ", ping s-1, tools/call s-1"},
		{"400, an error without an id", 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No session"}}`, "no-response (http-error)", ", ping s-1, tools/call s-1"},
		{"400, an error with our id", 400, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32600,"message":"no"}}`, "JSON-RPC error -32600: no", ", tools/call s-1"},
		{"410", 410, "", "no-response (http-error)", ", ping s-1, tools/call s-1"},
		{"200, an error without an id", 200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`, "no-response (unusable)", ", ping s-1, tools/call s-1"},
		{"500", 500, "", "no-response (http-error)", ", tools/call s-1"},
		{"403", 403, "", "error-response (refused)", ", tools/call s-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var once sync.Once
			s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) (played bool) {
				if r.what == mcp.MethodToolsCall {
					once.Do(func() { r.json(w, test.status, test.text); played = true })
				}
				return played
			})
			u, _ := overHTTP(t, s.URL)
			got, err := ask(t, u)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, test.first) {
				t.Errorf("the call gave %s, want %s", got, test.first)
			}
			if got, err := ask(t, u); !strings.HasPrefix(got, `{"by":"s-`) {
				t.Errorf("the call after it gave %s (%v)", got, err)
			}
			if want := handshake + call + test.then; s.told() != want {
				t.Errorf("the server got %s\nwant           %s", s.told(), want)
			}
		})
	}
}

// A server that refuses the ping has lost the session, and the call that asked had not been sent.
func TestARefusedPing(t *testing.T) {
	for name, refuse := range map[string]func(w http.ResponseWriter, r *heard){
		"404": func(w http.ResponseWriter, _ *heard) { w.WriteHeader(404) },
		"400": func(w http.ResponseWriter, _ *heard) { w.WriteHeader(400) },
		"error": func(w http.ResponseWriter, r *heard) {
			r.json(w, 200, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"no"}}`)
		},
		"error without an id": func(w http.ResponseWriter, r *heard) {
			r.json(w, 200, `{"id":null,"jsonrpc":"2.0","error":{"code":1,"message":"no"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
				switch {
				case r.session != "s-1" || r.id == "":
					return false
				case r.what == mcp.MethodPing:
					refuse(w, r)
				default:
					w.WriteHeader(400)
				}
				return true
			})
			u, _ := overHTTP(t, s.URL)
			_, err := ask(t, u)
			wantError(t, err, upstream.NoResponse, upstream.HTTPError)
			if got, err := askWith(t, u, new(upstream.Request)); got != `{"by":"s-2"}` { // which needs no budget
				t.Errorf("the next call gave %s (%v)", got, err)
			}
			want := handshake + ", tools/call s-1, ping s-1, initialize, notifications/initialized s-2, tools/call s-2"
			if s.told() != want {
				t.Errorf("the server got %s\nwant           %s", s.told(), want)
			}
		})
	}
}

func TestAServerWithoutPingKeepsItsSession(t *testing.T) {
	failed := false
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		switch {
		case r.what == mcp.MethodPing:
			r.json(w, 200, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}`)
		case r.what == mcp.MethodToolsCall && !failed:
			failed = true
			w.WriteHeader(400)
		default:
			return false
		}
		return true
	})
	u, _ := overHTTP(t, s.URL)
	_, _ = ask(t, u)
	for range 2 {
		if got, err := ask(t, u); got != `{"by":"s-1"}` {
			t.Errorf("the call gave %s (%v)", got, err)
		}
	}
	if want := handshake + ", tools/call s-1, ping s-1, tools/call s-1, tools/call s-1"; s.told() != want {
		t.Errorf("the server got %s\nwant           %s", s.told(), want)
	}
}

// One renews the session, and the others wait for it.
func TestCallsShareTheNewSession(t *testing.T) {
	const n = 16
	var arrived sync.WaitGroup
	arrived.Add(n)
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		if r.what != mcp.MethodToolsCall || r.session != "s-1" {
			return false
		}
		arrived.Done()
		arrived.Wait()
		w.WriteHeader(404)
		return true
	})
	u, _ := overHTTP(t, s.URL)
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			if got, err := ask(t, u); got != `{"by":"s-2"}` {
				t.Errorf("a call gave %s (%v)", got, err)
			}
		})
	}
	calls.Wait()
	if got := strings.Count(s.told(), mcp.NotificationInitialized); got != 2 {
		t.Errorf("%d handshakes, want 2", got)
	}
}

func TestASessionIsRenewedOnlyWithinTheBudget(t *testing.T) {
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		if r.what == mcp.MethodToolsCall {
			w.WriteHeader(404)
			return true
		}
		return false
	})
	u, _ := overHTTP(t, s.URL)
	_, err := askWith(t, u, new(upstream.Request))
	wantError(t, err, upstream.ErrorResponse, upstream.Refused)
	_, err = ask(t, u)
	wantError(t, err, upstream.NoResponse, upstream.HTTPError)
	if got := strings.Count(s.told(), mcp.MethodToolsCall); got != 3 {
		t.Errorf("the calls were sent %d times, want once and twice", got)
	}
}

// Where there is no other session, what became of the call is what the server had said.
func TestASessionThatCannotBeRenewed(t *testing.T) {
	n := 0
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		switch r.what {
		case mcp.MethodInitialize:
			if n++; n == 1 {
				return false
			}
			w.WriteHeader(503)
		case mcp.MethodToolsCall:
			w.WriteHeader(404)
		default:
			return false
		}
		return true
	})
	u, _ := overHTTP(t, s.URL)
	_, err := ask(t, u)
	wantError(t, err, upstream.ErrorResponse, upstream.Refused)
	if !strings.Contains(err.Error(), "503") {
		t.Errorf("%v does not say why there is no other session", err)
	}
}

// Without a session id there is no session to lose.
func TestAServerWithoutSessions(t *testing.T) {
	s := newStage(t, mcp.Revision20250618, func(w http.ResponseWriter, r *heard) bool {
		switch r.what {
		case mcp.MethodInitialize:
			r.result(w, `{"protocolVersion":"2025-06-18","capabilities":{}}`)
		case mcp.MethodToolsCall:
			w.WriteHeader(404)
		default:
			return false
		}
		return true
	})
	u, _ := overHTTP(t, s.URL)
	for range 2 {
		_, err := ask(t, u)
		wantError(t, err, upstream.NoResponse, upstream.HTTPError)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if want := "initialize, notifications/initialized, tools/call, tools/call"; s.told() != want {
		t.Errorf("the server got %s, want %s", s.told(), want)
	}
}

func TestASessionEndsWithDelete(t *testing.T) {
	s := newStage(t, mcp.Revision20251125, nil)
	u, _ := overHTTP(t, s.URL)
	upstreamtest.Await(t, u, upstream.Live)
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if want := handshake + ", DELETE s-1"; s.told() != want {
		t.Errorf("the server got %s, want %s", s.told(), want)
	}
}

func TestSessionIDsThatCannotBeRepeatedAreRefused(t *testing.T) {
	for name, ids := range map[string][]string{
		"white space": {"a b"}, "not ASCII": {"é"}, "empty": {""}, "two": {"a", "b"}, "long": {strings.Repeat("x", maxSessionID+1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
				w.Header()[mcp.HeaderSession] = ids
				r.result(w, `{"protocolVersion":"2025-11-25"}`)
				return true
			})
			u, _ := overHTTP(t, s.URL)
			status := upstreamtest.Await(t, u, upstream.Backoff)
			if !strings.Contains(status.Err.Error(), "session id cannot be used") {
				t.Errorf("error is %v", status.Err)
			}
		})
	}
}

// The one time that a call may be sent again is shared by what asks for it.
func TestARefusedTokenUsesTheBudget(t *testing.T) {
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		switch {
		case r.what != mcp.MethodToolsCall:
			return false
		case r.Header.Get("Authorization") == "Bearer token0":
			w.WriteHeader(401)
		default:
			w.WriteHeader(404)
		}
		return true
	})
	u, _ := overHTTP(t, s.URL, func(c *Config) { c.HTTP.Credential = new(counted) })
	_, err := ask(t, u)
	wantError(t, err, upstream.ErrorResponse, upstream.Refused)
	if e, _ := errors.AsType[*upstream.Error](err); e.HTTPStatus != 404 {
		t.Errorf("status %d, want the second answer's", e.HTTPStatus)
	}
	if got := strings.Count(s.told(), mcp.MethodToolsCall); got != 2 {
		t.Errorf("the call was sent %d times, want twice", got)
	}
}

func TestIDsAreNotUsedAgain(t *testing.T) {
	var mu sync.Mutex
	var ids []string
	s := newStage(t, mcp.Revision20251125, func(_ http.ResponseWriter, r *heard) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.id != "" {
			ids = append(ids, r.id)
		}
		return false
	})
	u, _ := overHTTP(t, s.URL)
	for range 3 {
		if _, err := ask(t, u); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(ids, " "); got != "1 2 3 4" {
		t.Errorf("ids %s", got)
	}
}

// One call's lost session says nothing of what the server still works at.
func TestACallOutlivesItsSession(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		switch {
		case r.what != mcp.MethodToolsCall || r.session != "s-1":
			return false
		case strings.Contains(r.body, "slow"):
			close(arrived)
			<-release
			return false
		}
		w.WriteHeader(404)
		return true
	})
	u, _ := overHTTP(t, s.URL)
	slow := call(t.Context(), u, "slow")
	<-arrived
	if got, err := ask(t, u); got != `{"by":"s-2"}` {
		t.Errorf("the call gave %s (%v)", got, err)
	}
	close(release)
	if err := <-slow; err != nil {
		t.Errorf("the call in flight failed: %v", err)
	}
}
