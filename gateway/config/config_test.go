package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcp-gateway/gateway/config"
	"mcp-gateway/redact"
)

// environment sets what the files of testdata refer to.
func environment(t *testing.T) {
	t.Helper()
	t.Setenv("CONFIG_TEST_PROGRAM", "/bin/program")
	t.Setenv("CONFIG_TEST_BEARER", "planted-env-1")
	t.Setenv("CONFIG_TEST_SEAL", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	t.Setenv("CONFIG_TEST_HELPER", "token helper")
	t.Setenv("CONFIG_TEST_USER_URL", "wss://user:planted-user-1@h.example/")
	t.Setenv("STATE_DIRECTORY", "")
	t.Setenv("XDG_STATE_HOME", "/state")
}

func load(t *testing.T, name string) *config.Config {
	t.Helper()
	environment(t)
	c, _, err := config.Load(filepath.Join("testdata", name))
	if err != nil {
		t.Fatalf("%s:\n%v", name, err)
	}
	return c
}

func TestRefusals(t *testing.T) {
	environment(t)
	eachFile(t, "*.bad.yaml", refusals, func(t *testing.T, path string) []config.Problem {
		c, _, err := config.Load(path)
		var problems config.Problems
		if !errors.As(err, &problems) {
			t.Fatalf("Load(%s) = %v, %v, want Problems", path, c, err)
		}
		if c != nil {
			t.Error("a Config came beside an error")
		}
		return problems
	})
}

func TestWarnings(t *testing.T) {
	environment(t)
	eachFile(t, "*.good.yaml", warnings, func(t *testing.T, path string) []config.Problem {
		_, said, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return said
	})
}

func eachFile(t *testing.T, pattern string, table []expected, load func(*testing.T, string) []config.Problem) {
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(table) {
		t.Errorf("%d files and %d rows, want a row for each file", len(files), len(table))
	}
	for _, row := range table {
		t.Run(row.file, func(t *testing.T) {
			path := filepath.Join("testdata", row.file)
			var got []string
			for _, p := range load(t, path) {
				rest, ok := strings.CutPrefix(p.String(), path+":")
				if !ok {
					t.Errorf("%q does not begin with the file's name", p)
				}
				got = append(got, strings.TrimPrefix(rest, " "))
				if strings.Contains(rest, "planted") || strings.Contains(rest, "hunter") {
					t.Errorf("a secret is in %q", rest)
				}
			}
			if diff := cmp.Diff(row.said, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestScalarsArriveAsWritten(t *testing.T) {
	c := load(t, "written.good.yaml")
	if len(c.Upstreams) != 2 || c.Upstreams[0].ID != "zeta" || c.Upstreams[1].ID != "alpha" {
		t.Fatalf("upstreams are not in file order: %v", c.Upstreams)
	}
	u := c.Upstreams[0]
	var env []string
	for _, v := range u.Env {
		env = append(env, v.Name+"="+v.Value.Reveal())
	}
	want := []string{"V=3.10", "ID=0123456", "HEX=0x1F", "DAY=2025-11-25", "YES=yes", "TRUE=true", "LITERAL=${env:V}", "EMPTY="}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1.0", "two lines\nof text!", "1e3"}, reveal(u.Args)); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	got := []any{
		u.Command.Reveal(), u.Cwd, u.Timeout, u.StartTimeout, u.Reconnect, u.Revision, u.Tools.Allow, u.Tools.Deny, u.Prefix, u.Engine,
	}
	wanted := []any{
		"/bin/program", filepath.Join("testdata", "sub"), 90 * time.Second, 90 * time.Second,
		config.Reconnect{Min: time.Second, Max: 2 * time.Second}, "2025-06-18", []string{"read_*"}, []string{"read_secret?"},
		"zeta__", config.LegacyStdio,
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("zeta (-want +got):\n%s", diff)
	}
	u = c.Upstreams[1]
	if u.URL.Reveal() != "https://mcp.example.com/mcp" || u.Credential.Bearer.Reveal() != "planted-env-1" ||
		len(u.Headers) != 1 || u.Headers[0].Name != "X-Team" || u.Headers[0].Value.Reveal() != "blue" {
		t.Errorf("alpha arrived otherwise")
	}
}

func reveal(secrets []redact.Secret) []string {
	var texts []string
	for _, s := range secrets {
		texts = append(texts, s.Reveal())
	}
	return texts
}

func TestDefaults(t *testing.T) {
	c := load(t, "minimal.good.yaml")
	u := c.Upstreams[0]
	got := []any{
		c.Listen, c.Path, c.Hosts, c.Origins, c.Insecure, c.Callers.None(), c.StartGrace, c.ShutdownDelay, c.ShutdownTimeout,
		c.Keepalive, len(c.SealKeys), c.StateDir, u.Prefix, u.Engine, u.InheritEnv, u.Cwd, u.Timeout, u.StartTimeout,
		u.Reconnect, u.Tools.Allow == nil, u.Credential == nil, u.Revision,
	}
	want := []any{
		"127.0.0.1:8080", "/mcp", []string(nil), []string(nil), false, true, 3 * time.Second, time.Duration(0), 15 * time.Second,
		15 * time.Second, 0, filepath.FromSlash("/state/mcp-gateway"), "files__", config.LegacyStdio, false, "", 5 * time.Minute,
		2 * time.Minute, config.Reconnect{Min: 500 * time.Millisecond, Max: 30 * time.Second}, true, true, "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	t.Setenv("STATE_DIRECTORY", "/var/lib/one:/var/lib/two")
	if c, _, _ := config.Parse("x", []byte("upstreams: {a: {command: a}}")); c.StateDir != "/var/lib/one" {
		t.Errorf("state_dir is %q, want the first of STATE_DIRECTORY", c.StateDir)
	}
}

func TestAdmin(t *testing.T) {
	c := load(t, "admin.good.yaml")
	if !c.Watch || c.LogLevel != "warn" || c.Admin != ":9090" || c.AdminKey.None() || !c.Pprof || !c.Upstreams[0].Required {
		t.Errorf("got %+v", c)
	}
	c = load(t, "written.good.yaml")
	if read := config.Read(c.Read.Files...); !read.Same(c.Read) || read.Lacks(c.Read) {
		t.Errorf("read is %v, want what was loaded, %v", read, c.Read)
	}
	if !slices.Equal(c.Read.Files, []string{"testdata/written.good.yaml", "testdata/note.txt"}) {
		t.Errorf("watched are %q", c.Read.Files)
	}
	// A bearer's own file is read by its source, and makes no other configuration, unless something else refers to it as well.
	if c = load(t, "cleartext.good.yaml"); !slices.Equal(c.Read.Files, []string{"testdata/cleartext.good.yaml"}) {
		t.Errorf("watched are %q", c.Read.Files)
	}
	if c = load(t, "credentials.good.yaml"); !slices.Equal(c.Read.Files, []string{"testdata/credentials.good.yaml", "testdata/token.txt"}) {
		t.Errorf("watched are %q", c.Read.Files)
	}
}

func TestServing(t *testing.T) {
	c := load(t, "serving.good.yaml")
	got := []any{c.Listen, c.Path, c.Hosts, c.Origins, c.Callers.Names(), c.StartGrace, c.ShutdownDelay, c.ShutdownTimeout, c.Keepalive, reveal(c.SealKeys), c.StateDir, c.Upstreams[0].Prefix}
	want := []any{
		":8080", "/a/mcp", []string{"mcp.example.com", "mcp.example.com:8443", "[::1]:8080"},
		[]string{"https://app.example.com", "http://localhost:6274"}, []string{"alice", "bob@ci"}, time.Duration(0), 5 * time.Second,
		20 * time.Second, time.Minute, []string{"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}, filepath.Join("testdata", "state"), "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFamilies(t *testing.T) {
	var got []string
	for _, u := range load(t, "families.good.yaml").Upstreams {
		got = append(got, fmt.Sprintf("%s=%s", u.ID, string(u.Engine)))
	}
	want := []string{
		"a=legacy-stdio", "b=modern-stdio", "c=legacy-websocket", "d=modern-http",
		"e=legacy-http", "f=legacy-sse", "g=legacy-stdio", "h=legacy-websocket",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSideNotPickedIsIgnored(t *testing.T) {
	c := load(t, "layered.good.yaml")
	child, remote := c.Upstreams[0], c.Upstreams[1]
	if child.Engine != config.LegacyStdio || !child.URL.IsZero() || child.Headers != nil || child.Credential != nil {
		t.Errorf("the url's side is left in %v", child)
	}
	if remote.Engine != config.ModernHTTP || !remote.Command.IsZero() || remote.Args != nil || remote.Cwd != "" || remote.InheritEnv {
		t.Errorf("the command's side is left in %v", remote)
	}
}

func TestListenOverride(t *testing.T) {
	const file = "listen: 0.0.0.0:80\nupstreams: {a: {command: a}}\n"
	c, _, err := config.Parse("f", []byte(file), config.Override{Listen: "[::1]:9"})
	if err != nil || c.Listen != "[::1]:9" {
		t.Errorf("a loopback override: %v, %v", c, err)
	}
	for listen, want := range map[string]string{
		":9":     "--listen: serves other machines",
		"999":    `--listen: "999" is not host:port`,
		"a:b":    `--listen: "a:b" has no port`,
		"a b:80": `--listen: "a b:80" has a host that`,
		"":       "f:1:9: listen: serves other machines",
	} {
		if _, _, err := config.Parse("f", []byte(file), config.Override{Listen: listen}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("override %q: %v, want %s", listen, err, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:80": true, "127.255.0.9:80": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true, "localhost:80": true,
		"LOCALHOST.:80": true, ":80": false, "0.0.0.0:80": false, "[::]:80": false, "localhost.example:80": false, "10.0.0.1:80": false,
	} {
		if got := config.Loopback(listen); got != want {
			t.Errorf("Loopback(%q) = %t", listen, got)
		}
	}
}

func TestUnreadable(t *testing.T) {
	for path, want := range map[string]string{
		"testdata/none.yaml": "testdata/none.yaml: cannot be read: no such file or directory",
		"testdata":           "testdata: cannot be read: is a directory",
	} {
		if _, _, err := config.Load(path); err == nil || err.Error() != want {
			t.Errorf("Load(%s): %v, want %s", path, err, want)
		}
	}
}

func TestBounds(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, 64<<10+1), 0o600); err != nil {
		t.Fatal(err)
	}
	full := filepath.Join(t.TempDir(), "full")
	if err := os.WriteFile(full, []byte(strings.Repeat("x", 64<<10)), 0o600); err != nil {
		t.Fatal(err)
	}
	many := strings.Builder{}
	for i := range 1001 {
		fmt.Fprintf(&many, " u%d: {command: a}\n", i)
	}
	args := func(text string, n int) string {
		return "upstreams: {a: {command: a, args: [" + strings.Repeat(text+",", n) + "]}}"
	}
	for want, text := range map[string]string{
		"is larger than 1024 KiB":      "#" + strings.Repeat("x", 1<<20),
		"exceeded max depth of 24":     strings.Repeat("[", 100),
		"is larger than 64 KiB":        args(fmt.Sprintf("%q", "${file:"+big+"}"), 1),
		"bring more than 4 MiB":        args(fmt.Sprintf("%q", "${file:"+full+"}"), 65),
		"has 1001 upstreams, at most ": "upstreams:\n" + many.String(),
	} {
		if _, _, err := config.Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200v, want %s", err, want)
		}
	}
	_, _, err := config.Parse("f", []byte(args("null", 5000)))
	if problems, _ := errors.AsType[config.Problems](err); len(problems) != 200 {
		t.Errorf("%d problems are listed, want 200", len(problems))
	}
}

func TestJSONProblemHasItsPlace(t *testing.T) {
	_, _, err := config.Parse("c.json", []byte("{\n\t\"upstreams\": {\n\t\t\"a\": {\"command\": \"a\", \"timeout\": 5}\n\t}\n}\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "c.json:3:36: upstreams.a.timeout: ") {
		t.Error(err)
	}
}

// No member, and no name of one, that stands in a wrong place is shown where it could be a secret.
func TestProblemsNeverShowSecrets(t *testing.T) {
	t.Setenv("CONFIG_TEST_BEARER", "planted-0123456789")
	for _, text := range []string{
		"upstreams: {a: {command: a, env: {API_KEY=planted-0123456789: x}}}",
		`upstreams: {a: {url: "https://h.example", headers: {"Authorization: planted-0123456789": x}}}`,
		"upstreams: {a: {url: 'https://h.example', credential: {planted-0123456789: }}}",
		"callers: planted-0123456789\nupstreams: {a: {command: a}}",
		"callers: {keys: [planted-0123456789]}\nupstreams: {a: {command: a}}",
		"origins: ['https://u:planted-0123456789@h.example']\nhosts: ['u:planted-0123456789@h']\nupstreams: {a: {command: a}}",
		"listen: ${env:CONFIG_TEST_BEARER}\npath: ${env:CONFIG_TEST_BEARER}\nkeepalive: ${env:CONFIG_TEST_BEARER}\nupstreams: {a: {command: a, protocol: '${env:CONFIG_TEST_BEARER}', revision: '${env:CONFIG_TEST_BEARER}'}}",
		"upstreams: {a: {command: a, prefix: planted-0123456789, env: {X_TOKEN: planted-0123456789}}, b: {command: b, prefix: planted}}",
		"upstreams: {planted-0123456789-Planted: {command: a}}",
		"planted-0123456789: 1",
		"upstreams: {a: {url: 'https://h.example/?key=planted-0123456789', prefix: ' planted-0123456789'}}",
		"listen: planted-0123456789\nupstreams: {a: {url: 'ftp://h.example/?key=planted-0123456789'}}",
		"upstreams: {a: {url: 'https://h.example', forward_headers: ['Authorization: planted-0123456789', {planted-0123456789: x}]}}",
		"upstreams: {a: {url: 'https://h.example', credential: {command: 'get --token planted-0123456789', query: 'planted-0123456789&'}}}",
		"upstreams: {a: {url: 'https://h.example', credential: {oauth2: {token_url: 'https://u:planted-0123456789@h.example', planted-0123456789: x, client_secret: \"planted-0123456789\\n\", resource: 'planted-0123456789', scopes: ['planted-0123456789 x']}}}}",
		"upstreams: {a: {command: a, concurrency: '${env:CONFIG_TEST_BEARER}', rounds: '${env:CONFIG_TEST_BEARER}', tools: {timeouts: {x: '${env:CONFIG_TEST_BEARER}'}}}}",
	} {
		_, warned, err := config.Parse("f", []byte(text))
		if err == nil {
			t.Errorf("%s: no problem", text)
			continue
		}
		if said := fmt.Sprint(warned, err); strings.Contains(said, "planted-0123") {
			t.Errorf("%s:\n%s", text, said)
		}
	}
}

func TestPrintedConfigShowsNoSecret(t *testing.T) {
	c := load(t, "warned.good.yaml")
	shown := fmt.Sprintf("%v %+v %#v", *c, c, c.Upstreams)
	for _, u := range c.Upstreams {
		text, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		shown += string(text) + fmt.Sprintf("%+v", struct{ hidden config.Upstream }{u})
	}
	if strings.Contains(shown, "planted") {
		t.Error(shown)
	}
	if n := strings.Count(shown, redact.Mask); n < 20 {
		t.Errorf("%d masks in %s", n, shown)
	}
}
