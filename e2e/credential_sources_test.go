package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A provider is an authorization server of others.
type provider struct {
	*listener
	URL, secret string
}

func newProvider(t *testing.T, h *hunt, lives int) provider {
	t.Helper()
	secret := h.plant("the client secret", "")
	l := nodeServer(t, filepath.Join(peers(t), "token-server.mjs"), fmt.Sprint(lives), secret)
	return provider{l, fmt.Sprintf("http://127.0.0.1:%d", l.port(t)), secret}
}

func (p provider) config(resource string) string {
	return fmt.Sprintf("    credential: {oauth2: {token_url: %s/token, client_id: gateway, client_secret: %s, scopes: [call], resource: %q}}\n", p.URL, p.secret, resource)
}

// granted are the tokens that were granted so far.
func (p provider) granted() int { return strings.Count(p.out.String(), `{"granted":`) }

// ask posts a token to one of the provider's endpoints.
func (p provider) ask(t *testing.T, endpoint, token string) map[string]any {
	form := url.Values{"token": {token}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/token/"+endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		t.Error(err)
		return nil
	}
	req.SetBasicAuth("gateway", p.secret)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := direct.Do(req)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	var answer map[string]any
	_ = json.Unmarshal(body, &answer)
	return answer
}

// guard is a server that has the provider judge each token.
func (p provider) guard(t *testing.T, resource string) (s *guarded, newest func() string) {
	t.Helper()
	var token atomic.Value
	token.Store("")
	s = newGuarded(t, func(shown string) bool {
		if shown == "" {
			return false
		}
		answer := p.ask(t, "introspection", shown)
		good := answer["active"] == true && answer["aud"] == resource
		if good {
			token.Store(shown)
		}
		return good
	})
	return s, func() string { return token.Load().(string) }
}

const resource = "http://resource.example/mcp"

// TestARevokedTokenIsRenewedOnce has the provider revoke what the gateway uses, and 50 calls find that out at once.
func TestARevokedTokenIsRenewedOnce(t *testing.T) {
	t.Parallel()
	h := newHunt()
	p := newProvider(t, h, 3600)
	s, newest := p.guard(t, resource)
	g := serve(t, "log_level: debug\nupstreams:\n  own:\n    url: "+s.URL+"\n"+p.config(resource))
	g.allListed(t)
	s.parallel(t, g, "own", "before", 5)
	for round := range 3 {
		h.add(fmt.Sprintf("token %d", round), newest())
		p.ask(t, "revocation", newest())
		before := p.granted()
		s.parallel(t, g, "own", fmt.Sprintf("revoked %d", round), 50)
		if n := p.granted() - before; n != 1 {
			t.Errorf("%d tokens were granted for one that was revoked", n)
		}
	}
	h.clean(t, "the log", g.out.String())
	if refused := strings.Count(p.out.String(), `{"refused":`); refused != 0 {
		t.Errorf("the provider refused %d grants:\n%s", refused, p.out)
	}
}

// TestAnExpiredTokenIsRenewedOnce lets a token expire while nobody calls.
func TestAnExpiredTokenIsRenewedOnce(t *testing.T) {
	t.Parallel()
	h := newHunt()
	// Long enough that no token expires while the calls of a round are made on a busy machine.
	p := newProvider(t, h, 10)
	s, newest := p.guard(t, resource)
	g := serve(t, "upstreams:\n  own:\n    url: "+s.URL+"\n"+p.config(resource))
	g.allListed(t)
	token := newest()
	if !eventually(patience, func() bool { return p.ask(t, "introspection", token)["active"] != true }) {
		t.Fatal("the token never expired")
	}
	before := p.granted()
	s.parallel(t, g, "own", "expired", 50)
	// A second one only where the calls took as long as a token lives.
	if n := p.granted() - before; n != 1 {
		t.Errorf("%d tokens were granted for one that expired", n)
	}
	if newest() == token {
		t.Error("the token is the same as before")
	}
}

// TestRotatedRefreshTokensOutliveTheGateway has a token endpoint that changes the refresh token at each grant, and revokes everything
// when an old one comes back.
func TestRotatedRefreshTokensOutliveTheGateway(t *testing.T) {
	t.Parallel()
	h := newHunt()
	k := newTokens(t, nil, h)
	k.clientSecret, k.refresh = h.plant("the client secret", ""), h.plant("the refresh token", "")
	s := newGuarded(t, func(token string) bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return token != "" && token == k.newest
	})
	config := "state_dir: " + quoted(filepath.Join(t.TempDir(), "state")) + "\nlog_level: debug\nupstreams:\n  own:\n    url: " + s.URL +
		"\n    credential: {oauth2: {token_url: " + k.URL + "/token, client_id: gateway, client_secret: " + k.clientSecret + ", refresh_token: " + k.refresh + "}}\n"
	for start := range 3 {
		g := serve(t, config)
		g.allListed(t)
		for round := range 3 {
			k.mu.Lock()
			k.newest = "" // what the gateway has is good no more
			before := k.grants
			k.mu.Unlock()
			s.parallel(t, g, "own", fmt.Sprintf("%d-%d", start, round), 20)
			k.mu.Lock()
			if k.grants-before != 1 || k.revoked {
				t.Errorf("%d grants, revoked: %t", k.grants-before, k.revoked)
			}
			k.mu.Unlock()
		}
		if start == 1 {
			// Nor does an end without notice lose it.
			_ = g.cmd.Process.Kill()
			<-g.exited
			g.code = 0
		} else {
			g.stop(t)
		}
		h.clean(t, "the log", g.out.String())
	}
}

// TestTokenEndpointsFail has the token endpoint fail in each way that there is, once the token has expired and once it is refused.
// No call has run then, and neither the words nor the log have anything of what the endpoint said.
func TestTokenEndpointsFail(t *testing.T) {
	t.Parallel()
	for name, fail := range endpointFailures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHunt()
			k := newTokens(t, nil, h)
			k.clientSecret, k.lives = h.plant("the client secret", "/%+"), 2
			s := newGuarded(t, func(token string) bool {
				k.mu.Lock()
				defer k.mu.Unlock()
				return token != "" && token == k.newest
			})
			g := serve(t, "log_level: debug\nupstreams:\n  own:\n    url: "+s.URL+"\n    timeout: 3s\n    credential: {oauth2: {token_url: "+quoted(k.URL+"/token")+
				", client_id: gateway, client_secret: "+quoted(k.clientSecret)+"}}\n")
			g.allListed(t)
			release := make(chan struct{})
			k.mu.Lock()
			k.fail = func(w http.ResponseWriter) bool {
				if fail == nil {
					k.mu.Unlock()
					defer k.mu.Lock()
					<-release
					return true
				}
				fail(w, k)
				return true
			}
			k.newest = ""
			k.mu.Unlock()
			defer close(release)

			want := verdict{"not-sent", "no-credential", "own", "tools/call", "no", 0}
			if fail == nil {
				want = verdict{"not-sent", "deadline-unsent", "own", "tools/call", "safe", 0}
			}
			var r reply
			var v verdict
			if !eventually(patience, func() bool {
				var err error
				if r, err = act(t, g, "own", "expired"); err != nil {
					t.Fatal(err)
				}
				h.clean(t, name, string(r.body))
				if v, _, _ = failed(r); v.Outcome == "no-response" || v.Outcome == "" {
					t.Fatalf("a call that nobody takes: %v", r)
				}
				return v.Outcome == "not-sent" // before, the token there is was refused
			}) {
				t.Errorf("nothing was not sent, the last was %v", r)
			}
			if v.Retry = want.Retry; v != want {
				t.Errorf("once it has expired: %v", r)
			}
			h.clean(t, "the log", g.out.String())
		})
	}
}

// endpointFailures are what a token endpoint answers by name, with what it was sent wherever there is room; nil is never.
var endpointFailures = map[string]func(w http.ResponseWriter, k *tokens){
	"HTML":             quoting(200, "text/html", func(_, all string) string { return "<!doctype html><title>" + all + "</title>" }),
	"HTML as an error": quoting(502, "text/html", func(_, all string) string { return "<!doctype html><title>" + all + "</title>" }),
	"an error that quotes": quoting(400, "application/json", func(secret, all string) string {
		return `{"error":` + jsonText(secret) + `,"error_description":` + jsonText(all) + `}`
	}),
	"a known error that quotes": quoting(401, "application/json", func(_, all string) string {
		return `{"error":"invalid_client","error_description":` + jsonText(all) + `,"error_uri":` + jsonText(all) + `}`
	}),
	"a token type that quotes": quoting(200, "application/json", func(secret, _ string) string {
		return `{"access_token":"0123456789abcdef","token_type":` + jsonText(secret) + `}`
	}),
	"no JSON": quoting(200, "application/json", func(secret, _ string) string { return `{"access_token":` + jsonText(secret) + `,` }),
	"a redirect": func(w http.ResponseWriter, k *tokens) {
		w.Header().Set("Location", k.URL+"/elsewhere?"+url.Values{"secret": {k.clientSecret}}.Encode())
		w.WriteHeader(http.StatusTemporaryRedirect)
	},
	"hanging up": func(http.ResponseWriter, *tokens) { panic(http.ErrAbortHandler) },
	"slow":       nil,
}

func quoting(status int, media string, body func(secret, all string) string) func(http.ResponseWriter, *tokens) {
	return func(w http.ResponseWriter, k *tokens) {
		all := everyWay([]string{k.clientSecret})
		w.Header().Set("Content-Type", media)
		w.Header().Set("X-Sent", all)
		w.WriteHeader(status)
		fmt.Fprint(w, body(k.clientSecret, all))
	}
}

// TestATokenEndpointThatIsDown has nothing listen at token_url.
func TestATokenEndpointThatIsDown(t *testing.T) {
	t.Parallel()
	h := newHunt()
	s := newGuarded(t, func(string) bool { return false })
	down := newTokens(t, nil, h)
	down.server.Close()
	g := serve(t, "log_level: debug\nstart_grace: 1s\nupstreams:\n  own:\n    url: "+s.URL+"\n    credential: {oauth2: {token_url: "+quoted(down.URL+"/"+h.plant("the path of token_url", ""))+
		", client_id: gateway, client_secret: "+quoted(h.plant("the client secret", "/%+"))+"}}\n")
	r, err := act(t, g, "own", "one")
	if v, _, ok := failed(r); err != nil || !ok || v.Outcome != "not-sent" || v.Cause != "no-credential" {
		t.Errorf("a call: %v %v", r, err)
	}
	if len(s.headers) > 0 {
		t.Errorf("%d requests went out without a token", len(s.headers))
	}
	h.clean(t, "the words", string(r.body))
	h.clean(t, "the log", g.out.String())
}

// TestAnExpiringTokenIsRenewedBesideItsUse has tokens of a few seconds, and no call ever refused.
func TestAnExpiringTokenIsRenewedBesideItsUse(t *testing.T) {
	t.Parallel()
	h := newHunt()
	p := newProvider(t, h, 10)
	s, _ := p.guard(t, resource)
	g := serve(t, "upstreams:\n  own:\n    url: "+s.URL+"\n"+p.config(resource))
	g.allListed(t)
	end := time.Now().Add(15 * time.Second)
	for round := 0; time.Now().Before(end); round++ {
		s.parallel(t, g, "own", fmt.Sprint(round), 4)
	}
	if p.granted() < 2 {
		t.Errorf("%d tokens were granted", p.granted())
	}
}
