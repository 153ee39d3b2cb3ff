package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A crossing is a gateway in front of an echo on each transport, and what was planted there.
type crossing struct {
	*gateway
	hunt  *hunt
	echos []*echo
	child string // where the one over stdio notes what it shows
}

// escapesNeeded are characters that JSON, urls and forms each write differently.
const escapesNeeded = `/+"%\&`

func newCrossing(t *testing.T, more string) crossing {
	t.Helper()
	c := crossing{hunt: newHunt(), child: filepath.Join(t.TempDir(), "shown")}
	h := c.hunt
	start := func(modern bool) (e *echo, address string) {
		e = &echo{modern: modern, hunt: h}
		c.echos = append(c.echos, e)
		return e, strings.TrimPrefix(startEcho(t, e), "http://")
	}
	secretURL := func(scheme, address, what, end string) string {
		return quoted(fmt.Sprintf("%s://%s/hook/%s%s?api_key=%s&v=2", scheme, address, h.plant("the path of "+what, ""), end,
			url.QueryEscape(h.plant("the query of "+what, escapesNeeded))))
	}
	config := "log_level: debug\nstart_grace: 20s\nupstreams:\n"
	upstream := func(id, members string) {
		config += "  " + id + ":\n    timeout: 20s\n    " + strings.ReplaceAll(strings.TrimSpace(members), "\n", "\n    ") + "\n" + more
	}

	_, address := start(true)
	upstream("modern", "url: "+secretURL("http", address, "modern", "/mcp")+"\nheaders: {X-Api-Key: "+quoted(h.plant("a header", escapesNeeded))+
		", X-Pin-Key: "+quoted(h.plantNumber("a number in a header"))+", X-Opaque: "+quoted(h.plant("a header without a telling name", ""))+
		"}\ncredential: {bearer: "+quoted(h.plant("the bearer", "/+~"))+"}")

	e, address := start(false)
	tokens := newTokens(t, e, h)
	tokens.clientSecret = h.plant("the client secret", escapesNeeded)
	upstream("legacy", "url: http://"+address+"/mcp\nprotocol: legacy\ncredential: {oauth2: {token_url: "+quoted(tokens.URL+"/token?key="+h.plant("the query of token_url", ""))+
		", client_id: gateway, client_secret: "+quoted(tokens.clientSecret)+", resource: http://resource.example}}")

	e, address = start(true)
	refreshed := newTokens(t, e, h)
	refreshed.clientSecret, refreshed.refresh = h.plant("the other client secret", ""), h.plant("the refresh token", "/+~")
	upstream("refreshed", "url: http://"+address+"/mcp\ncredential: {oauth2: {token_url: "+quoted(refreshed.URL+"/token")+
		", client_id: gateway, client_secret: "+quoted(refreshed.clientSecret)+", refresh_token: "+quoted(refreshed.refresh)+"}}")

	_, address = start(false)
	file := filepath.Join(t.TempDir(), "token")
	writeFile(t, file, `{"access_token":"`+h.plant("the token of a command", "/+~")+`","expires_in":3600}`)
	upstream("sse", "url: "+secretURL("http", address, "sse", "/sse")+"\nprotocol: legacy\ntransport: sse\ncredential: {command: ["+quoted(self())+", print-token, "+quoted(file)+"]}")

	_, address = start(false)
	upstream("ws", "url: "+quoted(fmt.Sprintf("ws://someone:%s@%s/ws?token=%s", url.QueryEscape(h.plant("the userinfo", escapesNeeded)), address, h.plant("the query of ws", ""))))

	_, address = start(false)
	writeFile(t, file+".file", h.plant("the bearer of a file", "/+~")+"\n")
	upstream("wsquery", "url: ws://"+address+"/ws\ncredential: {bearer: "+quoted("${file:"+file+".file}")+", query: access_token}")

	upstream("child", fmt.Sprintf("command: %s\nargs: [echo-server, --token, %s, %s, --header, %s, %s]\nenv: {%s: %s, %s: %s, ECHO_API_TOKEN: %s, ECHO_PASSWORD: %s, ECHO_PIN_KEY: %s, ECHO_DATABASE_URL: %s}",
		quoted(self()), quoted(h.plant("an argument", escapesNeeded)), quoted("--api-key="+h.plant("an argument with =", "")),
		quoted("Authorization: Bearer "+h.plant("an argument's header", "")), quoted("https://me:"+h.plant("an argument's userinfo", "")+"@host.example/?token="+h.plant("an argument's query", "")),
		recordEnv, quoted(c.child), runEnv, quoted(run.id), quoted(h.plant("a variable", escapesNeeded)), quoted(h.plant("a variable of many lines", "\nö\t\U0001F511'")),
		quoted(h.plantNumber("a number in a variable")), quoted("postgres://me:"+h.plant("a variable's userinfo", "")+"@db.example/x?sslmode=off&password="+h.plant("a variable's query", ""))))

	c.gateway = serve(t, config, "--log-level", "debug")
	c.allListed(t)
	return c
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A tokens is a token endpoint that gives a new token at each grant, and to its echo all that it was sent and gave.
type tokens struct {
	URL          string
	clientSecret string
	refresh      string // the one refresh token that is good, "" for client credentials
	echo         *echo
	hunt         *hunt
	lives        int // of each token in seconds, 3600 where it is 0
	server       *httptest.Server
	fail         func(w http.ResponseWriter) bool // answers instead, where it reports that it did

	mu      sync.Mutex // guards all below, and refresh
	grants  int
	revoked bool // a refresh token came twice, and with it everything went
	newest  string
}

func newTokens(t *testing.T, e *echo, h *hunt) *tokens {
	t.Helper()
	k := &tokens{echo: e, hunt: h}
	server := httptest.NewServer(k)
	k.URL, k.server = server.URL, server
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return k
}

func (k *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	_, secret, basic := r.BasicAuth()
	if basic {
		secret, _ = url.QueryUnescape(secret)
	} else {
		secret = r.Form.Get("client_secret")
	}
	if k.echo != nil {
		k.echo.request(r)
		k.echo.note(secret, r.Form.Get("refresh_token"))
		k.echo.note(r.Form.Encode())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.grants++
	if k.fail != nil && k.fail(w) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":%q,"error_description":%s}`, code, jsonText("you sent "+secret+" and "+r.Form.Encode()))
	}
	answer := map[string]any{"token_type": "Bearer", "expires_in": cmp.Or(k.lives, 3600)}
	switch {
	case secret != k.clientSecret:
		refuse(http.StatusUnauthorized, "invalid_client")
		return
	case k.refresh != "":
		if k.revoked = k.revoked || r.Form.Get("refresh_token") != k.refresh; k.revoked {
			refuse(http.StatusBadRequest, "invalid_grant")
			return
		}
		k.refresh = k.hunt.plant(fmt.Sprintf("refresh token %d", k.grants), "~")
		answer["refresh_token"] = k.refresh
	}
	k.newest = k.hunt.plant(fmt.Sprintf("access token %d", k.grants), "/+~")
	answer["access_token"] = k.newest
	if k.echo != nil {
		k.echo.note(k.newest, k.refresh)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// asks sends what a client of each kind sends, and gives all that it got back.
func (c crossing) asks(t *testing.T, ask func(where string, r reply)) {
	t.Helper()
	type client struct {
		name string
		post func(method, name, members string) reply
	}
	eventsOnly, jsonOnly := modernHeader("", ""), modernHeader("", "")
	eventsOnly.Set("Accept", "text/event-stream")
	jsonOnly.Set("Accept", "application/json")
	clients := []client{{"legacy", func() func(string, string, string) reply {
		l := handshake(t, c.URL, "2025-11-25")
		return func(method, _, members string) reply { return l.ask(t, `1`, method, members) }
	}()}}
	for name, header := range map[string]http.Header{"modern JSON": jsonOnly, "modern events": eventsOnly} {
		clients = append(clients, client{name, func(method, tool, members string) reply {
			h := header.Clone()
			h.Set("Mcp-Method", method)
			if h.Del("Mcp-Name"); tool != "" {
				h.Set("Mcp-Name", tool)
			}
			// Progress and log messages are asked for in the one place where all metadata is.
			body := strings.Replace(string(modernRequest(`1`, method, members)), `"_meta":{`,
				`"_meta":{"progressToken":"progress","io.modelcontextprotocol/logLevel":"debug",`, 1)
			return post(t, c.URL, h, []byte(body))
		}})
	}
	var together sync.WaitGroup
	for _, cl := range clients {
		together.Go(func() {
			ask(cl.name+" list", cl.post("tools/list", "", ""))
			for _, id := range []string{"modern", "legacy", "refreshed", "sse", "ws", "wsquery", "child"} {
				for _, tool := range echoTools {
					if cl.name == "modern JSON" && tool != "echo" && tool != "error" && tool != "events" {
						continue // how it is framed makes no difference to the gateway's own words
					}
					members := fmt.Sprintf(`"name":"%s__%s"`, id, tool)
					if cl.name == "legacy" {
						members += `,"_meta":{"progressToken":1}`
					}
					ask(cl.name+" "+id+" "+tool, cl.post("tools/call", id+"__"+tool, members))
				}
			}
		})
	}
	together.Wait()
}

// TestNoCredentialCrosses has servers on each transport write all that they were sent into everything that they say, in every encoding.
// Nothing of it may reach a client or a log, and what reaches a client is JSON still.
func TestNoCredentialCrosses(t *testing.T) {
	t.Parallel()
	c := newCrossing(t, "")
	var mu sync.Mutex
	masked := map[string]int{}
	c.asks(t, func(where string, r reply) {
		var head strings.Builder
		_ = r.header.Write(&head)
		c.hunt.clean(t, where, head.String()+string(r.body))
		wholeJSON(t, where, r.header, r.body)
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(string(r.body), mask) {
			masked[where]++
		}
	})
	for _, id := range []string{"modern", "legacy", "refreshed", "sse", "ws", "wsquery", "child"} {
		for _, tool := range []string{"echo", "error"} {
			// A call that met the end of a connection, which another tool has brought about, has not been answered.
			if masked["legacy "+id+" "+tool] == 0 && !eventually(patience, func() bool {
				r := call(t, c.gateway, id+"__"+tool)
				c.hunt.clean(t, id+" "+tool, string(r.body))
				return strings.Contains(string(r.body), mask)
			}) {
				t.Errorf("%s: %s shows no sign that anything was taken out", id, tool)
			}
		}
		// What lost its connection is connected again.
		if !eventually(patience, func() bool { return textOf(call(t, c.gateway, id+"__plain")) == "plain" }) {
			t.Errorf("%s no longer answers", id)
		}
	}
	c.stop(t)
	c.hunt.clean(t, "the log", c.out.String())
	for line := range strings.Lines(c.out.String()) {
		if strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
			t.Errorf("a record is no JSON: %.300q", line)
		}
		if strings.Contains(line, "\x1b") {
			t.Errorf("a record has a terminal's escapes: %.300q", line)
		}
	}
	checked := command(t, nil, "check", "-c", c.file)
	c.hunt.clean(t, "check", checked.output)
	c.wereShown(t)
}

// wereShown holds the test itself to having put each secret before the gateway.
func (c crossing) wereShown(t *testing.T) {
	t.Helper()
	child, err := os.ReadFile(c.child)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	texts := []string{string(child)}
	for _, e := range c.echos {
		e.mu.Lock()
		texts = append(texts, e.wrote.String())
		e.mu.Unlock()
	}
	for _, text := range texts {
		for _, found := range c.hunt.find(text[max(0, len(text)-1<<20):]) {
			seen[found.what] = true
		}
	}
	for _, what := range c.hunt.all() {
		if !seen[what] {
			t.Errorf("no server has shown %s, so that nothing was tested of it", what)
		}
	}
}

// TestResultsMayPassAsTheyAre lets servers' own answers through where the configuration says so, and nothing into the log.
func TestResultsMayPassAsTheyAre(t *testing.T) {
	t.Parallel()
	c := newCrossing(t, "    redact: {results: false}\n")
	for _, id := range []string{"modern", "sse", "ws", "child"} {
		for _, tool := range []string{"echo", "error"} {
			r := call(t, c.gateway, id+"__"+tool)
			if len(c.hunt.find(string(r.body))) == 0 || strings.Contains(string(r.body), mask) {
				t.Errorf("%s: %s did not pass as it is: %.300q", id, tool, r)
			}
		}
		for _, tool := range []string{"status", "html", "garbage", "die"} {
			r := call(t, c.gateway, id+"__"+tool)
			if _, text, own := failed(r); own {
				c.hunt.clean(t, "the gateway's own words for "+id+" "+tool, text)
			}
		}
	}
	_, definitions := listed(t, modernClient{c.URL})
	if len(c.hunt.find(string(definitions["modern__shows"]))) == 0 {
		t.Error("a definition did not pass as it is")
	}
	c.stop(t)
	c.hunt.clean(t, "the log", c.out.String())
}
