package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcp-gateway/internal/leakcheck"
)

// selfEnv makes the test binary the program.
const selfEnv = "MCP_GATEWAY_TEST_SELF"

func TestMain(m *testing.M) {
	if os.Getenv(selfEnv) != "" {
		main()
	}
	leakcheck.Main(m)
}

// An ended command is what a person has of it.
type ended struct {
	code     int
	out, err string
}

// command runs the program in this process.
func command(t *testing.T, args ...string) ended {
	t.Helper()
	var out, err bytes.Buffer
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&err)
	root.SetIn(strings.NewReader(`{"message": "from stdin"}`))
	return ended{run(root), out.String(), err.String()}
}

// written is the path of a file with that text.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// configured is a configuration with the example server, and whatever else is given, a line each.
func configured(t *testing.T, more ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return written(t, fmt.Sprintf("state_dir: %s\nupstreams:\n  example: {command: %q, args: [example], env: {%s: '1'}}\n%s\n",
		t.TempDir(), self, selfEnv, strings.Join(more, "\n")))
}

func TestTyposAreAnswered(t *testing.T) {
	for _, c := range []struct {
		args string
		says []string
	}{
		{"chekc", []string{`unknown command "chekc"`, "Did you mean this?", "check"}},
		{"check --confg x", []string{"unknown flag: --confg; did you mean --config?"}},
		{"tools --zzzzzz", []string{"unknown flag: --zzzzzz; see mcp-gateway tools --help"}},
		{"check --dial=perhaps -c x", []string{"invalid argument", "see mcp-gateway check --help"}},
		{"check -o xml -c x", []string{`--output: "xml" is no format`}},
		{"tools", []string{"-c FILE", "--url URL"}},
		{"tools -c x --url y", []string{"take one of them out"}},
		{"tools -c x --key-env Y", []string{"--key-env is for --url"}},
		{"call -c x", []string{"the name of one tool", "--args"}},
		{"call a -c x --args [1]", []string{"--args is no JSON object"}},
		{"call a --url", []string{"flag needs an argument: --url"}},
		{"inspect", []string{"one url, or two dashes and a command"}},
		{"inspect a b", []string{`"a" is no url`, "mcp-gateway inspect -- a b"}},
		{"inspect http://a http://b", []string{"takes one url"}},
		{"inspect --", []string{"takes one url"}},
		{"inspect http://127.0.0.1:9 --env X", []string{"--env: has no effect on a url"}},
		{"inspect --key-env X -- cat", []string{"--key-env: has no effect on a command"}},
		{"inspect --timeout -1s -- cat", []string{"--timeout"}},
	} {
		got := command(t, strings.Fields(c.args)...)
		if got.code != 1 || got.out != "" || strings.Count(got.err, "mcp-gateway: ") != 1 {
			t.Errorf("%s: %+v", c.args, got)
		}
		for _, says := range c.says {
			if !strings.Contains(got.err, says) {
				t.Errorf("%s says %q, not %q", c.args, got.err, says)
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	if got := command(t, "completion", "bash"); got.code != 0 || !strings.Contains(got.out, "__start_mcp-gateway") {
		t.Errorf("%d %.100s %s", got.code, got.out, got.err)
	}
	got := command(t, "__complete", "check", "-o", "")
	if !strings.Contains(got.out, "json\n") || !strings.Contains(got.out, "text\n") {
		t.Errorf("%+v", got)
	}
}

func TestVersionAndKey(t *testing.T) {
	if got := command(t, "version"); got.code != 0 || !strings.HasPrefix(got.out, "mcp-gateway ") {
		t.Errorf("%+v", got)
	}
	if got := command(t, "key", "a b"); got.code != 1 || !strings.HasPrefix(got.err, "mcp-gateway: making a key") {
		t.Errorf("%+v", got)
	}
}
