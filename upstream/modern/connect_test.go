package modern

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/link"
	"mcp-gateway/upstream/upstreamtest"
)

// scripted is a server that answers its requests with the status and JSON text of each step, and the last one again. ID
// in a text becomes the request's id.
func scripted(t *testing.T, steps ...step) *httptest.Server {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, rest, _ := strings.Cut(string(body), `"id":`)
		id, _, _ := strings.Cut(rest, ",")
		s := steps[min(int(n.Add(1)), len(steps))-1]
		w.Header().Set("Content-Type", "application/json")
		if s.contentType != "" {
			w.Header().Set("Content-Type", s.contentType)
		}
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, strings.ReplaceAll(s.text, "ID", id))
	}))
	t.Cleanup(s.Close)
	return s
}

type step struct {
	status      int
	text        string
	contentType string
}

func result(text string) string { return `{"jsonrpc":"2.0","id":ID,"result":` + text + `}` }
func failure(text string) string {
	return `{"jsonrpc":"2.0","id":ID,"error":` + text + `}`
}

var discovered = step{200, result(upstreamtest.Discovered), ""}

func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		name string
		step step
		says []string
	}{
		{"method unknown", step{404, failure(`{"code":-32601,"message":"no"}`), ""}, []string{"2026-07-28", "server/discover", "`protocol: legacy`", "`transport: sse`"}},
		{"method unknown at 200", step{200, failure(`{"code":-32601,"message":"no"}`), ""}, []string{"`protocol: legacy`"}},
		{"version refused", step{400, failure(`{"code":-32022,"message":"no","data":{"supported":["2025-11-25","evil\u0000"],"requested":"x"}}`), ""}, []string{"supports 2025-11-25;", "set `protocol: legacy`"}},
		{"version refused before the body was read", step{400, `{"id":null,"error":{"code":-32022,"message":"no","data":{"supported":["2099-01-01"]}}}`, ""}, []string{"2099-01-01", "no setting"}},
		{"version refused without a list", step{400, failure(`{"code":-32022,"message":"no"}`), ""}, []string{"none that it names", "`protocol: legacy`"}},
		{"another revision", step{200, result(`{"resultType":"complete","supportedVersions":["2025-06-18"]}`), ""}, []string{"2025-06-18", "`protocol: legacy`"}},
		{"no revision", step{200, result(`{"resultType":"complete","supportedVersions":[]}`), ""}, []string{"none that it names"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := started(t, scripted(t, test.step, discovered).URL)
			status := upstreamtest.Await(t, u, upstream.Verdict)
			if _, ok := errors.AsType[*link.VerdictError](status.Err); !ok {
				t.Fatalf("error is %v", status.Err)
			}
			for _, words := range test.says {
				if !strings.Contains(status.Err.Error(), words) {
					t.Errorf("%q does not say %q", status.Err, words)
				}
			}
			_, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList})
			wantError(t, err, upstream.NotSent, upstream.GivenUp, 0)
		})
	}
}

func TestRefusalsThatAreTriedAgain(t *testing.T) {
	const hint = "`protocol: legacy`"
	for _, test := range []struct {
		name   string
		step   step
		hinted bool
	}{
		{"HTML", step{200, "<html>", "text/html"}, true},
		{"empty 400", step{400, "", ""}, true},
		{"404 text", step{404, "nothing", "text/plain"}, true},
		{"405", step{405, "", ""}, true},
		{"another JSON-RPC error", step{400, failure(`{"code":-32600,"message":"no session"}`), ""}, true},
		{"null id", step{400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}`, ""}, true},
		{"header mismatch", step{400, failure(`{"code":-32020,"message":"no"}`), ""}, true},
		{"500", step{500, "", ""}, false},
		{"503 with an error", step{503, failure(`{"code":-32603,"message":"no"}`), ""}, false},
		{"429", step{429, "", ""}, false},
		{"403", step{403, "", ""}, false},
		{"401", step{401, "", ""}, false},
		{"no resultType", step{200, result(`{"supportedVersions":["2026-07-28"]}`), ""}, false},
		{"no list", step{200, result(`{"resultType":"complete"}`), ""}, false},
		{"two lists", step{200, result(`{"resultType":"complete","supportedVersions":["2026-07-28"],"supportedVersions":["2099-01-01"]}`), ""}, false},
		{"a list of something else", step{200, result(`{"resultType":"complete","supportedVersions":[1]}`), ""}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := started(t, scripted(t, test.step).URL)
			status := upstreamtest.Await(t, u, upstream.Backoff)
			if got := strings.Contains(status.Err.Error(), hint); got != test.hinted {
				t.Errorf("%q names %s: %v, want %v", status.Err, hint, got, test.hinted)
			}
			_, refused := errors.AsType[*link.RefusedError](status.Err)
			if refused != (test.step.status == 401 || test.step.status == 403) {
				t.Errorf("%v counts as a refused credential: %v", status.Err, refused)
			}
			healed := started(t, scripted(t, test.step, discovered).URL)
			if status := upstreamtest.Await(t, healed, upstream.Live); status.Revision != mcp.Modern {
				t.Errorf("status after another attempt: %+v", status)
			}
		})
	}
}

// Who answers at the same address later is asked who it is before it gets a call.
func TestUnreachableServerIsDiscoveredAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	var methods []string
	record := func(r *http.Request) { methods = append(methods, r.Header.Get(mcp.HeaderMethod)) }
	first := serveOn(l, record)
	u := started(t, "http://"+address, func(cfg *Config) {
		cfg.ReconnectMin, cfg.ReconnectMax = time.Hour, time.Hour // so that the calls alone make attempts
	})
	upstreamtest.Await(t, u, upstream.Live)
	first.Close()

	_, err = u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList})
	wantError(t, err, upstream.NotSent, upstream.Unreachable, 0)
	if status, _ := u.Status(); status.State == upstream.Live {
		t.Error("the upstream is live though its server cannot be reached")
	}
	_, err = u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList})
	wantError(t, err, upstream.NotSent, upstream.Unreachable, 0)

	l, err = net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	second := serveOn(l, record)
	defer second.Close()
	if _, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList}); err != nil {
		t.Fatal(err)
	}
	if status, _ := u.Status(); status.Session != 2 {
		t.Errorf("session %d, want the second", status.Session)
	}
	if got := strings.Join(methods, " "); got != "server/discover server/discover tools/list" {
		t.Errorf("the servers got %s", got)
	}
}

func serveOn(l net.Listener, record func(*http.Request)) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		record(r)
		body, _ := io.ReadAll(r.Body)
		_, rest, _ := strings.Cut(string(body), `"id":`)
		id, _, _ := strings.Cut(rest, ",")
		w.Header().Set("Connection", "close") // so that each request has to reach the server anew
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.ReplaceAll(discovered.text, "ID", id))
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	return s
}

func wantError(t *testing.T, err error, outcome upstream.Outcome, cause upstream.Cause, status int) {
	t.Helper()
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		t.Fatalf("error is %v, want %s (%s)", err, outcome, cause)
	}
	if e.Outcome != outcome || e.Cause != cause || e.HTTPStatus != status {
		t.Errorf("error is %v with HTTP status %d, want %s (%s) with %d", e, e.HTTPStatus, outcome, cause, status)
	}
}
