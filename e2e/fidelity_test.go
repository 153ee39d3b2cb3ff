package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// revisions are those that a handshake can settle on.
var revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// objectsOnly are the revisions whose clients must reject structured content that is no object. Older clients ignore the
// member and newer ones take any value; what a legacy server sends is what they would see without the gateway.
var objectsOnly = []string{"2025-11-25", "2025-06-18"}

// cannedPair is a gateway in front of one server of each era.
func cannedPair(t *testing.T) (*gateway, *cannedHTTP, cannedStdio) {
	t.Helper()
	web, pipe := newCannedHTTP(t), newCannedStdio(t, "canned")
	return serve(t, "upstreams:\n  web:\n    url: "+web.URL+"\n  pipe:\n"+pipe.command()), web, pipe
}

// clients are raw clients of every revision against one gateway.
func clients(t *testing.T, g *gateway) map[string]rawClient {
	t.Helper()
	all := map[string]rawClient{"2026-07-28": modernClient{g.URL}}
	for _, revision := range revisions {
		all[revision] = handshake(t, g.URL, revision)
	}
	all["no session"] = legacyClient{url: g.URL, revision: "2025-06-18"}
	return all
}

func TestDefinitionsPassUnchanged(t *testing.T) {
	g, _, _ := cannedPair(t)
	var want []string
	for _, prefix := range []string{"web__", "pipe__"} {
		for _, name := range cannedNames() {
			want = append(want, prefix+name)
		}
	}
	for revision, client := range clients(t, g) {
		names, definitions := listed(t, client)
		if !slices.Equal(names, want) {
			t.Errorf("%s: the tools are %q, want %q", revision, names, want)
		}
		for _, tool := range cannedTools {
			for _, prefix := range []string{"web__", "pipe__"} {
				written := []byte(fmt.Sprintf(tool.definition, prefix+tool.name))
				got := definitions[prefix+tool.name]
				// What came over a pipe is a line, and so may be what goes out in an event.
				if !bytes.Equal(compact(t, got), compact(t, written)) {
					t.Errorf("%s: %s%s is\n%s\nwant\n%s", revision, prefix, tool.name, got, written)
				}
			}
		}
	}
}

func TestWhiteSpaceOfADefinitionPasses(t *testing.T) {
	g, _, _ := cannedPair(t)
	r := modernClient{g.URL}.ask(t, `1`, "tools/list", "")
	if r.frame {
		t.Fatalf("a list without a notification came as %s", r.header.Get("Content-Type"))
	}
	_, definitions := listed(t, modernClient{g.URL})
	want := fmt.Sprintf(cannedTools[1].definition, "web__spaced")
	if got := string(definitions["web__spaced"]); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestResultsPassUnchanged(t *testing.T) {
	g, _, _ := cannedPair(t)
	for revision, client := range clients(t, g) {
		for _, tool := range cannedTools {
			if tool.name == "slow" {
				continue
			}
			for _, prefix := range []string{"web__", "pipe__"} {
				t.Run(revision+"/"+prefix+tool.name, func(t *testing.T) {
					r := client.ask(t, `1`, "tools/call", fmt.Sprintf(`"name":%q,"arguments":{}`, prefix+tool.name))
					if r.status != http.StatusOK {
						t.Fatalf("the status is %v", r)
					}
					if tool.failure != "" {
						if string(r.failure) != tool.failure {
							t.Errorf("the error is\n%s\nwant\n%s", r.failure, tool.failure)
						}
						return
					}
					checkResult(t, r, tool, client, prefix == "web__")
				})
			}
		}
	}
}

// checkResult holds a result against what the server wrote: equal but for what only the other era has.
func checkResult(t *testing.T, r reply, tool cannedTool, client rawClient, modernServer bool) {
	t.Helper()
	legacy, isLegacy := client.(legacyClient)
	switch {
	case !isLegacy && modernServer && !r.frame:
		if want := fmt.Sprintf(tool.result, cannedModern); string(r.result) != want {
			t.Errorf("the result is\n%s\nwant\n%s", r.result, want)
		}
		return
	case !isLegacy:
		if n := count(t, r.result, "resultType"); n != 1 || string(member(t, r.result, "resultType")) != `"complete"` {
			t.Errorf("resultType stands %d times in %s", n, r.result)
		}
	default:
		if n := count(t, r.result, "resultType"); n != 0 {
			t.Errorf("a legacy client got a resultType: %s", r.result)
		}
	}
	want := []byte(fmt.Sprintf(tool.result, ""))
	if modernServer && isLegacy && tool.name == "null" && slices.Contains(objectsOnly, legacy.revision) {
		want = without(t, want, "structuredContent")
	}
	if got := without(t, r.result, "resultType"); !bytes.Equal(got, without(t, want)) {
		t.Errorf("the result is\n%s\nwant\n%s", got, without(t, want))
	}
}

func TestIDsComeBackAsWritten(t *testing.T) {
	g, _, _ := cannedPair(t)
	for revision, client := range clients(t, g) {
		for _, id := range []string{
			`1`, `"1"`, `0`, `-7`, `9007199254740993`, `12345678901234567890`, `""`, `"\u0031"`, `"é \ud83d \/"`, `"12345678901234567890"`,
		} {
			for _, name := range []string{"web__last.of-them", "pipe__last.of-them", "pipe__error", "nobody__here"} {
				r := client.ask(t, id, "tools/call", fmt.Sprintf(`"name":%q`, name))
				if string(r.id) != id {
					t.Errorf("%s: %s: the id is %s, want %s: %v", revision, name, r.id, id, r)
				}
			}
			if r := client.ask(t, id, "tools/list", ""); string(r.id) != id {
				t.Errorf("%s: tools/list: the id is %s, want %s", revision, r.id, id)
			}
		}
	}
}

func TestArgumentsArriveAsWritten(t *testing.T) {
	const (
		arguments = `{"n":12345678901234567890,"f":1.0,"s":"cut \ud83d","u":"\u0031 é <&> \u2028","z":null,` +
			`"o":{"b":1,"a":[ 1 , 2.50 ]},"":-0.0,"NAME":"kept","id":9007199254740993}`
		foreign = `{"n":1.0,"s":"\/"}`
	)
	g, web, pipe := cannedPair(t)
	for revision, client := range clients(t, g) {
		for _, name := range []string{"web__odd", "pipe__odd"} {
			members := `"arguments":` + arguments + `,"example.com/unknown":` + foreign + fmt.Sprintf(`,"name":%q`, name)
			if _, legacy := client.(legacyClient); legacy {
				members += `,"_meta":{"example.com/foreign":` + foreign + `}`
			}
			if r := client.ask(t, `1`, "tools/call", members); r.result == nil {
				t.Fatalf("%s: %s: %v", revision, name, r)
			}
		}
		calls, lines := web.calls(), pipe.calls(t)
		arrived, line := calls[len(calls)-1], lines[len(lines)-1]

		params := member(t, arrived.body, "params")
		expect(t, revision+": arguments over HTTP", member(t, params, "arguments"), arguments)
		expect(t, revision+": an unknown member over HTTP", member(t, params, "example.com/unknown"), foreign)
		expect(t, revision+": name over HTTP", member(t, params, "name"), `"odd"`)
		expect(t, revision+": Mcp-Name", []byte(arrived.header.Get("Mcp-Name")), "odd")

		params = member(t, line, "params")
		// A message that is a line may have to lose the white space between its tokens.
		expect(t, revision+": arguments over a pipe", compact(t, member(t, params, "arguments")), string(compact(t, []byte(arguments))))
		expect(t, revision+": an unknown member over a pipe", member(t, params, "example.com/unknown"), foreign)
		expect(t, revision+": name over a pipe", member(t, params, "name"), `"odd"`)
		if bytes.Contains(line, []byte("io.modelcontextprotocol/")) {
			t.Errorf("%s: a legacy server got modern metadata: %s", revision, line)
		}
		if _, legacy := client.(legacyClient); legacy {
			expect(t, revision+": _meta over HTTP", member(t, member(t, member(t, arrived.body, "params"), "_meta"), "example.com/foreign"), foreign)
			expect(t, revision+": _meta over a pipe", member(t, member(t, params, "_meta"), "example.com/foreign"), foreign)
		}
	}
}

func expect(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if string(got) != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// compact takes the white space between tokens off and changes nothing else.
func compact(t *testing.T, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Errorf("not JSON: %v: %q", err, raw)
	}
	return b.Bytes()
}

// eachMember calls yield with every member of an object, as written.
func eachMember(t *testing.T, raw []byte, yield func(name string, quoted, value []byte)) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		t.Errorf("not an object: %q", raw)
		return
	}
	for d.More() {
		before := d.InputOffset()
		name, err := d.Token()
		if err != nil {
			t.Errorf("not an object: %v: %q", err, raw)
			return
		}
		quoted := bytes.TrimLeft(raw[before:d.InputOffset()], " \t\r\n,")
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Errorf("not an object: %v: %q", err, raw)
			return
		}
		yield(name.(string), quoted, value)
	}
}

// member is the value of the one member with that name, as written; nil where there is none.
func member(t *testing.T, raw []byte, name string) (value []byte) {
	t.Helper()
	eachMember(t, raw, func(found string, _, v []byte) {
		if found == name {
			value = v
		}
	})
	return value
}

func count(t *testing.T, raw []byte, name string) (n int) {
	t.Helper()
	eachMember(t, raw, func(found string, _, _ []byte) {
		if found == name {
			n++
		}
	})
	return n
}

// without is the object in compact form less the members named, the rest in its order and as written.
func without(t *testing.T, raw []byte, names ...string) []byte {
	t.Helper()
	out := []byte{'{'}
	eachMember(t, raw, func(name string, quoted, value []byte) {
		if slices.Contains(names, name) {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted...), ':'), compact(t, value)...)
	})
	return append(out, '}')
}
