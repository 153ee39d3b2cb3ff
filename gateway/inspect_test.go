package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"mcp-gateway/gateway/config"
	"mcp-gateway/upstream"
)

// found are the ways that work, with what is spoken there.
func found(s *Inspection) string {
	var list []string
	for _, t := range s.Tries {
		if t.OK {
			list = append(list, t.Engine+": "+strings.Join(t.Revisions, " "))
		}
	}
	return strings.Join(list, "; ")
}

const fourRevisions = "2025-11-25 2025-06-18 2025-03-26 2024-11-05"

func TestInspectURL(t *testing.T) {
	t.Setenv("TEST_TOKEN", "0123456789abcdef")
	sse := legacySSE(t)
	atSSE := http.NewServeMux()
	atSSE.Handle("/sse", http.RedirectHandler(sse, http.StatusTemporaryRedirect))
	atMCP := http.NewServeMux()
	atMCP.Handle("/mcp", modernHandler())
	for name, c := range map[string]struct {
		url, keyEnv, found string
		entry              []string
	}{
		"modern":          {modernHTTP(t), "", "modern over Streamable HTTP: 2026-07-28", nil},
		"with a token":    {modernHTTP(t, wants("0123456789abcdef")), "TEST_TOKEN", "modern over Streamable HTTP: 2026-07-28", []string{"credential:", "  bearer: ${env:TEST_TOKEN}"}},
		"legacy":          {legacyHTTP(t), "", "legacy over Streamable HTTP: " + fourRevisions, []string{"protocol: legacy"}},
		"sse":             {sse, "", "legacy over HTTP+SSE: " + fourRevisions, []string{"protocol: legacy", "transport: sse"}},
		"socket":          {legacySocket(t), "", "legacy over WebSocket: " + fourRevisions, nil},
		"another path":    {serveTest(t, atMCP), "", "modern over Streamable HTTP: 2026-07-28", nil},
		"the usual paths": {serveTest(t, http.NotFoundHandler()), "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := InspectURL(t.Context(), c.url, InspectOptions{Timeout: time.Minute, KeyEnv: c.keyEnv})
			if err != nil {
				t.Fatal(err)
			}
			if found(got) != c.found {
				t.Fatalf("found %q, want %q: %+v", found(got), c.found, got.Tries)
			}
			text, _ := json.Marshal(got)
			if strings.Contains(string(text), "0123456789abcdef") {
				t.Errorf("%s", text)
			}
			if c.found == "" {
				if got.Entry != "" || !strings.Contains(got.Fix, "check the path") || len(got.Tries) != 12 {
					t.Errorf("%s", text)
				}
				return
			}
			url := c.url
			if name == "another path" {
				url += "/mcp"
			}
			want := strings.Join(append([]string{"upstreams:", "  server:", "    url: " + url}, indented(c.entry)...), "\n") + "\n"
			if got.Entry != want {
				t.Errorf("got\n%swant\n%s", got.Entry, want)
			}
			if _, _, err := config.Parse("test", []byte(got.Entry)); err != nil {
				t.Error(err)
			}
		})
	}
}

func indented(lines []string) []string {
	out := slices.Clone(lines)
	for i := range out {
		out[i] = "    " + out[i]
	}
	return out
}

// Where the server cannot be asked at all, that is what is told.
func TestInspectURLIsBlocked(t *testing.T) {
	t.Setenv("TEST_TOKEN", "0123456789abcdef")
	for _, c := range []struct{ url, keyEnv, way, fix string }{
		{"http://127.0.0.1:9", "", "connect", "nothing listens there"},
		{modernHTTP(t, wants("x")), "", "credential", "--key-env NAME"},
		{modernHTTP(t, wants("x")), "TEST_TOKEN", "credential", "does not take the token in TEST_TOKEN"},
	} {
		got, err := InspectURL(t.Context(), c.url, InspectOptions{Timeout: time.Minute, KeyEnv: c.keyEnv})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := got.WriteText(&out, Style{}); err != nil {
			t.Fatal(err)
		}
		if len(got.Tries) != 4 || got.Entry != "" || !strings.HasPrefix(out.String(), "FAILED  "+c.way+"  ") || !strings.Contains(out.String(), "\n\n→ ") || !strings.Contains(got.Fix, c.fix) {
			t.Errorf("%+v\n%s", got, out.String())
		}
	}
	for _, c := range []struct{ url, keyEnv, says string }{
		{"mcp.example.com", "", "that is no url"},
		{"ftp://mcp.example.com", "", "the url: must begin with"},
		{"https://me:secret@mcp.example.com", "", "the url: has a user or password in it"},
		{"https://mcp.example.com", "NO_SUCH_VARIABLE", "--key-env: environment variable NO_SUCH_VARIABLE is not set"},
	} {
		if _, err := InspectURL(t.Context(), c.url, InspectOptions{Timeout: time.Minute, KeyEnv: c.keyEnv}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}

func TestInspectCommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_PASSWORD", "hunter2hunter2")
	for kind, c := range map[string]struct{ found, fix string }{
		"old":    {"legacy over stdio: 2024-11-05", ""},
		"legacy": {"legacy over stdio: 2025-11-25; modern over stdio: 2026-07-28", ""}, // the SDK's servers know both
		"modern": {"modern over stdio: 2026-07-28", ""},
		"broken": {"", "--env NAME passes on"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Setenv(childEnv, kind)
			got, err := InspectCommand(t.Context(), []string{self, "--token", "hunter2hunter2", "${x}"}, InspectOptions{Timeout: time.Minute, Env: []string{childEnv, "TEST_PASSWORD"}})
			if err != nil {
				t.Fatal(err)
			}
			text, _ := json.Marshal(got)
			if found(got) != c.found || len(got.Tries) != 2 || !strings.Contains(got.Fix, c.fix) || strings.Contains(string(text), "hunter2") {
				t.Errorf("%s", text)
			}
			if c.found == "" {
				return
			}
			if !strings.Contains(got.Entry, `args: [--token, "[redacted]", "$${x}"]`) || !strings.Contains(got.Note, "[redacted] stands for a secret") ||
				!strings.Contains(got.Entry, "      TEST_PASSWORD: ${env:TEST_PASSWORD}\n") || strings.Contains(got.Entry, "protocol: modern") != (kind != "old") {
				t.Errorf("%s%s", got.Entry, got.Note)
			}
			if _, _, err := config.Parse("test", []byte(got.Entry)); err != nil {
				t.Error(err)
			}
		})
	}
	got, err := InspectCommand(t.Context(), []string{"no-such-program-at-all"}, InspectOptions{Timeout: time.Minute})
	if err != nil || len(got.Tries) != 1 || got.Tries[0].Phase != phaseFind || got.Fix != "" {
		t.Errorf("%+v (%v)", got, err)
	}
	if _, err := InspectCommand(t.Context(), []string{self}, InspectOptions{Timeout: time.Minute, Env: []string{"NO_SUCH_VARIABLE"}}); err == nil || !strings.Contains(err.Error(), "--env: environment variable NO_SUCH_VARIABLE") {
		t.Errorf("%v", err)
	}
}

func TestInspectCommandOfTheSilent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(childEnv, "silent")
	got, err := InspectCommand(t.Context(), []string{self}, InspectOptions{Timeout: 200 * time.Millisecond, Env: []string{childEnv}})
	if err != nil || found(got) != "" || got.Entry != "" {
		t.Errorf("%+v (%v)", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got, err = InspectCommand(ctx, []string{self}, InspectOptions{Timeout: time.Minute, Env: []string{childEnv}, Waiting: func([]string) { cancel() }})
	if err != nil || len(got.Tries) != 1 || !strings.Contains(got.Fix, "interrupted") {
		t.Errorf("%+v (%v)", got, err)
	}
}

func TestInspectionIsForPeople(t *testing.T) {
	t.Parallel()
	s := &Inspection{
		Tries: []Try{
			{Engine: "modern over Streamable HTTP", Address: "https://x.example", Phase: "handshake", Error: "it answers with HTTP 404"},
			{Engine: "legacy over HTTP+SSE", Address: "https://x.example/sse", OK: true, Revisions: []string{"2025-03-26", "2024-11-05"}},
		},
		Entry: "upstreams:\n", Note: "put it back",
	}
	want := `modern over Streamable HTTP  https://x.example      no   it answers with HTTP 404
legacy over HTTP+SSE         https://x.example/sse  yes  2025-03-26, 2024-11-05

This configuration fits:

upstreams:

→ put it back
`
	var out strings.Builder
	if err := s.WriteText(&out, Style{}); err != nil || out.String() != want {
		t.Errorf("got\n%s(%v) want\n%s", out.String(), err, want)
	}
	out.Reset()
	s.Tries, s.Entry, s.Note = s.Tries[:1], "", ""
	if err := s.WriteText(&out, Style{}); err != nil || out.String() != "modern over Streamable HTTP  no   it answers with HTTP 404\n\nNone of these fits.\n" {
		t.Errorf("%q (%v)", out.String(), err)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"https://mcp.search.example.com/mcp": "search", "https://127.0.0.1:8080/": "server", "http://localhost": "server", "https://API.Example.com": "example",
		"https://xn--" + strings.Repeat("a", 50) + ".com": "xn--" + strings.Repeat("a", 27),
	} {
		if got := idOfURL(target); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	for command, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-filesystem@1.2 /data": "filesystem", "uvx mcp-server-git": "git", "/opt/Acme_Server": "acme",
		"docker run -i --rm ghcr.io/github/github-mcp-server:v1": "github", "node /srv/everything/dist/index.js": "everything", "node index.js": "index",
		`C:\tools\weather.exe`: "weather", "python3 -m 42": "server", "npx -y": "npx",
	} {
		if got := idOfCommand(strings.Fields(command)); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
}

// What is written into the entry is read back as the same text, and never as anything but text.
func FuzzScalar(f *testing.F) {
	for _, text := range []string{"", "npx", "-y", "--", "8080", "1e3", "0x1F", "true", "~", "@scope/x", "a: b", "a #b", "https://x.example/mcp?a=b&c", "${env:X}", ".5", "-.inf", "é\n\"'", "[a]", "null", "=", "<<", "2024-01-01", "*x", "-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		for _, document := range []string{"a: " + scalar(text) + "\n", "a: [" + scalar(text) + ", x]\n"} {
			var root yaml.Node
			if err := yaml.Unmarshal([]byte(document), &root); err != nil {
				t.Fatalf("%q: %v", document, err)
			}
			value := root.Content[0].Content[1]
			if value.Kind == yaml.SequenceNode {
				value = value.Content[0]
			}
			if value.Kind != yaml.ScalarNode || value.Tag != "!!str" || value.Value != text {
				t.Errorf("%q became %q, %s %q", text, document, value.Tag, value.Value)
			}
		}
	})
}

// What a server wrote before it ended is said however its end was met.
func TestAServerThatEndedIsQuoted(t *testing.T) {
	for _, cause := range []upstream.Cause{upstream.WriteFailed, upstream.StdinFailed} {
		err := fmt.Errorf("initialize: %w; its stderr ends with: no database", &upstream.Error{Outcome: upstream.NotSent, Cause: cause, Err: io.ErrClosedPipe})
		if got := plainly(err); !strings.HasPrefix(got, "the server ended") || !strings.HasSuffix(got, "no database") {
			t.Errorf("%s: %s", cause, got)
		}
	}
}
