package legacy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/link"
	"mcp-gateway/upstream/upstreamtest"
)

func overSocket(c *Config, r *Remote) { c.WebSocket = r }

// socketUpstream is an upstream at address that has begun to connect.
func socketUpstream(t *testing.T, address string, change ...func(*Config)) (*Upstream, *logged) {
	t.Helper()
	cfg, out := remote(t, address, overSocket, change...)
	return begin(t, cfg), out
}

func TestContractOverWebSocket(t *testing.T) {
	for name, protocols := range map[string][]string{"subprotocol": {"mcp"}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			upstreamtest.Run(t, upstreamtest.Transport{
				Revision: mcp.LegacyLatest,
				Start: func(t *testing.T, h upstreamtest.Handler) upstream.Upstream {
					u, _ := socketUpstream(t, socketServer(t, h, protocols...))
					return u
				},
				Mute: func(t *testing.T) (upstream.Upstream, <-chan struct{}) {
					address, taken := upstreamtest.Mute(t)
					u, _ := socketUpstream(t, "ws://"+address)
					return u, taken
				},
			})
		})
	}
}

func TestTheFirstMessagesOverWebSocket(t *testing.T) {
	var heard strings.Builder
	done := make(chan struct{})
	address := onSockets(t, websocket.AcceptOptions{Subprotocols: []string{"mcp"}}, func(ws *websocket.Conn, r *http.Request) {
		defer close(done)
		r.Header.Del("Sec-Websocket-Key") // random
		fmt.Fprintf(&heard, "%s %s\n", r.Method, r.URL)
		_ = r.Header.Write(&heard)
		answers := map[int]string{
			1: `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}`,
			3: `{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`,
		}
		for n := 1; ; n++ {
			_, text, err := ws.Read(context.Background())
			if err != nil {
				fmt.Fprintf(&heard, "closed with %d\n", websocket.CloseStatus(err))
				return
			}
			fmt.Fprintf(&heard, "%s\n", text)
			if answer := answers[n]; answer != "" {
				_ = ws.Write(context.Background(), websocket.MessageText, []byte(answer))
			}
		}
	})
	u, _ := socketUpstream(t, address+"?a=b", func(c *Config) {
		c.WebSocket.Header = http.Header{"X-Team": {"tools"}}
		c.WebSocket.Credential = new(counted)
	})
	if _, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList}); err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	golden(t, "first-websocket.txt", strings.ReplaceAll(heard.String(), "\r\n", "\n"))
}

// counted is a credential with a new token after each Refresh.
type counted struct{ signed, refreshed atomic.Int64 }

func (c *counted) Sign(_ context.Context, r *http.Request) (uint64, error) {
	c.signed.Add(1)
	n := c.refreshed.Load()
	r.Header.Set("Authorization", fmt.Sprint("Bearer token", n))
	return uint64(n) + 1, nil
}

func (*counted) Changed() <-chan struct{} { return nil }

func (c *counted) Refresh(context.Context, uint64) error {
	c.refreshed.Add(1)
	return nil
}

func TestAnUpgradeThatIsRefusedSaysWhy(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	for _, test := range []struct {
		status int
		want   string
	}{
		{200, "the server answered with HTTP 200, not 101: it speaks no WebSocket at this url"},
		{302, "the server answered with HTTP 302: redirects are not followed"},
		{401, "upgrade: check the credential: "},
		{403, "upgrade: check the credential: "},
		{404, "the server answered with HTTP 404"},
		{429, "the server answered with HTTP 429"},
		{500, "the server answered with HTTP 500"},
	} {
		t.Run(fmt.Sprint(test.status), func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.Header().Set("Location", elsewhere.URL)
				w.WriteHeader(test.status)
				fmt.Fprint(w, "<html>secret page</html>")
			}))
			t.Cleanup(s.Close)
			c := new(counted)
			u, _ := socketUpstream(t, "ws"+strings.TrimPrefix(s.URL, "http")+"/?token=planted1234567890", func(cfg *Config) {
				cfg.WebSocket.Credential = c
			})
			err := upstreamtest.Await(t, u, upstream.Backoff).Err
			if text := err.Error(); !strings.Contains(text, test.want) || strings.Contains(text, "planted") || strings.Contains(text, "secret") {
				t.Errorf("error %q, want %q", text, test.want)
			}
			refused := test.status == 401 || test.status == 403
			if _, ok := errors.AsType[*link.RefusedError](err); ok != refused {
				t.Errorf("error %v: refused %v", err, ok)
			}
			if refreshed := c.refreshed.Load() > 0; refreshed != (test.status == 401) {
				t.Errorf("the token was refreshed: %v", refreshed)
			}
		})
	}
}

func TestAnUpgradeThatBreaksTheProtocolIsAFailure(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "planted1234567890")
		w.WriteHeader(http.StatusSwitchingProtocols)
	}))
	t.Cleanup(s.Close)
	u, _ := socketUpstream(t, "ws"+strings.TrimPrefix(s.URL, "http"), func(c *Config) {
		c.Scrub = func(s string) string { return strings.ReplaceAll(s, "planted1234567890", "[redacted]") }
	})
	if text := upstreamtest.Await(t, u, upstream.Backoff).Err.Error(); !strings.Contains(text, "[redacted]") {
		t.Errorf("error %q", text)
	}
}

func TestTheUpgradeCarriesWhoTheGatewayIs(t *testing.T) {
	for _, test := range []struct {
		user string
		c    Credential
		want string
	}{
		{"user:p%40ss@", nil, "Basic dXNlcjpwQHNz"},
		{"", new(counted), "Bearer token0"},
		{"", nil, ""},
	} {
		got := make(chan string, 1)
		address := onSockets(t, websocket.AcceptOptions{}, func(_ *websocket.Conn, r *http.Request) {
			select {
			case got <- r.Header.Get("Authorization"):
			default: // a later attempt
			}
		})
		socketUpstream(t, strings.Replace(address, "://", "://"+test.user, 1), func(c *Config) { c.WebSocket.Credential = test.c })
		if got := <-got; got != test.want {
			t.Errorf("Authorization %q, want %q", got, test.want)
		}
	}
}

func TestEachDialSignsAnew(t *testing.T) {
	c := new(counted)
	u, _ := socketUpstream(t, socketServer(t, func(r *upstreamtest.Request) {
		if r.Name() == "die" {
			r.Die()
			return
		}
		r.Result("")
	}), func(cfg *Config) { cfg.WebSocket.Credential = c })
	upstreamtest.Await(t, u, upstream.Live)
	wantError(t, <-call(t.Context(), u, "die"), upstream.NoResponse, upstream.ConnectionLost)
	for {
		status, changed := u.Status()
		if status.State == upstream.Live && status.Session == 2 {
			break
		}
		<-changed
	}
	if got := c.signed.Load(); got != 2 {
		t.Errorf("signed %d times for two dials", got)
	}
}

func TestFramesThatAreNoMessagesHarmNoCall(t *testing.T) {
	u, out := socketUpstream(t, onSockets(t, websocket.AcceptOptions{}, func(ws *websocket.Conn, _ *http.Request) {
		p := newPeer(t, func(r *upstreamtest.Request) {
			for range 3 {
				_ = ws.Write(context.Background(), websocket.MessageBinary, []byte(`{"jsonrpc":"2.0","id":`+string(r.Message.ID)+`,"result":{"wrong":1}}`))
			}
			for _, text := range []string{"", "hello", "{broken", "[1,2", "\xff", `{"jsonrpc":"2.0"}`} {
				r.Send(text)
			}
			r.Send("{\n\"jsonrpc\":\"2.0\",\r\n\"id\":" + string(r.Message.ID) + ",\"result\":{}}\n")
		}, &socketSender{ws: ws})
		defer p.end()
		for {
			_, text, err := ws.Read(context.Background())
			if err != nil {
				return
			}
			p.take(text)
		}
	}))
	if err := <-call(t.Context(), u, "any"); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "binary frames"); n != 1 {
		t.Errorf("binary frames are logged %d times:\n%s", n, out)
	}
}

func TestAFrameThatIsTooLargeEndsOnlyItsCall(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	u, _ := socketUpstream(t, socketServer(t, func(r *upstreamtest.Request) {
		long := `"` + strings.Repeat("0123456789abcdef", maxMessage/16) + `"`
		switch r.Name() {
		case "id first":
			r.Result(`"long":` + long)
		case "id last":
			r.Send(`{"result":{"long":` + long + `},"jsonrpc":"2.0","id":` + string(r.Message.ID) + `}`)
		default:
			close(arrived)
			r.Wait(release)
			r.Result("")
		}
	}))
	other := call(t.Context(), u, "other")
	<-arrived
	wantError(t, <-call(t.Context(), u, "id first"), upstream.NoResponse, upstream.TooLarge)
	wantError(t, <-call(t.Context(), u, "id last"), upstream.NoResponse, upstream.TooLarge)
	close(release)
	if err := <-other; err != nil {
		t.Error(err)
	}
}

func TestTheServersReasonToCloseIsRedactedAndLogged(t *testing.T) {
	u, out := socketUpstream(t, onSockets(t, websocket.AcceptOptions{}, func(ws *websocket.Conn, _ *http.Request) {
		p := newPeer(t, func(*upstreamtest.Request) {
			_ = ws.Close(websocket.StatusPolicyViolation, "token planted1234567890 expired")
		}, &socketSender{ws: ws})
		defer p.end()
		for {
			_, text, err := ws.Read(context.Background())
			if err != nil {
				return
			}
			p.take(text)
		}
	}), func(c *Config) {
		c.Scrub = func(s string) string { return strings.ReplaceAll(s, "planted1234567890", "[redacted]") }
	})
	err := <-call(t.Context(), u, "any")
	wantError(t, err, upstream.NoResponse, upstream.ConnectionLost)
	if want := "closed the connection with code 1008: token [redacted] expired"; !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if strings.Contains(out.String(), "planted") {
		t.Errorf("the log holds a secret:\n%s", out)
	}
}

func TestAModernServerOverWebSocketIsAVerdict(t *testing.T) {
	u, _ := socketUpstream(t, onSockets(t, websocket.AcceptOptions{}, func(ws *websocket.Conn, _ *http.Request) {
		_, _, _ = ws.Read(context.Background())
		_ = ws.Write(context.Background(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}`))
		_, _, _ = ws.Read(context.Background())
	}))
	const want = "the gateway offered 2025-11-25, but the server says that it supports only [\"2026-07-28\"]; " +
		"no setting makes the gateway speak that over WebSocket: set the server's http `url` in place of this one"
	if got := upstreamtest.Await(t, u, upstream.Verdict).Err.Error(); got != want {
		t.Errorf("verdict %q\nwant    %q", got, want)
	}
}

func TestCloseDuringAnUpgradeThatHangs(t *testing.T) {
	arrived := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	u, _ := socketUpstream(t, "ws"+strings.TrimPrefix(s.URL, "http"))
	<-arrived
	failed := call(t.Context(), u, "any")
	for range 2 {
		if err := u.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, <-failed, upstream.NotSent, upstream.ClosedByGateway)
}

func TestAnUpgradeThatHangsIsBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(s.Close)
	u, _ := socketUpstream(t, "ws"+strings.TrimPrefix(s.URL, "http"), func(c *Config) { c.StartTimeout = 50 * time.Millisecond })
	if err := upstreamtest.Await(t, u, upstream.Backoff).Err; !strings.Contains(err.Error(), "not connected within start_timeout (50ms)") {
		t.Errorf("error %v", err)
	}
}
