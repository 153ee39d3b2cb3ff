package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// direct makes one connection for each request, so that none outlives a test.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// envelope is the metadata that every modern request carries.
const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
	`"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}}`

// A reply is what came back for one POST.
type reply struct {
	status int
	header http.Header
	body   []byte
	frame  bool // the message came as a line, so white space in it may be gone
	// The parts of the JSON-RPC message, as written; nil where absent.
	id, result, failure json.RawMessage
}

// post sends one body and reads the answer to its end.
func post(t *testing.T, url string, header http.Header, body []byte) reply {
	t.Helper()
	r, err := tryPost(t.Context(), url, header, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryPost(ctx context.Context, url string, header http.Header, body []byte) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header = header.Clone()
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := direct.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, header: resp.Header}
	if r.body, err = io.ReadAll(resp.Body); err != nil {
		return r, fmt.Errorf("reading the answer: %w", err)
	}
	r.parse()
	return r, nil
}

// parse takes the response out of a JSON body, or out of the last event of a stream.
func (r *reply) parse() {
	message := r.body
	if strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		r.frame = true
		for line := range bytes.Lines(r.body) {
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
				message = data
			}
		}
	}
	var parts map[string]json.RawMessage
	if json.Unmarshal(message, &parts) == nil {
		r.id, r.result, r.failure = parts["id"], parts["result"], parts["error"]
	}
}

// code is the code of the JSON-RPC error, zero without one.
func (r reply) code() int {
	var e struct{ Code int }
	_ = json.Unmarshal(r.failure, &e)
	return e.Code
}

func (r reply) String() string {
	return fmt.Sprintf("%d %s", r.status, bytes.TrimSpace(r.body[:min(len(r.body), 2000)]))
}

// A rawClient speaks one era and shows the bytes.
type rawClient interface {
	// ask sends a request whose params are the members given, without braces.
	ask(t *testing.T, id, method, members string) reply
}

type modernClient struct{ url string }

// modernHeader are the headers of a modern request; an empty name stands for a method that has none.
func modernHeader(method, name string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("MCP-Protocol-Version", "2026-07-28")
	h.Set("Mcp-Method", method)
	if name != "" {
		h.Set("Mcp-Name", name)
	}
	return h
}

func modernRequest(id, method, members string) []byte {
	if members != "" {
		members += ","
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s%s}}`, id, method, members, envelope)
}

func (c modernClient) ask(t *testing.T, id, method, members string) reply {
	t.Helper()
	return post(t, c.url, modernHeader(method, nameOf(members)), modernRequest(id, method, members))
}

// nameOf reads the name that the Mcp-Name header must repeat.
func nameOf(members string) string {
	var params struct{ Name string }
	_ = json.Unmarshal([]byte("{"+members+"}"), &params)
	return params.Name
}

type legacyClient struct{ url, session, revision string }

func legacyHeader(revision, session string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if revision != "" {
		h.Set("MCP-Protocol-Version", revision)
	}
	if session != "" {
		h.Set("Mcp-Session-Id", session)
	}
	return h
}

func legacyRequest(id, method, members string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, members)
}

// handshake opens a session at that revision.
func handshake(t *testing.T, url, revision string) legacyClient {
	t.Helper()
	r := post(t, url, legacyHeader("", ""), legacyRequest(`0`, "initialize",
		`"protocolVersion":"`+revision+`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}`))
	var result struct{ ProtocolVersion string }
	if err := json.Unmarshal(r.result, &result); err != nil || result.ProtocolVersion != revision {
		t.Fatalf("initialize with %s: %v", revision, r)
	}
	c := legacyClient{url, r.header.Get("Mcp-Session-Id"), revision}
	accepted := post(t, url, legacyHeader(revision, c.session), []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if accepted.status != http.StatusAccepted || len(accepted.body) > 0 {
		t.Fatalf("notifications/initialized: %v", accepted)
	}
	return c
}

func (c legacyClient) ask(t *testing.T, id, method, members string) reply {
	t.Helper()
	return post(t, c.url, legacyHeader(c.revision, c.session), legacyRequest(id, method, members))
}

// listed gives the definitions of all pages, as written, by name.
func listed(t *testing.T, c rawClient) (names []string, definitions map[string]json.RawMessage) {
	t.Helper()
	definitions = map[string]json.RawMessage{}
	members := ""
	for range 100 {
		r := c.ask(t, `"list"`, "tools/list", members)
		var page struct {
			Tools      []json.RawMessage
			NextCursor *string
		}
		if err := json.Unmarshal(r.result, &page); err != nil {
			t.Fatalf("tools/list: %v: %v", err, r)
		}
		for _, definition := range page.Tools {
			var tool struct{ Name string }
			if err := json.Unmarshal(definition, &tool); err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
			definitions[tool.Name] = definition
		}
		if page.NextCursor == nil {
			return names, definitions
		}
		cursor, _ := json.Marshal(*page.NextCursor)
		members = `"cursor":` + string(cursor)
	}
	t.Fatal("tools/list never ends")
	return nil, nil
}
