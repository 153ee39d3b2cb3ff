package mcpgateway_test

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	module       = "mcp-gateway"
	maxFileLines = 400
)

// A row is what a package may import beside the standard library: packages of this module, and those of others with all
// that is below them.
type row struct{ ours, theirs []string }

func ours(packages ...string) row        { return row{ours: packages} }
func (r row) and(packages ...string) row { r.theirs = packages; return r }
func (r row) allowsOurs(p string) bool   { return slices.Contains(r.ours, p) }
func (r row) allowsTheirs(imported string) bool {
	return slices.ContainsFunc(r.theirs, within(imported))
}

func within(imported string) func(string) bool {
	return func(p string) bool { return imported == p || strings.HasPrefix(imported, p+"/") }
}

// imports is who imports whom. A package needs a row before it can be added, and an arrow is a decision about the layers:
// the era of a server stays below upstream, and what the gateway is for stays above it. Test files may import anything,
// but those of e2e, which must see nothing of the module but its binary.
var imports = map[string]row{
	"cmd/mcp-gateway": ours("gateway", "gateway/config", "auth", "internal/example").and("github.com/spf13/cobra"),
	"gateway": ours("gateway/config", "gateway/catalog", "gateway/front", "gateway/observe",
		"internal/mcp", "internal/seal", "internal/wire",
		"auth", "policy", "redact", "upstream", "upstream/legacy", "upstream/modern"),
	"gateway/front":   ours("gateway/observe", "upstream", "internal/mcp", "internal/seal", "internal/sse", "internal/wire", "redact"),
	"gateway/catalog": ours("policy", "upstream", "internal/backoff", "internal/mcp", "internal/wire"),
	"gateway/config":  ours("auth", "policy", "redact", "internal/mcp", "internal/seal").and("go.yaml.in/yaml/v4"),
	"gateway/observe": ours("redact").and("github.com/prometheus/client_golang"),

	"upstream":                   ours("internal/wire"),
	"upstream/legacy":            ours(engine...).and("github.com/coder/websocket"),
	"upstream/modern":            ours(engine...),
	"upstream/internal/child":    ours(belowEngine...),
	"upstream/internal/pipe":     ours(belowEngine...),
	"upstream/internal/exchange": ours(belowEngine...),
	"upstream/internal/link":     ours(belowEngine...),
	"upstream/internal/leg":      ours("upstream", "internal/mcp", "internal/sse", "internal/wire"),
	"upstream/upstreamtest":      ours("upstream", "internal/mcp", "internal/sse", "internal/wire"),

	"auth": ours("redact", "internal/process").and("golang.org/x/oauth2",
		"github.com/modelcontextprotocol/go-sdk/auth", "github.com/modelcontextprotocol/go-sdk/oauthex"),
	"policy": ours(),
	"redact": ours(),

	"internal/backoff":   ours(),
	"internal/example":   ours().and("github.com/modelcontextprotocol/go-sdk/mcp"),
	"internal/leakcheck": ours(),
	"internal/mcp":       ours("internal/wire"),
	"internal/process":   ours().and("golang.org/x/sys"),
	"internal/seal":      ours(),
	"internal/sse":       ours("internal/wire"),
	"internal/wire":      ours().and("github.com/go-json-experiment/json/jsontext"),

	"e2e":       ours(),
	"e2e/bench": ours().and("github.com/modelcontextprotocol/go-sdk/mcp", "golang.org/x/sys"),
}

var engine = []string{"upstream", "upstream/internal/child", "upstream/internal/pipe", "upstream/internal/exchange",
	"upstream/internal/link", "upstream/internal/leg", "redact", "internal/mcp", "internal/sse", "internal/wire"}

var belowEngine = []string{"upstream", "upstream/internal/leg", "redact",
	"internal/backoff", "internal/mcp", "internal/process", "internal/seal", "internal/sse", "internal/wire"}

// TestSources holds the module's files against the rules that a reviewer would otherwise have to remember. It reads the
// files themselves: go test then knows when a pass is stale, which it does not where go list is asked.
func TestSources(t *testing.T) {
	problems, packages := check(t, ".")
	for _, problem := range problems {
		t.Error(problem)
	}
	if !packages["internal/sse"] {
		t.Errorf("the walk saw only %v", packages)
	}
}

// check returns what is wrong in the module at root, and the packages that it saw.
func check(t *testing.T, root string) (problems []string, packages map[string]bool) {
	t.Helper()
	packages = map[string]bool{}
	documented := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != root && apart(name) {
				return filepath.SkipDir
			}
			return nil
		}
		base := entry.Name()
		if !strings.HasSuffix(base, ".go") || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		dir := path.Dir(relative)
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), relative, text, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		test := strings.HasSuffix(base, "_test.go")
		if !test {
			packages[dir] = true
			documented[dir] = documented[dir] || file.Doc.Text() != ""
			problems = append(problems, tooLong(relative, text)...)
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			problems = append(problems, judge(dir, relative, imported, test)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range packages {
		if _, known := imports[dir]; !known {
			problems = append(problems, fmt.Sprintf("%s: no row in the import table (imports_test.go) says what this package may import", dir))
		}
		if !documented[dir] {
			problems = append(problems, fmt.Sprintf("%s: no file has a package comment that says what it is for and where to start reading", dir))
		}
	}
	slices.Sort(problems)
	return problems, packages
}

// apart says whether a directory is not part of the module, or holds no sources of its own.
func apart(dir string) bool {
	base := filepath.Base(dir)
	if base == "testdata" || base == "node_modules" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func tooLong(name string, text []byte) []string {
	lines := bytes.Count(text, []byte("\n"))
	if lines < maxFileLines {
		return nil
	}
	for line := range bytes.Lines(text) {
		if reason, ok := bytes.CutPrefix(line, []byte("// Long file:")); ok && len(bytes.TrimSpace(reason)) > 0 {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: %d lines; split it below %d, or say why not in a line `// Long file: …`", name, lines, maxFileLines)}
}

func judge(dir, name, imported string, test bool) []string {
	own, mine := strings.CutPrefix(imported, module+"/")
	first, _, _ := strings.Cut(imported, "/")
	switch standard := !mine && !strings.Contains(first, "."); {
	case standard, test && (dir != "e2e" || !mine):
	case mine && !imports[dir].allowsOurs(own), !mine && !imports[dir].allowsTheirs(imported):
		return []string{fmt.Sprintf("%s: imports %s, which the row of %s in the import table (imports_test.go) does not allow", name, imported, dir)}
	}
	return nil
}

// TestCheck plants one of each fault, and what looks like one.
func TestCheck(t *testing.T) {
	root := t.TempDir()
	long := strings.Repeat("\n", maxFileLines)
	for name, text := range map[string]string{
		"upstream/a.go":               "// Package upstream is documented.\npackage upstream\nimport (\"net/http\"; _ \"mcp-gateway/internal/wire\"; _ \"mcp-gateway/gateway\")\n",
		"upstream/b_darwin.go":        "package upstream\nimport _ \"github.com/spf13/cobra\"\n",
		"upstream/a_test.go":          "package upstream\nimport _ \"mcp-gateway/gateway\"\n" + long,
		"gateway/observe/a.go":        "// Package observe is documented.\npackage observe\nimport (_ \"github.com/prometheus/client_golang/prometheus\"; _ \"github.com/prometheus/client_golang5\")\n",
		"policy/a.go":                 "package policy\n",
		"redact/a.go":                 "// Package redact is documented.\npackage redact\n" + long,
		"redact/b.go":                 "package redact\n// Long file: a table.\n" + long,
		"redact/c.go":                 "package redact\n// Long file:\n" + long,
		"helper/a.go":                 "// Package helper is documented.\npackage helper\n",
		"e2e/a_test.go":               "package e2e\nimport (_ \"mcp-gateway/upstream\"; _ \"github.com/google/go-cmp/cmp\")\n",
		"policy/testdata/a.go":        "not Go",
		"e2e/peers/node_modules/a.go": "not Go",
		"e2e/peer/go.mod":             "module peer\n",
		"e2e/peer/a.go":               "package peer\nimport _ \"mcp-gateway/gateway\"\n",
		".cache/a.go":                 "not Go",
	} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := check(t, root)
	want := []string{
		"e2e/a_test.go: imports mcp-gateway/upstream, which the row of e2e in the import table (imports_test.go) does not allow",
		"gateway/observe/a.go: imports github.com/prometheus/client_golang5, which the row of gateway/observe in the import table (imports_test.go) does not allow",
		"helper: no row in the import table (imports_test.go) says what this package may import",
		"policy: no file has a package comment that says what it is for and where to start reading",
		"redact/a.go: 402 lines; split it below 400, or say why not in a line `// Long file: …`",
		"redact/c.go: 402 lines; split it below 400, or say why not in a line `// Long file: …`",
		"upstream/a.go: imports mcp-gateway/gateway, which the row of upstream in the import table (imports_test.go) does not allow",
		"upstream/b_darwin.go: imports github.com/spf13/cobra, which the row of upstream in the import table (imports_test.go) does not allow",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
