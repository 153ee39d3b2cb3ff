package e2e

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A hostile request must be refused before it is routed: a reader that took another member for the name, the method or
// the params would run something else than what was checked.
type hostile struct {
	name   string
	body   string
	header func(http.Header) // changes the headers of a good request; may be nil
	status []int
	codes  []int  // of the JSON-RPC error; empty where a body is not promised
	id     string // which the error repeats; empty where the id cannot be read for certain
}

var (
	bad        = []int{http.StatusBadRequest}
	unreadable = []int{-32700}
	invalid    = []int{-32600}
	// A repeated name is no valid request, and to a strict parser not even JSON.
	repeated = []int{-32600, -32700}
	params   = []int{-32602, -32600}
	mismatch = []int{-32020}
)

const (
	target    = "web__last.of-them"
	goodStart = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + target + `",`
	goodEnd   = `"arguments":{},` + envelope + `}}`
)

// hostileTexts are wrong in both eras. %META% stands for the modern metadata.
var hostileTexts = []hostile{
	{name: "name in another case", body: goodStart + `"NAME":"web__odd",` + goodEnd, status: bad, codes: params, id: "7"},
	{name: "name in another case first", body: strings.Replace(goodStart, `"name"`, `"Name":"web__odd","name"`, 1) + goodEnd, status: bad, codes: params, id: "7"},
	{name: "name only in another case", body: strings.Replace(goodStart, `"name"`, `"NAME"`, 1) + goodEnd, status: bad, codes: append(mismatch, params...), id: "7"},
	{name: "name with a NUL", body: strings.Replace(goodStart, `"name"`, `"name\u0000"`, 1) + goodEnd, status: bad, codes: append(mismatch, params...), id: "7"},
	{name: "name and name with a NUL", body: goodStart + `"name\u0000":"web__odd",` + goodEnd, status: bad, codes: params, id: "7"},
	{name: "name twice", body: goodStart + `"name":"web__odd",` + goodEnd, status: bad, codes: repeated},
	{name: "name twice, one escaped", body: goodStart + `"na\u006de":"web__odd",` + goodEnd, status: bad, codes: repeated},
	{name: "arguments twice", body: goodStart + `"arguments":{"a":1},` + goodEnd, status: bad, codes: repeated},
	{name: "a name twice deep inside", body: goodStart + `"x":[{"y":{"k":1,"\u006b":2}}],` + goodEnd, status: bad, codes: repeated},
	{name: "method twice", body: strings.Replace(goodStart, `"method"`, `"method":"tools/list","method"`, 1) + goodEnd, status: bad, codes: repeated},
	{name: "method in another case", body: strings.Replace(goodStart, `"method"`, `"Method":"tools/list","method"`, 1) + goodEnd, status: bad, codes: repeated},
	{name: "params twice", body: goodStart + goodEnd[:len(goodEnd)-1] + `,"params":{"name":"web__odd",` + envelope + `}}`, status: bad, codes: repeated},
	{name: "id twice", body: strings.Replace(goodStart, `"id":7`, `"id":7,"id":8`, 1) + goodEnd, status: bad, codes: repeated},
	{name: "text after the message", body: goodStart + goodEnd + ` garbage`, status: bad, codes: unreadable},
	{name: "two messages", body: goodStart + goodEnd + goodStart + goodEnd, status: bad, codes: unreadable},
	{name: "a bracket too many", body: goodStart + goodEnd + `}`, status: bad, codes: unreadable},
	{name: "cut off", body: goodStart + goodEnd[:len(goodEnd)-1], status: bad, codes: unreadable},
	{name: "a byte order mark", body: "\xef\xbb\xbf" + goodStart + goodEnd, status: bad, codes: unreadable},
	{name: "a byte that is not UTF-8", body: goodStart + "\"x\":\"\xff\"," + goodEnd, status: bad, codes: unreadable},
	{name: "an overlong encoding", body: goodStart + "\"x\":\"\xc0\xaf\"," + goodEnd, status: bad, codes: unreadable},
	{name: "a NUL byte", body: goodStart + goodEnd + "\x00", status: bad, codes: unreadable},
	{name: "a comment", body: goodStart + `/* */` + goodEnd, status: bad, codes: unreadable},
	{name: "too deep", body: goodStart + `"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `,` + goodEnd, status: bad, codes: repeated},
	{name: "far too deep", body: goodStart + `"x":` + strings.Repeat(`{"a":`, 200_000), status: bad, codes: repeated},
	{name: "empty", body: "", status: bad, codes: unreadable},
	{name: "null", body: "null", status: bad, codes: invalid},
	{name: "a string", body: `"tools/call"`, status: bad, codes: invalid},
	{name: "an array", body: `[` + goodStart + goodEnd + `]`, status: bad, codes: invalid},
	{name: "an empty array", body: `[]`, status: bad, codes: invalid},
	{name: "a request and a response", body: strings.Replace(goodStart, `"method"`, `"result":{},"method"`, 1) + goodEnd, status: bad, codes: invalid},
	{name: "id null", body: strings.Replace(goodStart, `"id":7`, `"id":null`, 1) + goodEnd, status: bad, codes: invalid},
	{name: "id with a fraction", body: strings.Replace(goodStart, `"id":7`, `"id":7.5`, 1) + goodEnd, status: bad, codes: invalid},
	{name: "id an object", body: strings.Replace(goodStart, `"id":7`, `"id":{}`, 1) + goodEnd, status: bad, codes: invalid},
	{name: "no version", body: strings.Replace(goodStart, `"jsonrpc":"2.0",`, ``, 1) + goodEnd, status: bad, codes: invalid},
	{name: "another version", body: strings.Replace(goodStart, `"2.0"`, `"1.0"`, 1) + goodEnd, status: bad, codes: invalid},
	{name: "method no string", body: strings.Replace(goodStart, `"tools/call"`, `["tools/call"]`, 1) + goodEnd, status: bad, codes: invalid},
	{name: "name an array", body: strings.Replace(goodStart, `"`+target+`"`, `["`+target+`"]`, 1) + goodEnd, status: bad, codes: append(mismatch, params...)},
	{name: "huge", body: goodStart + `"x":"` + strings.Repeat("x", 5<<20) + `",` + goodEnd, status: []int{http.StatusRequestEntityTooLarge}},
	{name: "another Origin", body: goodStart + goodEnd, header: set("Origin", "http://evil.example"), status: []int{http.StatusForbidden}},
	{name: "Origin null", body: goodStart + goodEnd, header: set("Origin", "null"), status: []int{http.StatusForbidden}},
	{name: "another Host", body: goodStart + goodEnd, header: set("Host", "evil.example"), status: []int{http.StatusForbidden}},
	{name: "another Host and its Origin", body: goodStart + goodEnd, status: []int{http.StatusForbidden}, header: func(h http.Header) {
		h.Set("Host", "evil.example:8080")
		h.Set("Origin", "http://evil.example:8080")
	}},
	{name: "another content type", body: goodStart + goodEnd, header: set("Content-Type", "text/plain"), status: []int{http.StatusUnsupportedMediaType}},
	{name: "an Accept that fits nothing", body: goodStart + goodEnd, header: set("Accept", "text/html"), status: []int{http.StatusNotAcceptable}},
}

// hostileModern are wrong on the modern wire, where headers and metadata must agree with the body.
var hostileModern = []hostile{
	{name: "a response", body: `{"jsonrpc":"2.0","id":7,"result":{}}`, status: bad, codes: invalid},
	{name: "params an array", body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":["` + target + `"]}`, status: bad, codes: params, id: "7"},
	{name: "another name in the header", body: goodStart + goodEnd, header: set("Mcp-Name", "web__odd"), status: bad, codes: mismatch, id: "7"},
	{name: "the name in another case in the header", body: goodStart + goodEnd, header: set("Mcp-Name", "WEB__last.of-them"), status: bad, codes: mismatch, id: "7"},
	{name: "no name in the header", body: goodStart + goodEnd, header: set("Mcp-Name", ""), status: bad, codes: mismatch, id: "7"},
	{name: "two names in the header", body: goodStart + goodEnd, header: add("Mcp-Name", "web__odd"), status: bad, codes: mismatch, id: "7"},
	{name: "a name in broken Base64", body: goodStart + goodEnd, header: set("Mcp-Name", "=?base64?d2Vi*?="), status: bad, codes: mismatch, id: "7"},
	{name: "another method in the header", body: goodStart + goodEnd, header: set("Mcp-Method", "tools/list"), status: bad, codes: mismatch, id: "7"},
	{name: "no method in the header", body: goodStart + goodEnd, header: set("Mcp-Method", ""), status: bad, codes: mismatch, id: "7"},
	{name: "another revision in the header", body: goodStart + goodEnd, header: set("MCP-Protocol-Version", "2025-11-25"), status: bad, codes: mismatch, id: "7"},
	{name: "no revision in the header", body: goodStart + goodEnd, header: set("MCP-Protocol-Version", ""), status: bad, codes: mismatch, id: "7"},
	{name: "no revision in the metadata", body: goodStart + strings.Replace(goodEnd, `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`, ``, 1),
		status: bad, codes: params, id: "7"},
	{name: "no capabilities", body: goodStart + strings.Replace(goodEnd, `"io.modelcontextprotocol/clientCapabilities":{},`, ``, 1),
		status: bad, codes: params, id: "7"},
	{name: "an unknown revision", body: goodStart + strings.Replace(goodEnd, "2026-07-28", "2099-01-01", 1),
		header: set("MCP-Protocol-Version", "2099-01-01"), status: bad, codes: []int{-32022}, id: "7"},
	{name: "initialize", body: strings.Replace(goodStart, "tools/call", "initialize", 1) + goodEnd,
		header: set("Mcp-Method", "initialize"), status: []int{http.StatusNotFound}, codes: []int{-32601}, id: "7"},
	{name: "an unknown method", body: strings.Replace(goodStart, "tools/call", "tools/run", 1) + goodEnd,
		header: set("Mcp-Method", "tools/run"), status: []int{http.StatusNotFound}, codes: []int{-32601}, id: "7"},
	{name: "a method in another case", body: strings.Replace(goodStart, "tools/call", "Tools/Call", 1) + goodEnd,
		header: set("Mcp-Method", "Tools/Call"), status: []int{http.StatusNotFound}, codes: []int{-32601}, id: "7"},
}

// set changes one header; an empty value takes it off.
func set(name, value string) func(http.Header) {
	return func(h http.Header) {
		h.Del(name)
		if value != "" {
			h.Set(name, value)
		}
	}
}

func add(name, value string) func(http.Header) {
	return func(h http.Header) { h.Add(name, value) }
}

func TestHostileRequestsAreNeverRouted(t *testing.T) {
	g, web, pipe := cannedPair(t)
	// Both upstreams are listed, so that nothing but the request itself stands in the way.
	listed(t, modernClient{g.URL})
	legacy := handshake(t, g.URL, "2025-11-25")

	refused := func(t *testing.T, c hostile, header http.Header, body string) {
		t.Helper()
		if c.header != nil {
			c.header(header)
		}
		overHTTP, overPipe := len(web.calls()), len(pipe.calls(t))
		r := post(t, g.URL, header, []byte(body))
		if !slices.Contains(c.status, r.status) {
			t.Errorf("the status is not one of %d: %v", c.status, r)
		}
		if len(c.codes) > 0 && !slices.Contains(c.codes, r.code()) {
			t.Errorf("the code is not one of %d: %v", c.codes, r)
		}
		if c.id != "" && string(r.id) != c.id || r.result != nil {
			t.Errorf("not an error with the id %q: %v", c.id, r)
		}
		if calls := web.calls()[overHTTP:]; len(calls) > 0 {
			t.Errorf("the request was routed: %s", calls[0].body)
		}
		if calls := pipe.calls(t)[overPipe:]; len(calls) > 0 {
			t.Errorf("the request was routed: %s", calls[0])
		}
	}
	for _, c := range append(slices.Clone(hostileTexts), hostileModern...) {
		t.Run("modern/"+c.name, func(t *testing.T) {
			refused(t, c, modernHeader("tools/call", target), c.body)
		})
	}
	for _, c := range hostileTexts {
		t.Run("legacy/"+c.name, func(t *testing.T) {
			if slices.Equal(c.status, bad) {
				// Errors of a request that could be read ride in a 200 there.
				c.status = []int{http.StatusBadRequest, http.StatusOK}
			}
			refused(t, c, legacyHeader("2025-11-25", legacy.session), strings.ReplaceAll(c.body, ","+envelope, ""))
		})
	}
	// A GET is for the stream of a session: without one there is nothing to listen to, and a modern client has none.
	for revision, want := range map[string]int{"": http.StatusBadRequest, "2025-11-25": http.StatusBadRequest, "2026-07-28": http.StatusMethodNotAllowed} {
		t.Run("GET "+revision, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if revision != "" {
				req.Header.Set("MCP-Protocol-Version", revision)
			}
			resp, err := direct.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want || (resp.Header.Get("Allow") != "") != (want == http.StatusMethodNotAllowed) {
				t.Errorf("the status is %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
			}
		})
	}

	// The same request without a flaw is routed, so the refusals say something.
	before := len(web.calls())
	r := post(t, g.URL, modernHeader("tools/call", target), []byte(goodStart+goodEnd))
	if r.status != http.StatusOK || !bytes.Contains(r.result, []byte("last")) || len(web.calls()) != before+1 {
		t.Errorf("a good request: %v", r)
	}
}

func TestDenialsReadTheSame(t *testing.T) {
	web := newCannedHTTP(t)
	g := serve(t, "upstreams:\n  web:\n    url: "+web.URL+"\n    tools:\n      allow: [\"odd\", \"l*\"]\n      deny: [\"odd\"]\n")
	names, _ := listed(t, modernClient{g.URL})
	if !slices.Equal(names, []string{"web__last.of-them"}) {
		t.Errorf("the tools are %q", names)
	}
	answer := func(name string) string {
		r := modernClient{g.URL}.ask(t, `1`, "tools/call", `"name":"`+name+`"`)
		return strings.ReplaceAll(r.String(), name, "NAME")
	}
	denied, unlisted, unknown, foreign := answer("web__odd"), answer("web__null"), answer("web__nothing"), answer("nothing")
	if denied != unlisted || denied != unknown || denied != foreign || !strings.Contains(denied, "-32602") {
		t.Errorf("they read\n%s\n%s\n%s\n%s", denied, unlisted, unknown, foreign)
	}
	if len(web.calls()) != 0 {
		t.Error("a denied call was routed")
	}
}
