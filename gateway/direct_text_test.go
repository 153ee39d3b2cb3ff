package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// answering is a client whose every request is answered so.
func answering(t *testing.T, results ...string) *Client {
	t.Helper()
	return &Client{
		upstreamOf: func(string) string { return "" },
		ask: func(_ context.Context, req *upstream.Request) (wire.Object, error) {
			if req.Notify != nil {
				for _, text := range []string{`{"progress":1,"total":3,"message":"first\u001b[31m"}`, `{"progress":2}`} {
					req.Notify(upstream.Notification{Method: "notifications/progress", Params: params(t, text)})
				}
				req.Notify(upstream.Notification{Method: "notifications/message", Params: params(t, `{"data":"x"}`)})
			}
			result := results[0]
			if len(results) > 1 {
				results = results[1:]
			}
			return params(t, result), nil
		},
	}
}

func TestAnswersAreForPeople(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ result, want, onTerminal string }{
		{`{"content":[{"type":"text","text":"one\ttwo\nthree"},{"type":"text","text":"four\n"}]}`, "one\ttwo\nthree\nfour\n", ""},
		{`{"content":[{"type":"text","text":"a\u001b[31mb\u202ec\r\nd"}]}`, "a\x1b[31mb\u202ec\r\nd\n", "a␛[31mb\uFFFDc\nd\n"},
		{`{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}`, "[image image/png, 3 bytes]\n", ""},
		{`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"inside"}},{"type":"resource","resource":{"uri":"file:///b","blob":"AAA="}},{"type":"resource_link","uri":"file:///c"}]}`,
			"inside\n[resource file:///b, 2 bytes]\n[resource link file:///c]\n", ""},
		{`{"content":[{"type":"hologram"},{},7]}`, "[hologram ]\n[content of no known type]\n[content of no known type]\n", ""},
		{`{"content":[],"structuredContent":{"n":1.50}}`, "{\n  \"n\": 1.50\n}\n", ""},
		{`{"content":[{"type":"text","text":"t"}],"structuredContent":{"n":1}}`, "t\n", ""},
		{`{}`, "", ""},
	} {
		answer, err := answering(t, c.result).Call(t.Context(), "x", []byte(`{}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.onTerminal == "" {
			c.onTerminal = c.want
		}
		for terminal, want := range map[bool]string{false: c.want, true: c.onTerminal} {
			var out strings.Builder
			if err := answer.WriteText(&out, terminal); err != nil || out.String() != want {
				t.Errorf("%s: got %q, want %q (%v)", c.result, out.String(), want, err)
			}
		}
	}
}

func TestProgressIsTold(t *testing.T) {
	t.Parallel()
	var told []string
	if _, err := answering(t, `{}`).Call(t.Context(), "x", []byte(`{}`), func(line string) { told = append(told, line) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1/3 first␛[31m", "2"}, told); diff != "" {
		t.Error(diff)
	}
}

func TestMoreInputCannotBeGiven(t *testing.T) {
	t.Parallel()
	if _, err := answering(t, `{"resultType":"input_required"}`).Call(t.Context(), "x", []byte(`{}`), nil); err == nil || !strings.Contains(err.Error(), "asks for more input") {
		t.Errorf("%v", err)
	}
}

// What a server says in an error does nothing to a terminal either, and reaches a program as it is.
func TestErrorsAreForPeople(t *testing.T) {
	t.Parallel()
	c := &Client{ask: func(context.Context, *upstream.Request) (wire.Object, error) {
		return wire.Object{}, &wire.Error{Code: -1, Message: "a\x1b[31m", Raw: params(t, `{"code":-1,"message":"a\u001b[31m","more":1}`)}
	}}
	_, called := c.Call(t.Context(), "x", []byte(`{}`), nil)
	_, listed := c.Tools(t.Context())
	for _, err := range []error{called, listed} {
		if err == nil || err.Error() != "JSON-RPC error -1: a␛[31m" || string(ErrorJSON(err)) != `{"error":{"code":-1,"message":"a\u001b[31m","more":1}}` {
			t.Errorf("%v %s", err, ErrorJSON(err))
		}
	}
}

func TestListsAreForPeople(t *testing.T) {
	t.Parallel()
	c := answering(t,
		`{"tools":[{"name":"a__read","title":"Read","description":"  Reads a file.\nSlowly."},{"name":"a__x\u001b","annotations":{"title":"X"}}],"nextCursor":"2"}`,
		`{"tools":[{"name":"bb__`+strings.Repeat("é", 30)+`","description":"`+strings.Repeat("word ", 30)+`"}],"_meta":{"mcp-gateway/absent":{"c":"connecting"}}}`)
	list, err := c.Tools(t.Context())
	if err != nil || list.Absent["c"] != "connecting" {
		t.Fatal(err, list.Absent)
	}
	var out strings.Builder
	if err := list.WriteText(&out, Style{}); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%-36sDESCRIPTION\n%-36sRead: Reads a file.\n%-36sX\n%-36s%s…\n", "TOOL", "a__read", "a__x␛", "bb__"+strings.Repeat("é", 30), strings.Repeat("word ", 16)[:79])
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	list.Tools[0].Upstream, list.Tools = "a", list.Tools[:1]
	out.Reset()
	if err := list.WriteText(&out, Style{}); err != nil || out.String() != "TOOL     UPSTREAM  DESCRIPTION\na__read  a         Read: Reads a file.\n" {
		t.Errorf("%q (%v)", out.String(), err)
	}
}

func TestListsEnd(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{`{"tools":[],"nextCursor":"again"}`: "more than 100 pages", `{"tools":{}}`: "has no tools", `{}`: "has no tools"} {
		if _, err := answering(t, text).Tools(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSimilarNames(t *testing.T) {
	t.Parallel()
	list := &Listing{}
	for _, name := range []string{"files__read_file", "files__write_file", "web__search", "x__a", "y__a", "z__a", "w__a"} {
		list.Tools = append(list.Tools, ListedTool{Name: name})
	}
	for name, want := range map[string]string{
		"files__raed_file": "files__read_file", "read_file": "files__read_file", "Web__Search": "web__search", "file__write_file": "files__write_file",
		"nothing": "", "": "", "a": "x__a y__a z__a",
	} {
		if got := strings.Join(list.Similar(name), " "); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
