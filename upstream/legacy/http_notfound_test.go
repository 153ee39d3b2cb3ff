package legacy

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
)

// A tool that answers with 404 on a new session as well fails alone, however often it is called.
func TestAToolThatIsNotFound(t *testing.T) {
	for name, answer := range map[string]struct {
		text            string
		sends, sessions int // for one call
		failed          bool
	}{
		"by a proxy":  {"", 2, 1, true},
		"with our id": {`{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}`, 1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			const calls = 8
			s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
				if r.what != mcp.MethodToolsCall || strings.Contains(r.body, "fine") {
					return false
				}
				r.json(w, 404, answer.text)
				return true
			})
			u, out := overHTTP(t, s.URL)
			for range calls {
				_, err := ask(t, u)
				if answer.failed {
					wantError(t, err, upstream.NoResponse, upstream.HTTPError)
					if e, _ := errors.AsType[*upstream.Error](err); e.HTTPStatus != 404 {
						t.Errorf("status %d, want 404", e.HTTPStatus)
					}
				}
			}
			if status, _ := u.Status(); status.Looping || strings.Contains(out.String(), "level=ERROR") {
				t.Errorf("the upstream counts as one that crashes: %+v", status)
			}
			if got, err := askWith(t, u, &upstream.Request{Params: object(t, `{"name":"fine"}`)}); !strings.HasPrefix(got, `{"by":"s-`) {
				t.Errorf("another tool gave %s (%v)", got, err)
			}
			told := s.told()
			if got := strings.Count(told, mcp.MethodToolsCall); got != calls*answer.sends+1 {
				t.Errorf("%d sends for %d calls", got-1, calls)
			}
			if got := strings.Count(told, mcp.NotificationInitialized); got != calls*answer.sessions+1 {
				t.Errorf("%d handshakes", got)
			}
		})
	}
}

// On a session that was begun for the call, a 404 says nothing of the session: the next call asks it with a ping.
func TestA404OnANewSession(t *testing.T) {
	for name, test := range map[string]struct {
		first, second string
		refused       bool // the ping
		then          string
	}{
		"empty":                       {"", "", false, ", ping s-2, tools/call s-2"},
		"our id":                      {"", `{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"no"}}`, false, ", ping s-2, tools/call s-2"},
		"a session that is not there": {"", "", true, ", ping s-2, initialize, notifications/initialized s-3, tools/call s-3"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
				switch {
				case r.what == mcp.MethodPing && test.refused:
					w.WriteHeader(404)
				case r.what == mcp.MethodToolsCall && n < 2:
					r.json(w, 404, []string{test.first, test.second}[n])
					n++
				default:
					return false
				}
				return true
			})
			u, _ := overHTTP(t, s.URL)
			if _, err := ask(t, u); err == nil {
				t.Error("the call succeeded")
			}
			if status, _ := u.Status(); status.State != upstream.Live || status.Session != 2 {
				t.Errorf("status %+v, want the second session live", status)
			}
			if _, err := ask(t, u); err != nil {
				t.Errorf("the next call failed: %v", err)
			}
			want := handshake + ", tools/call s-1, initialize, notifications/initialized s-2, tools/call s-2" + test.then
			if s.told() != want {
				t.Errorf("the server got %s\nwant           %s", s.told(), want)
			}
		})
	}
}

// A call that had not been sent before its session was found ended, and meets 404 on the next, fails alone as well.
func TestA404AfterARefusedPing(t *testing.T) {
	n := 0
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		switch r.what {
		case mcp.MethodPing:
			w.WriteHeader(404)
		case mcp.MethodToolsCall:
			n++
			w.WriteHeader([]int{400, 404}[n-1])
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
	if status, _ := u.Status(); status.State != upstream.Live || status.Session != 2 {
		t.Errorf("status %+v, want the second session live", status)
	}
}
