package legacy

import (
	"errors"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/link"
	"mcp-gateway/upstream/upstreamtest"
)

// The first messages on the wire are in the golden file.
func TestTheFirstMessagesOverHTTP(t *testing.T) {
	var mu sync.Mutex
	var told strings.Builder
	followed := make(chan struct{})
	s := newStage(t, mcp.Revision20250618, func(_ http.ResponseWriter, r *heard) bool {
		mu.Lock()
		defer mu.Unlock()
		r.Host = "server"
		head, err := httputil.DumpRequest(r.Request, false)
		if err != nil {
			t.Error(err)
		}
		told.WriteString(strings.ReplaceAll(string(head), "\r\n", "\n") + r.body + "\n\n")
		if r.what == http.MethodGet {
			close(followed)
		}
		return false
	})
	u, _ := overHTTP(t, s.URL+"/mcp?a=b", func(c *Config) {
		c.HTTP.Header = http.Header{"x-team": {"tools"}}
		c.HTTP.Credential = new(counted)
	})
	<-followed
	if _, err := ask(t, u); err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	golden(t, "first-http.txt", told.String())
}

func TestWhatRefusesAHandshakeOverHTTP(t *testing.T) {
	const stated = `"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}`
	const verdict = "the gateway offered 2025-11-25, but the server says that it supports only [\"2026-07-28\"]; set `protocol: modern`"
	const hint = "`transport: sse`"
	for _, test := range []struct {
		name   string
		status int
		text   string
		state  upstream.State
		says   string
	}{
		{"modern only", 400, `{"jsonrpc":"2.0","id":ID,` + stated, upstream.Verdict, verdict},
		{"modern only, before the body was read", 400, `{"jsonrpc":"2.0","id":null,` + stated, upstream.Verdict, verdict},
		{"modern only, at 200", 200, `{"jsonrpc":"2.0","id":ID,` + stated, upstream.Verdict, verdict},
		{"404", 404, "", upstream.Backoff, hint},
		{"405", 405, "", upstream.Backoff, hint},
		{"HTML", 200, "<html>", upstream.Backoff, hint},
		{"400", 400, "", upstream.Backoff, "`protocol: modern`"},
		{"401", 401, "", upstream.Backoff, "check the credential"},
		{"403", 403, "", upstream.Backoff, "check the credential"},
		{"503", 503, "", upstream.Backoff, "HTTP 503"},
		{"302", 302, "", upstream.Backoff, "redirects are not followed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStage(t, "", func(w http.ResponseWriter, r *heard) bool {
				w.Header().Set("Location", "/elsewhere")
				r.json(w, test.status, test.text)
				return true
			})
			u, _ := overHTTP(t, s.URL)
			status := upstreamtest.Await(t, u, test.state)
			if !strings.Contains(status.Err.Error(), test.says) {
				t.Errorf("%q does not say %q", status.Err, test.says)
			}
			_, refused := errors.AsType[*link.RefusedError](status.Err)
			if refused != (test.status == 401 || test.status == 403) {
				t.Errorf("%v counts as a refused credential: %v", status.Err, refused)
			}
			if strings.Contains(status.Err.Error(), hint) && (test.status >= 500 || refused) {
				t.Errorf("%q blames the settings", status.Err)
			}
		})
	}
}

// A server that cannot be reached is connected to anew, so that its list is read again.
func TestAServerThatCannotBeReachedIsLost(t *testing.T) {
	s := newStage(t, mcp.Revision20251125, nil)
	u, _ := overHTTP(t, s.URL)
	upstreamtest.Await(t, u, upstream.Live)
	s.Server.Close()
	_, err := ask(t, u)
	wantError(t, err, upstream.NotSent, upstream.Unreachable)
	if status, _ := u.Status(); status.State == upstream.Live {
		t.Errorf("status %+v", status)
	}
}

// One reply that cannot be used harms neither the session nor the next call.
func TestRepliesOverHTTPThatCannotBeUsed(t *testing.T) {
	for _, test := range []struct {
		name  string
		send  func(w http.ResponseWriter, r *heard)
		cause upstream.Cause
	}{
		{"gzip", func(w http.ResponseWriter, r *heard) {
			w.Header().Set("Content-Encoding", "gzip")
			r.json(w, 200, "x")
		}, upstream.Unusable},
		{"SSE as JSON", func(w http.ResponseWriter, r *heard) { r.json(w, 200, "data: {}\n\n") }, upstream.Unusable},
		{"JSON as SSE", func(w http.ResponseWriter, r *heard) { r.events(w, `{"jsonrpc":"2.0","id":ID,"result":{}}`) }, upstream.Unusable},
		{"nothing", func(w http.ResponseWriter, _ *heard) { w.WriteHeader(202) }, upstream.Unusable},
		{"429", func(w http.ResponseWriter, _ *heard) { w.WriteHeader(429) }, upstream.HTTPError},
		{"redirect", func(w http.ResponseWriter, r *heard) {
			http.Redirect(w, r.Request, "/elsewhere", http.StatusTemporaryRedirect)
		}, upstream.HTTPError},
	} {
		t.Run(test.name, func(t *testing.T) {
			var once sync.Once
			s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) (played bool) {
				if r.what == mcp.MethodToolsCall {
					once.Do(func() { test.send(w, r); played = true })
				}
				return played
			})
			u, _ := overHTTP(t, s.URL)
			_, err := ask(t, u)
			wantError(t, err, upstream.NoResponse, test.cause)
			if got, err := ask(t, u); got != `{"by":"s-1"}` {
				t.Errorf("the next call gave %s (%v)", got, err)
			}
			if strings.Contains(s.told(), "elsewhere") || strings.Contains(s.told(), mcp.MethodPing) {
				t.Errorf("the server got %s", s.told())
			}
		})
	}
}
