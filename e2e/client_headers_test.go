package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestClientHeadersEndAtTheGateway sends headers of every kind, of which a server gets those that it was promised and no other.
func TestClientHeadersEndAtTheGateway(t *testing.T) {
	t.Parallel()
	h := newHunt()
	open, picky := newGuarded(t, func(string) bool { return true }), newGuarded(t, func(string) bool { return true })
	legacyServer := newFaulty(t, false)
	var legacyHeaders []http.Header
	var mu sync.Mutex
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		legacyHeaders = append(legacyHeaders, r.Header.Clone())
		mu.Unlock()
		legacyServer.ServeHTTP(w, r)
	}))
	t.Cleanup(old.Close)
	t.Cleanup(old.CloseClientConnections)
	g := serve(t, "log_level: debug\nupstreams:\n  open:\n    url: "+open.URL+
		"\n  picky:\n    url: "+picky.URL+"\n    forward_headers: [X-Request-Source, {name: X-Tenant, required: true}]\n    credential: {bearer: "+h.plant("the bearer", "")+"}\n"+
		"  old:\n    url: "+old.URL+"/mcp\n    protocol: legacy\n    forward_headers: [X-Tenant]\n")
	g.allListed(t)

	ends := []string{"Authorization", "Cookie", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Access-Token", "Forwarded", "X-Real-Ip",
		"Proxy-Authorization", "Proxy-Connection", "X-Api-Key", "Traceparent", "Tracestate", "Baggage", "Via", "Referer", "Origin-Agent", "Cf-Access-Jwt-Assertion",
		"X-Anything", "Idempotency-Key", "From", "Last-Event-Id"}
	header := modernHeader("tools/call", "")
	for _, name := range ends {
		header.Set(name, h.plant("the client's "+name, ""))
	}
	header.Set("X-Request-Source", "a source")
	ask := func(upstream, id, tenant string) reply {
		header := header.Clone()
		header.Set("Mcp-Name", upstream+"__act")
		if tenant != "" {
			header.Set("X-Tenant", tenant)
		}
		return post(t, g.URL, header, modernRequest(`1`, "tools/call", fmt.Sprintf(`"name":"%s__act","arguments":{"id":%q}`, upstream, id)))
	}
	if r := ask("open", "one", "blue"); textOf(r) != "one" {
		t.Errorf("open: %v", r)
	}
	if r := ask("picky", "two", "blue"); textOf(r) != "two" {
		t.Errorf("picky: %v", r)
	}
	r := ask("picky", "three", "")
	if v, text, ok := failed(r); textOf(r) == "three" || ok && v.Outcome == "no-response" || !strings.Contains(string(r.body), "X-Tenant") {
		t.Errorf("without a required header: %v %s", r, text)
	}
	if picky.received["three"] != 0 {
		t.Error("the call without a required header was sent")
	}
	client := handshake(t, g.URL, "2025-11-25")
	sent := legacyHeader("2025-11-25", client.session)
	for name, values := range header {
		if slices.Contains(ends, name) {
			sent[name] = values
		}
	}
	sent.Set("X-Tenant", "red")
	if r := post(t, g.URL, sent, legacyRequest(`2`, "tools/call", `"name":"old__fine"`)); textOf(r) != "fine" {
		t.Errorf("old: %v", r)
	}
	h.add("the client's session", client.session)

	tenants := map[string][]string{}
	look := func(server string, headers []http.Header) {
		for _, got := range headers {
			for name, values := range got {
				for _, value := range values {
					if server == "picky" && name == "Authorization" {
						continue
					}
					for _, found := range h.find(value) {
						t.Errorf("%s got %s in %s", server, found.what, name)
					}
				}
			}
			for _, name := range ends {
				if name != "Authorization" && got.Get(name) != "" {
					t.Errorf("%s got a %s", server, name)
				}
			}
			if session := got.Get("Mcp-Session-Id"); session != "" && !strings.HasPrefix(session, "session-") {
				t.Errorf("%s got the session %q", server, session)
			}
			if tenant := got.Get("X-Tenant"); tenant != "" {
				tenants[server] = append(tenants[server], tenant+" "+got.Get("X-Request-Source"))
			}
		}
	}
	look("open", open.headers)
	look("picky", picky.headers)
	mu.Lock()
	look("old", legacyHeaders)
	mu.Unlock()
	if want := map[string][]string{"picky": {"blue a source"}, "old": {"red "}}; fmt.Sprint(tenants) != fmt.Sprint(want) {
		t.Errorf("what was forwarded is %v, want %v", tenants, want)
	}
	for _, got := range picky.headers {
		if len(got["Authorization"]) != 1 || len(h.find(got.Get("Authorization"))) != 1 || h.find(got.Get("Authorization"))[0].what != "the bearer" {
			t.Errorf("picky got the Authorization %q", got["Authorization"])
		}
	}
	g.stop(t)
	h.clean(t, "the log", g.out.String())
}

// TestNoCredentialGoesElsewhere has each server send the gateway to another origin, at each thing that it is asked.
func TestNoCredentialGoesElsewhere(t *testing.T) {
	t.Parallel()
	h := newHunt()
	var followed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		followed.Add(1)
		t.Errorf("%s %s was sent elsewhere, with %v", r.Method, r.URL, r.Header)
	}))
	t.Cleanup(other.Close)
	t.Cleanup(other.CloseClientConnections)
	var asked [4]atomic.Int32
	redirect := func(i, status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked[i].Add(1)
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+other.URL+`/.well-known/oauth-protected-resource"`)
			w.Header().Set("Location", other.URL+"/"+url.PathEscape(r.Header.Get("Authorization")))
			w.WriteHeader(status)
		}))
		t.Cleanup(server.Close)
		t.Cleanup(server.CloseClientConnections)
		return server.URL
	}
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[3].Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages?%s\n\n", other.URL, url.Values{"token": {r.Header.Get("Authorization")}}.Encode())
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-t.Context().Done():
		}
	}))
	t.Cleanup(foreign.Close)
	t.Cleanup(foreign.CloseClientConnections)
	credential := "    reconnect: {min: 50ms, max: 100ms}\n    headers: {X-Api-Key: " + h.plant("a header", "") + "}\n    credential: {bearer: " + h.plant("the bearer", "") + "}\n"
	config := "log_level: debug\nstart_grace: 1s\nupstreams:\n" +
		"  modern:\n    url: " + redirect(0, 307) + "/mcp\n" + credential +
		"  legacy:\n    url: " + redirect(1, 308) + "/mcp\n    protocol: legacy\n" + credential +
		"  stream:\n    url: " + redirect(2, 302) + "/sse\n    protocol: legacy\n    transport: sse\n" + credential +
		"  foreign:\n    url: " + foreign.URL + "/sse\n    protocol: legacy\n    transport: sse\n" + credential
	k := newTokens(t, nil, h)
	k.clientSecret = h.plant("the client secret", "")
	k.fail = func(w http.ResponseWriter) bool {
		w.Header().Set("Location", other.URL+"/token")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	}
	config += "  granted:\n    url: " + redirect(0, 401) + "/mcp\n    credential: {oauth2: {token_url: " + k.URL + "/token, client_id: gateway, client_secret: " + k.clientSecret + "}}\n" +
		"  refused:\n    url: " + redirect(0, 401) + "/mcp\n" + credential +
		"  upgrade:\n    url: ws" + strings.TrimPrefix(redirect(0, 307), "http") + "/ws\n" + credential
	g := serve(t, config)
	for _, id := range []string{"modern", "legacy", "stream", "foreign", "granted", "refused", "upgrade"} {
		r := call(t, g, id+"__tool")
		v, text, ok := failed(r)
		if !ok || v.Outcome == "no-response" {
			t.Errorf("%s: %v", id, r)
		}
		h.clean(t, id, text+string(r.body))
	}
	if !eventually(patience, func() bool {
		return asked[0].Load() > 1 && asked[1].Load() > 1 && asked[2].Load() > 1 && asked[3].Load() > 1
	}) {
		t.Error("not every server was asked")
	}
	g.stop(t)
	h.clean(t, "the log", g.out.String())
	if followed.Load() > 0 {
		t.Errorf("%d requests went elsewhere", followed.Load())
	}
}

// TestRealServersShowNoCredentials has server-everything print its environment.
func TestRealServersShowNoCredentials(t *testing.T) {
	t.Parallel()
	h := newHunt()
	command := everything(t)
	secret := map[string]string{
		"GITHUB_TOKEN": h.plant("GITHUB_TOKEN", "_"), "API_KEYS": h.plant("API_KEYS", "/+="), "PGPASSWORD": h.plant("PGPASSWORD", `"\ %`),
		"AWS_SECRET_ACCESS_KEY": h.plant("AWS_SECRET_ACCESS_KEY", "\nsecond line\n"), "PIN_TOKEN2": h.plantNumber("PIN_TOKEN2"),
	}
	plain := map[string]string{
		"V": "3.10", "NODE_ENV": "production", "POSTGRES_PASSWORD": "postgres", "DEBUG": "1", "REGION": "eu-west-1", "TOKEN": "token", "AUTH_TYPE": "bearer", "KEY_FILE": "/run/secrets/api-key",
		"HOME_URL": "https://example.com/a/path", "PACKAGE": "@modelcontextprotocol/server-everything", "UNICODE": "é\u2028\U0001F511", "EMPTY": "",
	}
	database := h.plant("the password in DATABASE_URL", "")
	env := []string{runEnv + ": " + quoted(run.id), "DATABASE_URL: " + quoted("postgres://app:"+database+"@db.example:5432/app?sslmode=require")}
	for _, values := range []map[string]string{secret, plain} {
		for name, value := range values {
			env = append(env, name+": "+quoted(value))
		}
	}
	config := "log_level: debug\nupstreams:\n  everything:\n    command: node\n    args: [" + quoted(command[1]) + ", stdio]\n    env: {" + strings.Join(env, ", ") + "}\n"
	g := serve(t, config)
	g.allListed(t)
	r := call(t, g, "everything__get-env")
	wholeJSON(t, "get-env", r.header, r.body)
	h.clean(t, "get-env", string(r.body))
	shown := printedEnv(t, r)
	for name := range secret {
		if shown[name] != mask {
			t.Errorf("%s is shown as %q", name, shown[name])
		}
	}
	for name, value := range plain {
		if got := shown[name]; got != value && name != "POSTGRES_PASSWORD" && name != "TOKEN" || got != value && got != mask {
			t.Errorf("%s is %q, not %q", name, got, value)
		}
	}
	if got := shown["DATABASE_URL"]; !strings.HasPrefix(got, "postgres://") || !strings.Contains(got, mask+"@db.example:5432/app") {
		t.Errorf("DATABASE_URL is %q", got)
	}
	// Ordinary words that a short credential has are kept, and so are the server's own names.
	said := modernClient{g.URL}.ask(t, `1`, "tools/call", `"name":"everything__echo","arguments":{"message":"postgres token production"}`)
	if textOf(said) != "Echo: postgres token production" {
		t.Errorf("echo: %v", said)
	}
	g.stop(t)
	h.clean(t, "the log", g.out.String())
}

// printedEnv is what get-env prints.
func printedEnv(t *testing.T, r reply) map[string]string {
	t.Helper()
	var env map[string]string
	if err := json.Unmarshal([]byte(textOf(r)), &env); err != nil {
		t.Fatalf("get-env: %v: %v", err, r)
	}
	return env
}
