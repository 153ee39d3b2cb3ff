package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// everythingCalls are a call of each tool of server-everything that can be called plainly; what get-env gives depends on who
// starts the server and has a test of its own.
var everythingCalls = []toolCall{
	{Name: "echo", Arguments: map[string]any{"message": "hi \U0001F4A5"}},
	{Name: "get-annotated-message", Arguments: map[string]any{"messageType": "error", "includeImage": true}},
	{Name: "get-resource-links", Arguments: map[string]any{"count": 2}},
	{Name: "get-resource-reference", Arguments: map[string]any{"resourceType": "Text", "resourceId": 1}},
	{Name: "get-structured-content", Arguments: map[string]any{"location": "Chicago"}},
	{Name: "get-sum", Arguments: map[string]any{"a": 1, "b": 2.5}},
	{Name: "get-tiny-image", Arguments: map[string]any{}},
	{Name: "gzip-file-as-resource", Arguments: map[string]any{"name": "x.gz", "data": "data:text/plain;base64,aGVsbG8=", "outputType": "resource"}},
	{Name: "toggle-simulated-logging", Arguments: map[string]any{}},
	{Name: "toggle-subscriber-updates", Arguments: map[string]any{}},
	{Name: "trigger-long-running-operation", Arguments: map[string]any{"duration": 0.2, "steps": 2}},
	{Name: "get-sum", Arguments: map[string]any{"a": "no number"}},
}

// modernCalls are a call of each tool of the modern server.
var modernCalls = []toolCall{
	{Name: "echo", Arguments: map[string]any{"message": "hi \U0001F4A5"}},
	{Name: "add", Arguments: map[string]any{"a": 1, "b": 2.5}},
	{Name: "shape", Arguments: map[string]any{"point": map[string]any{"x": 1, "y": 2}}},
	{Name: "region", Arguments: map[string]any{"region": "eu-west \u00e9"}},
	{Name: "steps", Arguments: map[string]any{"steps": 3}},
	{Name: "fail", Arguments: map[string]any{}},
	{Name: "add", Arguments: map[string]any{"a": "no number", "b": 1}},
}

// withPrefix are the same calls under a prefix.
func withPrefix(prefix string, calls []toolCall) []toolCall {
	prefixed := slices.Clone(calls)
	for i := range prefixed {
		prefixed[i].Name = prefix + prefixed[i].Name
	}
	return prefixed
}

// officialPair is a gateway in front of both official servers, and how to reach each without it. The servers keep state, so each
// client gets its own.
func officialPair(t *testing.T) (g *gateway, stdio []string, url string) {
	t.Helper()
	stdio, url = everything(t), modernServer(t)
	args, _ := json.Marshal(stdio[1:])
	g = serve(t, fmt.Sprintf("upstreams:\n  everything:\n    command: %s\n    args: %s\n    env: {V: 3.10, ID: 0123456, %s: %s}\n  modern:\n    url: %s\n",
		stdio[0], args, runEnv, quoted(run.id), url))
	g.allListed(t)
	return g, stdio, url
}

func TestPairings(t *testing.T) {
	for _, c := range []struct {
		client string
		drops  string // a member of a definition that this client does not show, since its revision has none
	}{
		{"client-modern.mjs", "execution"},
		{"client-legacy.mjs", ""},
	} {
		t.Run(c.client, func(t *testing.T) {
			t.Parallel()
			g, stdio, url := officialPair(t)
			got := talk(t, c.client, slices.Concat(withPrefix("everything__", everythingCalls), withPrefix("modern__", modernCalls)), nil, g.URL)

			// Only a legacy client can speak to the legacy server without the gateway.
			legacy := talk(t, "client-legacy.mjs", everythingCalls, map[string]string{runEnv: run.id}, stdio...)
			legacy.leaveOutTasks()
			compareAccounts(t, got.of("everything__"), legacy.without(c.drops))
			modern := talk(t, c.client, modernCalls, nil, url)
			compareAccounts(t, got.of("modern__"), modern)
			if n := len(legacy.Tools) + len(modern.Tools); len(got.Tools) > n {
				t.Errorf("%d tools are listed, the servers have %d", len(got.Tools), n)
			}
		})
	}
}

// of is the part of an account that concerns one prefix, with the prefix taken off.
func (a account) of(prefix string) account {
	var part account
	for _, tool := range a.Tools {
		if name, ok := strings.CutPrefix(tool["name"].(string), prefix); ok {
			tool = maps.Clone(tool)
			tool["name"] = name
			part.Tools = append(part.Tools, tool)
		}
	}
	for _, result := range a.Results {
		var ok bool
		if result.Name, ok = strings.CutPrefix(result.Name, prefix); ok {
			part.Results = append(part.Results, result)
		}
	}
	return part
}

// leaveOutTasks takes off the tools that only run as a task: the gateway, which has no tasks, leaves them out.
func (a *account) leaveOutTasks() {
	a.Tools = slices.DeleteFunc(a.Tools, func(tool map[string]any) bool {
		execution, _ := tool["execution"].(map[string]any)
		return execution["taskSupport"] == "required"
	})
}

// without is the account with one member of each definition left out.
func (a account) without(member string) account {
	tools := slices.Clone(a.Tools)
	for i := range tools {
		tools[i] = maps.Clone(tools[i])
		delete(tools[i], member)
	}
	return account{tools, a.Results}
}

func compareAccounts(t *testing.T, got, want account) {
	t.Helper()
	if len(want.Tools) == 0 {
		t.Fatal("the server without the gateway shows nothing to compare with")
	}
	if len(got.Tools) != len(want.Tools) || len(got.Results) != len(want.Results) {
		t.Fatalf("%d tools and %d results, without the gateway %d and %d", len(got.Tools), len(got.Results), len(want.Tools), len(want.Results))
	}
	for i := range want.Tools {
		compareValues(t, "a definition", got.Tools[i], want.Tools[i])
	}
	for i := range want.Results {
		name := want.Results[i].Name
		compareValues(t, "the result of "+name, common(got.Results[i].Result), common(want.Results[i].Result))
		compareValues(t, "the error of "+name, got.Results[i].Error, want.Results[i].Error)
	}
}

// common takes off what a modern server adds to each of its results and, asked by a legacy client, does not.
func common(result map[string]any) map[string]any {
	meta, _ := result["_meta"].(map[string]any)
	if _, stamped := meta["io.modelcontextprotocol/serverInfo"]; !stamped {
		return result
	}
	result, meta = maps.Clone(result), maps.Clone(meta)
	delete(meta, "io.modelcontextprotocol/serverInfo")
	if result["_meta"] = meta; len(meta) == 0 {
		delete(result, "_meta")
	}
	return result
}

// varying finds what servers answer differently each time: the time of day, and how often they were asked.
var varying = regexp.MustCompile(`\d{1,2}:\d\d:\d\d [AP]M|thoughtHistoryLength\W+\d+`)

func compareValues(t *testing.T, what string, got, want map[string]any) {
	t.Helper()
	text := func(v map[string]any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return varying.ReplaceAllString(string(data), "VARIES")
	}
	if g, w := text(got), text(want); g != w {
		t.Errorf("%s is\n%s\nwithout the gateway it is\n%s", what, g, w)
	}
}

func TestAChildGetsTheEnvironmentAsWritten(t *testing.T) {
	g, _, _ := officialPair(t)
	r := modernClient{g.URL}.ask(t, `1`, "tools/call", `"name":"everything__get-env","arguments":{}`)
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(r.result, &result); err != nil || len(result.Content) != 1 {
		t.Fatalf("get-env: %v", r)
	}
	var env map[string]string
	if err := json.Unmarshal([]byte(result.Content[0].Text), &env); err != nil {
		t.Fatalf("get-env: %v: %v", err, r)
	}
	if env["V"] != "3.10" || env["ID"] != "0123456" || env["PATH"] == "" {
		t.Errorf("V is %q, ID is %q, PATH is %q", env["V"], env["ID"], env["PATH"])
	}
	allowed := []string{"PATH", "HOME", "LANG", "TMPDIR", "TZ", "USER", "V", "ID", runEnv}
	for name := range env {
		if !slices.Contains(allowed, name) {
			t.Errorf("the child got %s, which nobody named", name)
		}
	}
}

// TestOfficialServersByteForByte compares what the gateway passes on with what the servers write.
func TestOfficialServersByteForByte(t *testing.T) {
	g, stdio, url := officialPair(t)
	_, through := listed(t, modernClient{g.URL})

	pipe := openPipe(t, stdio)
	names, definitions := listed(t, pipe)
	for _, name := range names {
		if strings.Contains(string(definitions[name]), `"taskSupport":"required"`) {
			continue
		}
		expect(t, name, replaced(t, through["everything__"+name], "everything__"+name, name), string(definitions[name]))
	}
	for _, call := range everythingCalls {
		args, _ := json.Marshal(call.Arguments)
		want := pipe.ask(t, `1`, "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, call.Name, args))
		got := modernClient{g.URL}.ask(t, `1`, "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, "everything__"+call.Name, args))
		expect(t, call.Name, varying.ReplaceAll(without(t, got.result, "resultType"), []byte("VARIES")),
			varying.ReplaceAllString(string(without(t, want.result)), "VARIES"))
	}

	names, definitions = listed(t, modernClient{url})
	for _, name := range names {
		expect(t, name, replaced(t, through["modern__"+name], "modern__"+name, name), string(definitions[name]))
	}
	for _, call := range modernCalls {
		if call.Name == "region" {
			continue // it needs a header that the raw client does not make
		}
		args, _ := json.Marshal(call.Arguments)
		want := modernClient{url}.ask(t, `1`, "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, call.Name, args))
		got := modernClient{g.URL}.ask(t, `1`, "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, "modern__"+call.Name, args))
		expect(t, call.Name, got.result, string(want.result))
	}
}

// replaced is a definition whose name is written as another.
func replaced(t *testing.T, definition json.RawMessage, from, to string) []byte {
	t.Helper()
	return []byte(strings.Replace(string(definition), `"name":`+quoted(from), `"name":`+quoted(to), 1))
}

// TestParamHeaders has the gateway hold a header against the argument that it mirrors, and make its own for the server.
func TestParamHeaders(t *testing.T) {
	g, _, _ := officialPair(t)
	ask := func(header string) reply {
		h := modernHeader("tools/call", "modern__region")
		if header != "" {
			h.Set("Mcp-Param-Region", header)
		}
		return post(t, g.URL, h, modernRequest(`1`, "tools/call", `"name":"modern__region","arguments":{"region":"eu"}`))
	}
	if r := ask("eu"); r.result == nil || !strings.Contains(string(r.result), "region eu") {
		t.Errorf("with the right header: %v", r)
	}
	for _, header := range []string{"", "us", "EU", "=?base64?ZXU?="} {
		if r := ask(header); r.status != 400 || r.code() != -32020 {
			t.Errorf("with the header %q: %v", header, r)
		}
	}
	legacy := handshake(t, g.URL, "2025-11-25")
	if r := legacy.ask(t, `1`, "tools/call", `"name":"modern__region","arguments":{"region":"eu"}`); !strings.Contains(string(r.result), "region eu") {
		t.Errorf("a legacy client, which sends no such header: %v", r)
	}
}
