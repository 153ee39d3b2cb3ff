package e2e

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// An asking server is a modern one over Streamable HTTP. Its tools ask and other want a person's word before they complete, forever
// wants only another round, again and again. A completed call's text is the state that came back.
type asking struct {
	URL  string
	mu   sync.Mutex // guards seen
	seen int        // calls, each round one
}

func newAsking(t *testing.T) *asking {
	t.Helper()
	a := &asking{}
	server := httptest.NewServer(a)
	a.URL = server.URL + "/mcp"
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return a
}

// askingState is the server's own, with what a gateway that decodes it might change.
const askingState = `"of the \u0073erver: é \u2028 <&>"`

func (a *asking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req struct {
		cannedRequest
		Params struct {
			Name           string
			RequestState   json.RawMessage
			InputResponses json.RawMessage
		}
	}
	if err != nil || json.Unmarshal(body, &req) != nil || req.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	member := `"error":{"code":-32601,"message":"no such method"}`
	switch req.Method {
	case "server/discover":
		member = `"result":` + cannedDiscover
	case "tools/list":
		member = `"result":{"ttlMs":0,"cacheScope":"public",` + cannedModern + toolsNamed("ask", "other", "forever") + `}`
	case "tools/call":
		a.mu.Lock()
		a.seen++
		a.mu.Unlock()
		switch {
		case req.Params.Name == "forever":
			member = `"result":{"resultType":"input_required","requestState":"more"}`
		case req.Params.InputResponses == nil:
			member = `"result":{"resultType":"input_required","inputRequests":{"sure":{"method":"elicitation/create","params":` +
				`{"mode":"form","message":"Sure?","requestedSchema":{"type":"object","properties":{}},"later":1.0}}},"requestState":` + askingState + `,"later":1e2}`
		default:
			text, _ := json.Marshal(string(req.Params.RequestState) + " " + string(req.Params.InputResponses))
			member = `"result":{` + cannedModern + `"content":[{"type":"text","text":` + string(text) + `}]}`
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, message(req.cannedRequest, member))
}

func (a *asking) calls() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen
}

// An asker is a raw modern client with an API key and capabilities of its own.
type asker struct{ key, capabilities string }

const canElicit = `{"elicitation":{"form":{}}}`

func (c asker) call(t *testing.T, g *gateway, name, members string) reply {
	t.Helper()
	h := modernHeader("tools/call", name)
	if c.key != "" {
		h.Set("Authorization", "Bearer "+c.key)
	}
	body := modernRequest(`1`, "tools/call", `"name":"`+name+`"`+members)
	return post(t, g.URL, h, []byte(strings.Replace(string(body), `clientCapabilities":{}`, `clientCapabilities":`+c.capabilities, 1)))
}

// stateOf is the sealed state of a call that needs another round, as written.
func stateOf(t *testing.T, r reply) string {
	t.Helper()
	var result struct {
		ResultType   string
		RequestState json.RawMessage
	}
	if json.Unmarshal(r.result, &result) != nil || result.ResultType != "input_required" || len(result.RequestState) < 10 {
		t.Fatalf("no other round is asked for: %v", r)
	}
	return string(result.RequestState)
}

func randomText(n int) string {
	text := make([]byte, n)
	_, _ = rand.Read(text)
	return base64.StdEncoding.EncodeToString(text)
}

// TestRoundsAcrossReplicas begins a call at one gateway and ends it at another with the same keys. Only who began it can, and only it.
func TestRoundsAcrossReplicas(t *testing.T) {
	t.Parallel()
	server := newAsking(t)
	alice, bob := asker{"mcpgw_alice-of-the-tests", canElicit}, asker{"mcpgw_bob-of-the-tests", canElicit}
	old, young := randomText(32), randomText(32)
	config := func(keys ...string) string {
		list, _ := json.Marshal(keys)
		return fmt.Sprintf("callers: {keys: {alice: \"sha256:%x\", bob: \"sha256:%x\"}}\nseal: {keys: %s}\nupstreams:\n  web: {url: %s, rounds: 4}\n",
			sha256.Sum256([]byte(alice.key)), sha256.Sum256([]byte(bob.key)), list, quoted(server.URL))
	}
	one, two := serve(t, config(old)), serve(t, config(old))

	const args = `,"arguments":{"b":[1.0,20000000000000000001],"a":"\u00e9"}`
	first := alice.call(t, one, "web__ask", args)
	state := stateOf(t, first)
	for _, verbatim := range []string{`"requestedSchema":{"type":"object","properties":{}},"later":1.0}`, `"later":1e2`} {
		if !strings.Contains(string(first.result), verbatim) {
			t.Errorf("the question has no %s: %v", verbatim, first)
		}
	}
	if strings.Contains(state, "server") || strings.Contains(state, "é") {
		t.Errorf("the state is not sealed: %s", state)
	}
	const answer = `,"inputResponses":{"sure":{"action":"accept","content":{},"n":1.0}}`
	before := server.calls()
	changed := []byte(state)
	if changed[len(changed)/2]++; changed[len(changed)/2] == '"' || changed[len(changed)/2] == '\\' {
		changed[len(changed)/2]++
	}
	for name, r := range map[string]reply{
		"another caller":   bob.call(t, two, "web__ask", args+answer+`,"requestState":`+state),
		"another tool":     alice.call(t, two, "web__other", args+answer+`,"requestState":`+state),
		"other arguments":  alice.call(t, two, "web__ask", `,"arguments":{"b":[1.0,20000000000000000002],"a":"é"}`+answer+`,"requestState":`+state),
		"no arguments":     alice.call(t, two, "web__ask", answer+`,"requestState":`+state),
		"a changed state":  alice.call(t, two, "web__ask", args+answer+`,"requestState":`+string(changed)),
		"the server's own": alice.call(t, two, "web__ask", args+answer+`,"requestState":`+askingState),
		"no text":          alice.call(t, two, "web__ask", args+answer+`,"requestState":7`),
	} {
		if r.code() != -32602 || strings.Contains(string(r.body), "mcp-gateway/outcome") {
			t.Errorf("%s: %v, want -32602", name, r)
		}
	}
	if n := server.calls() - before; n != 0 {
		t.Errorf("%d of the refused rounds reached the server", n)
	}

	completed := func(g *gateway, state string) {
		t.Helper()
		// The same arguments in other words.
		r := alice.call(t, g, "web__ask", `,"arguments":{"a":"é","b":[1,20000000000000000001]}`+answer+`,"requestState":`+state)
		if want := askingState + ` {"sure":{"action":"accept","content":{},"n":1.0}}`; textOf(r) != want {
			t.Errorf("the last round: %v, want %s", r, want)
		}
	}
	completed(two, state)

	// Keys rotate: added last, then moved first. What either seals, both open.
	if !two.reload(t, config(old, young)) || !one.reload(t, config(young, old)) {
		t.Fatal("the keys were not taken")
	}
	completed(one, state)
	completed(two, stateOf(t, alice.call(t, one, "web__ask", args)))
}

// TestRoundsOfOfficialPeers has the official client answer what the official server asks.
func TestRoundsOfOfficialPeers(t *testing.T) {
	t.Parallel()
	g := serve(t, "upstreams:\n  web:\n"+livelyHTTP(t)+"  pipe:\n"+lively(t))
	g.allListed(t)
	calls := []toolCall{
		{Name: "web__confirm", Arguments: map[string]any{"what": "one"}},
		{Name: "pipe__confirm", Arguments: map[string]any{"what": "two"}},
	}
	got := talk(t, "client-asked.mjs", calls, nil, g.URL)
	for i, want := range []string{"one: accept true asked for one", "two: accept true asked for two"} {
		if text, _ := json.Marshal(got.Results[i]); !strings.Contains(string(text), `"text":"`+want+`"`) {
			t.Errorf("%s: %s", calls[i].Name, text)
		}
	}
	// The server is told what the client can do, and itself refuses to ask one that cannot answer.
	for _, script := range []string{"client-modern.mjs", "client-legacy.mjs"} {
		for _, result := range talk(t, script, calls, nil, g.URL).Results {
			if result.Error["code"] != -32021.0 {
				t.Errorf("%s: %+v, want the server's -32021", script, result)
			}
		}
	}
}

// TestRoundsThatEnd are calls that need a round which the gateway does not take.
func TestRoundsThatEnd(t *testing.T) {
	t.Parallel()
	server := newAsking(t)
	g := serve(t, "upstreams:\n  web: {url: "+quoted(server.URL)+", rounds: 3}\n")
	g.allListed(t)
	legacy := handshake(t, g.URL, "2025-11-25")
	stuck := verdict{"no-response", "caller-cannot-continue", "web", "tools/call", "check", 0}
	for name, r := range map[string]reply{
		"a client without elicitation": asker{"", "{}"}.call(t, g, "web__ask", ""),
		"one of urls alone":            asker{"", `{"elicitation":{"url":{}}}`}.call(t, g, "web__ask", ""),
		"a legacy client":              legacy.ask(t, `1`, "tools/call", `"name":"web__ask"`),
		"a legacy client, no person":   legacy.ask(t, `1`, "tools/call", `"name":"web__forever"`),
	} {
		v, text, ok := failed(r)
		v.HTTPStatus = 0
		if !ok || v != stuck || text == "" {
			t.Errorf("%s: %+v, want %+v: %v", name, v, stuck, r)
		}
	}

	client, before := asker{"", "{}"}, server.calls()
	members := ""
	for range 2 {
		members = `,"requestState":` + stateOf(t, client.call(t, g, "web__forever", members))
	}
	want := verdict{"no-response", "rounds-exhausted", "web", "tools/call", "check", 0}
	r := client.call(t, g, "web__forever", members)
	v, _, ok := failed(r)
	v.HTTPStatus = 0
	if !ok || v != want {
		t.Errorf("the round too many: %+v, want %+v: %v", v, want, r)
	}
	if n := server.calls() - before; n > 3 {
		t.Errorf("the server saw %d rounds, want at most 3", n)
	}
}

// TestRoundsThatComeTooLate go on with a state until its time has passed. Then nothing is sent.
func TestRoundsThatComeTooLate(t *testing.T) {
	t.Parallel()
	server := newAsking(t)
	g := serve(t, "upstreams:\n  brief: {url: "+quoted(server.URL)+", input_timeout: 1s}\n  hasty: {url: "+quoted(server.URL)+", timeout: 2s}\n")
	g.allListed(t)
	client := asker{"", canElicit}
	for _, c := range []struct{ upstream, tool, answer, cause string }{
		{"brief", "ask", `,"inputResponses":{"sure":{"action":"accept","content":{}}}`, "state-expired"},
		{"hasty", "forever", "", "state-used-up"},
	} {
		t.Run(c.cause, func(t *testing.T) {
			name := c.upstream + "__" + c.tool
			members := c.answer + `,"requestState":` + stateOf(t, client.call(t, g, name, ""))
			var v verdict
			if !eventually(patience, func() bool {
				before := server.calls()
				r := client.call(t, g, name, members)
				var late bool
				if v, _, late = failed(r); !late || v.Cause != c.cause {
					return false
				}
				if n := server.calls() - before; n != 0 {
					t.Errorf("%d rounds were sent all the same", n)
				}
				return true
			}) {
				t.Fatal("it never came too late")
			}
			if want := (verdict{"no-response", c.cause, c.upstream, "tools/call", "check", 0}); v != want {
				t.Errorf("%+v, want %+v", v, want)
			}
		})
	}
}
