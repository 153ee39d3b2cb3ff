package legacy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcp-gateway/auth"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

// issued is a credential whose first token is refused, and whose second is not: planted-1 and planted-2.
func issued(t *testing.T, cfg auth.Config) *auth.Credential {
	t.Helper()
	n := 0
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"planted-%d"}`, n)
	}))
	t.Cleanup(issuer.Close)
	cfg.OAuth2 = &auth.OAuth2{TokenURL: redact.NewSecret(issuer.URL), ClientID: "gateway", ClientSecret: redact.NewSecret("planted-secret")}
	c := auth.New(cfg)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A gate lets through only what shows the token planted-2.
type gate struct {
	next  http.Handler
	shown func(*http.Request) string

	mu   sync.Mutex
	seen []string
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	shown := g.shown(r)
	g.mu.Lock()
	g.seen = append(g.seen, r.Method+" "+shown)
	g.mu.Unlock()
	if !strings.Contains(shown, "planted-2") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	g.next.ServeHTTP(w, r)
}

func (g *gate) requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.seen)
}

// behind puts g before the server at address, on an origin of its own.
func behind(t *testing.T, g *gate, address string) string {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server := *target
	server.Scheme, server.Path = "http", ""
	g.next = httputil.NewSingleHostReverseProxy(&server)
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	target.Host = strings.TrimPrefix(s.URL, "http://")
	return target.String()
}

func TestATokenInTheQueryOfAWebSocket(t *testing.T) {
	g := &gate{shown: func(r *http.Request) string { return r.URL.RawQuery + " " + r.Header.Get("Authorization") }}
	address := behind(t, g, socketServer(t, func(r *upstreamtest.Request) { r.Result("") }))
	c := issued(t, auth.Config{Query: "token"})
	u, out := socketUpstream(t, strings.Replace(address, "://", "://user:password@", 1)+"?b=x%20y", func(cfg *Config) {
		cfg.WebSocket.Credential = c
	})
	upstreamtest.Await(t, u, upstream.Live)
	const basic = " Basic dXNlcjpwYXNzd29yZA=="
	if want := []string{"GET b=x+y&token=planted-1" + basic, "GET b=x+y&token=planted-2" + basic}; !slices.Equal(g.requests(), want) {
		t.Errorf("dialed with %q, want %q", g.requests(), want)
	}
	if text := out.String(); strings.Contains(text, "planted") {
		t.Errorf("a token is on record:\n%s", text)
	}
}

func TestARefusedTokenAtTheDialIsRefreshedOnce(t *testing.T) {
	bearer := func(r *http.Request) string { return r.Header.Get("Authorization") }
	for name, start := range map[string]func(*testing.T, *gate, *auth.Credential) *Upstream{
		"WebSocket": func(t *testing.T, g *gate, c *auth.Credential) *Upstream {
			u, _ := socketUpstream(t, behind(t, g, socketServer(t, func(r *upstreamtest.Request) { r.Result("") })), func(cfg *Config) { cfg.WebSocket.Credential = c })
			return u
		},
		"HTTP+SSE": func(t *testing.T, g *gate, c *auth.Credential) *Upstream {
			u, _ := streamUpstream(t, behind(t, g, streams(t, &streamServer{h: func(r *upstreamtest.Request) { r.Result("") }})), func(cfg *Config) { cfg.SSE.Credential = c })
			return u
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gate{shown: bearer}
			u := start(t, g, issued(t, auth.Config{}))
			upstreamtest.Await(t, u, upstream.Live)
			seen := g.requests()
			if len(seen) < 2 || seen[0] != "GET Bearer planted-1" || seen[1] != "GET Bearer planted-2" {
				t.Fatalf("dialed with %q", seen)
			}
			for _, later := range seen[2:] {
				if later != "POST Bearer planted-2" {
					t.Errorf("sent %q", later)
				}
			}
		})
	}
}
