package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/redact"
)

// An asked is one request that a token endpoint was sent.
type asked struct {
	form         url.Values
	user, secret string // by Basic
}

// A tokenEndpoint is a real authorization server's.
type tokenEndpoint struct {
	*httptest.Server
	answer func(w http.ResponseWriter, a asked)

	mu   sync.Mutex
	seen []asked
}

func serveTokens(t *testing.T, answer func(http.ResponseWriter, asked)) *tokenEndpoint {
	t.Helper()
	e := &tokenEndpoint{answer: answer}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s: %v", r.Method, err)
		}
		a := asked{form: r.PostForm}
		a.user, a.secret, _ = r.BasicAuth()
		e.mu.Lock()
		e.seen = append(e.seen, a)
		e.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		e.answer(w, a)
	}))
	t.Cleanup(e.Close)
	return e
}

// requests is what was asked so far.
func (e *tokenEndpoint) requests() []asked {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.seen)
}

func saying(status int, body string) func(http.ResponseWriter, asked) {
	return func(w http.ResponseWriter, _ asked) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

const (
	plantedSecret  = "planted-client+secret/%"
	plantedRefresh = "planted-refresh-0"
)

// at is a client of the endpoint.
func (e *tokenEndpoint) client(change ...func(*OAuth2)) Config {
	o := &OAuth2{TokenURL: redact.NewSecret(e.URL + "/token?key=planted-key"), ClientID: "gateway:1", ClientSecret: redact.NewSecret(plantedSecret)}
	for _, f := range change {
		f(o)
	}
	return Config{OAuth2: o}
}

func refreshing(o *OAuth2) { o.RefreshToken = redact.NewSecret(plantedRefresh) }

func public(o *OAuth2) { o.ClientSecret = redact.Secret{} }

func TestGrants(t *testing.T) {
	escapedID, escapedSecret := url.QueryEscape("gateway:1"), url.QueryEscape(plantedSecret)
	scoped := func(o *OAuth2) { o.Scopes, o.Resource = []string{"a", "b"}, "https://mcp.example/mcp" }
	for _, row := range []struct {
		name   string
		change []func(*OAuth2)
		want   asked
	}{
		{"client credentials", nil, asked{url.Values{"grant_type": {"client_credentials"}}, escapedID, escapedSecret}},
		{"with scopes and resource", []func(*OAuth2){scoped}, asked{url.Values{
			"grant_type": {"client_credentials"}, "scope": {"a b"}, "resource": {"https://mcp.example/mcp"},
		}, escapedID, escapedSecret}},
		{"refresh token", []func(*OAuth2){refreshing, scoped}, asked{url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {plantedRefresh}, "scope": {"a b"}, "resource": {"https://mcp.example/mcp"},
		}, escapedID, escapedSecret}},
		{"public client", []func(*OAuth2){refreshing, public}, asked{url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {plantedRefresh}, "client_id": {"gateway:1"},
		}, "", ""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var w witness
			e := serveTokens(t, saying(200, `{"access_token":"planted-access","token_type":"bearer","expires_in":"60"}`))
			c := newCredential(t, witnessed(&w, e.client(row.change...)))
			expect(t, c, "planted-access")
			seen := e.requests()
			if len(seen) != 1 || fmt.Sprint(seen[0]) != fmt.Sprint(row.want) {
				t.Errorf("asked %v, want %v", seen, row.want)
			}
			if !w.knows("planted-access") {
				t.Error("nobody was told of the token")
			}
		})
	}
}

// Servers differ in how a client may show itself, and one that does not know it has not looked further.
func TestTheOtherWayToShowTheClient(t *testing.T) {
	for name, refusal := range map[string]func(http.ResponseWriter, asked){
		"401":            saying(401, "who?"),
		"invalid_client": saying(400, `{"error":"invalid_client"}`),
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			e := serveTokens(t, func(w http.ResponseWriter, a asked) {
				if a.form.Get("client_secret") != plantedSecret {
					refusal(w, a)
					return
				}
				n++
				saying(200, fmt.Sprintf(`{"access_token":"token-%d"}`, n))(w, a)
			})
			c := newCredential(t, e.client(refreshing))
			number := expect(t, c, "token-1")
			if err := c.Refresh(t.Context(), number); err != nil {
				t.Fatal(err)
			}
			expect(t, c, "token-2")
			if seen := e.requests(); len(seen) != 3 {
				t.Errorf("asked %d times, want 2 and then 1", len(seen))
			}
		})
	}
}

// A public client has nothing else to show.
func TestAPublicClientIsRefusedOnce(t *testing.T) {
	e := serveTokens(t, saying(401, `{"error":"invalid_client"}`))
	c := newCredential(t, e.client(refreshing, public))
	if _, _, err := sign(t.Context(), c); err == nil || len(e.requests()) != 1 {
		t.Errorf("asked %d times: %v", len(e.requests()), err)
	}
}

// What a token endpoint says is not repeated: it may quote what it was sent.
func TestAnswersThatAreNoToken(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	quoting := plantedSecret + " " + plantedRefresh + " planted-key"
	for _, row := range []struct {
		name   string
		answer func(http.ResponseWriter, asked)
		want   string
		asked  int
	}{
		{"HTML", saying(200, "<html>"+quoting), "(HTTP 200, 59 bytes) is none of a token endpoint", 1},
		{"HTML error", saying(502, "<html>"+quoting), "(HTTP 502, 59 bytes) is an error of no known kind", 1},
		{"known error", saying(400, `{"error":"invalid_grant","error_description":"`+quoting+`"}`), "is the error invalid_grant: the refresh token is not good any more", 1},
		{"error with 200", saying(200, `{"error":"invalid_scope","access_token":"planted"}`), "is the error invalid_scope: check scopes", 1},
		{"other error", saying(400, `{"error":"`+quoting+`"}`), "is an error of no known kind", 1},
		{"unknown client", saying(401, `{"error":"invalid_client"}`), "check client_id", 2},
		{"no token", saying(200, `{"token_type":"Bearer"}`), "is none of a token endpoint", 1},
		{"other type", saying(200, `{"access_token":"planted","token_type":"DPoP"}`), "another type than Bearer", 1},
		{"no header's", saying(200, `{"access_token":"planted\nX: y"}`), "white space", 1},
		{"endless", func(w http.ResponseWriter, _ asked) {
			for {
				if _, err := w.Write(bytes.Repeat([]byte("planted"), 1<<10)); err != nil {
					return
				}
			}
		}, "is over 1 MiB", 1},
		{"redirect", func(w http.ResponseWriter, _ asked) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(307)
		}, "is a redirect, which is not followed", 1},
		{"no HTTP", func(w http.ResponseWriter, _ asked) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprintf(conn, "%s\r\n\r\n", quoting)
			conn.Close()
		}, "the connection broke off before the answer", 1},
		{"half", func(w http.ResponseWriter, _ asked) {
			w.Header().Set("Content-Length", "99")
			fmt.Fprint(w, quoting)
		}, "the connection broke off before the answer", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			var w witness
			e := serveTokens(t, row.answer)
			c := newCredential(t, witnessed(&w, e.client(refreshing)))
			_, _, err := sign(t.Context(), c)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error is %v, want %q", err, row.want)
			}
			if text := fmt.Sprint(err) + w.logged(); strings.Contains(text, "planted") || strings.Contains(text, "client+secret") {
				t.Errorf("what was said is repeated:\n%s", text)
			}
			if seen := e.requests(); len(seen) != row.asked {
				t.Errorf("asked %d times, want %d", len(seen), row.asked)
			}
		})
	}
}

func TestATokenEndpointThatIsNotReached(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	for target, want := range map[string]string{
		gone.URL:                              "it cannot be reached",
		secure.URL:                            "its certificate is not trusted",
		"http://planted-name.invalid/planted": "its host name cannot be resolved",
	} {
		c := newCredential(t, Config{OAuth2: &OAuth2{TokenURL: redact.NewSecret(target), ClientID: "gateway"}})
		if _, _, err := sign(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// The token that a refresh under way brings may be the only one from then on.
func TestCloseLetsARefreshGrantFinish(t *testing.T) {
	for name, takes := range map[string]time.Duration{"in time": lastMoment - 1, "never": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				cfg := from(tripFunc(func(r *http.Request) (*http.Response, error) {
					select {
					case <-time.After(takes):
						return jsonAnswer(200, `{"access_token":"planted-access","refresh_token":"planted-refresh-1"}`), nil
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
				}))
				cfg.StateDir, cfg.OAuth2.RefreshToken = dir, redact.NewSecret(plantedRefresh)
				c := New(cfg)
				waits := make(chan error, 1)
				go func() {
					_, _, err := sign(t.Context(), c)
					waits <- err
				}()
				synctest.Wait()
				began := time.Now()
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != min(takes, lastMoment) {
					t.Errorf("Close took %v", took)
				}
				closedError(t, <-waits)
				kept, err := newRefresh(c, *cfg.OAuth2).current()
				if want := map[bool]string{true: "planted-refresh-1", false: plantedRefresh}[takes < lastMoment]; err != nil || kept.Reveal() != want {
					t.Errorf("kept %q, %v; want %q", kept.Reveal(), err, want)
				}
			})
		})
	}
}

func TestClientCredentialsEndWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{gate: hold(nil)}
		c := New(from(i))
		go func() { _, _, _ = sign(t.Context(), c) }()
		i.expect(t, 1)
		began := time.Now()
		if err := errors.Join(c.Close(), c.Close()); err != nil || time.Since(began) != 0 {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
	})
}
