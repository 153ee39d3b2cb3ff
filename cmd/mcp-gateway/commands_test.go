package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcp-gateway/gateway"
)

func TestCheck(t *testing.T) {
	good, bad := configured(t), written(t, "pathh: /mcp\nupstreams: {a: {command: x}}\n")
	if got := command(t, "check", "-c", good); got != (ended{0, good + ": ok, 1 upstream; whether they can be reached is asked with --dial\n", ""}) {
		t.Errorf("%+v", got)
	}
	want := ended{1, "", bad + ":1:1: pathh: is not a known member, did you mean path?\n"}
	if diff := cmp.Diff(want, command(t, "check", "-c", bad, "--dial"), cmp.AllowUnexported(ended{})); diff != "" {
		t.Error(diff)
	}
	got := command(t, "check", "-c", bad, "-o", "json")
	var checked gateway.Checked
	if err := json.Unmarshal([]byte(got.out), &checked); err != nil || got.code != 1 || got.err != "" || checked.OK || checked.Problems[0].Path != "pathh" {
		t.Errorf("%+v (%v)", got, err)
	}
}

func TestCheckDials(t *testing.T) {
	good := configured(t)
	got := command(t, "check", "-c", good, "--dial")
	if got.code != 0 || got.err != "" || strings.Count(got.out, "  ok      ") != 4 || !strings.HasSuffix(got.out, good+": ok, 1 upstream reached\n") {
		t.Errorf("%+v", got)
	}
	some := configured(t, "  dead: {url: 'http://127.0.0.1:9/mcp'}")
	got = command(t, "check", "-c", some, "--dial")
	if got.code != 2 || !strings.Contains(got.out, "  FAILED  connect") || !strings.Contains(got.out, "→ nothing listens there") ||
		!strings.HasSuffix(got.out, some+": 1 of 2 upstreams cannot be used\n") {
		t.Errorf("%+v", got)
	}
	got = command(t, "check", "-c", some, "--dial", "-o", "json")
	var checked gateway.Checked
	if err := json.Unmarshal([]byte(got.out), &checked); err != nil || got.code != 2 || checked.OK || !checked.Upstreams[0].OK || checked.Upstreams[1].Failed().Name != "connect" {
		t.Errorf("%+v (%v)", got, err)
	}
}

func TestToolsAndCalls(t *testing.T) {
	file := configured(t, "  dead: {url: 'http://127.0.0.1:9/mcp'}")
	got := command(t, "tools", "-c", file)
	if got.code != 2 || !strings.HasPrefix(got.out, "TOOL ") || strings.Count(got.out, "\nexample__") != 4 || !strings.Contains(got.err, "dead  modern over Streamable HTTP") {
		t.Errorf("%+v", got)
	}
	got = command(t, "tools", "-c", configured(t), "-o", "json")
	var list gateway.Listing
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || got.code != 0 || got.err != "" || len(list.Tools) != 4 || list.Tools[0].Upstream != "example" {
		t.Errorf("%+v (%v)", got, err)
	}
	for _, c := range []struct {
		args     []string
		code     int
		out, err string
	}{
		{[]string{"example__echo", "--args", `{"message":"hello"}`}, 0, "hello\n", ""},
		{[]string{"example__echo", "--args", "-"}, 0, "from stdin\n", ""},
		{[]string{"example__echo", "-o", "json", "--args", `{"message":"hello"}`}, 0, `"text":"hello"`, ""},
		{[]string{"example__current_time", "--args", `{"timezone":"No/Where"}`}, 3, "No/Where", ""},
		{[]string{"example__ecko"}, 2, "", "did you mean example__echo?"},
		{[]string{"example__ecko", "-o", "json"}, 2, `{"error":{"code":-32602`, "did you mean example__echo?"},
		{[]string{"echo"}, 2, "", "begins with none of the prefixes: example__…, dead__…"},
		{[]string{"dead__x"}, 2, "", "mcp-gateway: the call was not sent, so nothing took effect"},
		{[]string{"dead__x", "-o", "json"}, 2, `"outcome":"not-sent"`, "nothing listens there"},
	} {
		got := command(t, append([]string{"call", "-c", file}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.out, c.out) || c.out == "" && got.out != "" || !strings.Contains(got.err, c.err) || c.err == "" && got.err != "" {
			t.Errorf("%q: %+v, want %d, %q, %q", c.args, got, c.code, c.out, c.err)
		}
	}
	if got := command(t, "call", "a", "-c", written(t, "x: 1\n")); got.code != 1 || !strings.Contains(got.err, "x: is not a known member") {
		t.Errorf("%+v", got)
	}
}

// What a gateway says of a call that it could not complete is no result of the tool.
func TestCallThroughARunningGateway(t *testing.T) {
	t.Setenv("TEST_KEY", "mcpgw_1c4qR0UlJhI2i-mPyViyhE2TlQ5R5ATQtyXomapnNjA")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &m) != nil || r.Header.Get("Authorization") != "Bearer "+os.Getenv("TEST_KEY") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		result := map[string]string{
			"server/discover": `"supportedVersions":["2026-07-28"],"capabilities":{}`,
			"tools/list":      `"tools":[{"name":"a__b","inputSchema":{}}],"_meta":{"mcp-gateway/absent":{"c":"connecting"}}`,
			"tools/call":      `"isError":true,"content":[{"type":"text","text":"not sent"}],"_meta":{"mcp-gateway/outcome":{}}`,
		}[m.Method]
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"resultType":"complete",`+result+`}}`)
	}))
	t.Cleanup(server.Close)
	want := ended{2, "TOOL  DESCRIPTION\na__b\n", "c lists no tools: connecting\n"}
	if got := command(t, "tools", "--url", server.URL, "--key-env", "TEST_KEY"); got != want {
		t.Errorf("%+v", got)
	}
	if got := command(t, "call", "a__b", "--url", server.URL, "--key-env", "TEST_KEY"); got != (ended{2, "", "not sent\n"}) {
		t.Errorf("%+v", got)
	}
	got := command(t, "call", "a__b", "--url", server.URL)
	if got.code != 2 || got.out != "" || !strings.Contains(got.err, "the gateway cannot be reached: credential") || !strings.Contains(got.err, "\n  → it wants an API key") {
		t.Errorf("%+v", got)
	}
	if got := command(t, "call", "a__b", "--url", server.URL, "--key-env", "NO_SUCH"); got.code != 1 || !strings.Contains(got.err, "--key-env: ") {
		t.Errorf("%+v", got)
	}
}

func TestInspect(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(selfEnv, "1")
	got := command(t, "inspect", "--env", selfEnv, "--", self, "example")
	if got.code != 0 || got.err != "" || !strings.HasPrefix(got.out, "legacy over stdio  yes  2025-11-25\n") || !strings.Contains(got.out, "\nThis configuration fits:\n\nupstreams:\n") {
		t.Errorf("%+v", got)
	}
	got = command(t, "inspect", "http://127.0.0.1:9", "-o", "json")
	var found gateway.Inspection
	if err := json.Unmarshal([]byte(got.out), &found); err != nil || got.code != 2 || found.Tries[0].OK || found.Fix == "" {
		t.Errorf("%+v (%v)", got, err)
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	device, err := os.Open(os.DevNull) // a character device as well
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if !styleOf(device).Color || styleOf(io.Discard).Color {
		t.Error("colours depend on something else than the terminal")
	}
	t.Setenv("TERM", "dumb")
	if styleOf(device).Color {
		t.Error("a dumb terminal gets colours")
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	if styleOf(device).Color {
		t.Error("NO_COLOR gets colours")
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if terminal(file) || newProgress(file) != nil {
		t.Error("a file passes for a terminal")
	}
}

func TestProgressIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := begin(&out)
		<-time.After(1500 * time.Millisecond)
		p.waiting([]string{"a", "b"})
		<-time.After(time.Second)
		p.say(strings.Repeat("x", 70))
		<-time.After(time.Second)
		p.waiting(nil)
		<-time.After(time.Second)
		p.end()
		p.end()
		const wipe = "\r\x1b[2K"
		if want := wipe + "waiting for a, b (2 s)" + wipe + strings.Repeat("x", 59) + "… (3 s)" + wipe; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
		var fast strings.Builder
		p = begin(&fast)
		p.waiting([]string{"a"})
		p.end()
		if fast.Len() > 0 {
			t.Errorf("%q", fast.String())
		}
	})
	var none *progress
	none.waiting([]string{"a"})
	none.end()
}
