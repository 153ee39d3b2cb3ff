package config

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const imports = "testdata/import"

func importFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(imports, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	return files
}

// Every file of testdata/import becomes the .yaml beside it, with what is said of it in .said. To add a case is to add a file
// and run with -update.
func TestImport(t *testing.T) {
	schema := resolved(t)
	for _, path := range importFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out, err := Import(path, data)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(tree(t, out.YAML)); err != nil {
				t.Errorf("an editor complains: %v", err)
			}
			said := ""
			for _, n := range out.Notes {
				said += strings.TrimPrefix(n.String(), path+":") + "\n"
			}
			said += fmt.Sprintf("\n%d\n", out.Upstreams)
			for _, v := range out.Variables {
				said += v.Name + ": " + v.For + "\n"
			}
			golden(t, strings.TrimSuffix(path, ".json")+".yaml", out.YAML)
			golden(t, strings.TrimSuffix(path, ".json")+".said", []byte(said))
			if all := string(out.YAML) + said; strings.Contains(all, "planted") {
				t.Errorf("a secret is in\n%s", all)
			}
		})
	}
}

// With its variables set, what was imported is the very text that the client had, in every place.
func TestImportKeepsEveryText(t *testing.T) {
	for _, path := range importFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if arrived := roundTrip(t, path, data); arrived != "" {
				t.Error(arrived)
			}
		})
	}
}

// roundTrip imports data, sets the variables, loads what came out, and says what has not arrived there as it was.
func roundTrip(t *testing.T, path string, data []byte) string {
	t.Helper()
	plain, hidden := newImporter(path), newImporter(path)
	if plain.read(string(data)); len(plain.problems) > 0 {
		return ""
	}
	hidden.read(string(data))
	hidden.protect()
	text := hidden.write()
	for _, v := range hidden.variables {
		t.Setenv(v.name, hidden.expanded(v.index))
	}
	c, warned, err := Parse(path, text)
	if err != nil {
		return fmt.Sprintf("it does not load: %v\n%s", err, text)
	}
	for _, w := range warned {
		if strings.Contains(w.Text, "stands in the file itself") && !harmlessAt(text, w) {
			return fmt.Sprintf("%v\n%s", w, text)
		}
	}
	var want, got []string
	for _, s := range plain.servers {
		if !s.off && !s.left {
			want = append(want, hidden.original(s))
		}
	}
	for _, u := range c.Upstreams {
		got = append(got, arrived(u))
	}
	return cmp.Diff(want, got)
}

// harmlessAt reports whether the value at p is one that only the parser takes for a credential, by the name beside it.
func harmlessAt(text []byte, p Problem) bool {
	line := strings.Split(string(text), "\n")[p.Line-1]
	return slices.ContainsFunc([]string{`"$TOKEN"`, `"key:"`, `"word"`, `: "false"`, `: none`, `TOKENS: "4096"`}, func(s string) bool { return strings.Contains(line, s) })
}

// expanded is the text that the variable of this index stands for.
func (i *importer) expanded(index int) string {
	v := i.variables[index]
	switch {
	case !v.hidden.IsZero():
		return i.expandedText(v.hidden.Reveal())
	case strings.HasSuffix(v.name, "_PORT"):
		return "80"
	case strings.HasSuffix(v.name, "_URL"):
		return "https://example.com"
	}
	return "value-of-" + v.name
}

func (i *importer) expandedText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if isPlaceholder(r) {
			b.WriteString(i.expanded(int(r - placeholders)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// original is what arrived should find of s, which was never hidden.
func (i *importer) original(s *server) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\ncommand %q\nurl %q\n", s.id, i.expandedText(s.command), i.expandedText(s.url))
	for _, arg := range s.args {
		fmt.Fprintf(&b, "arg %q\n", i.expandedText(arg))
	}
	for _, e := range s.env {
		fmt.Fprintf(&b, "env %q=%q\n", e.name, i.expandedText(e.value))
	}
	for _, h := range s.headers {
		fmt.Fprintf(&b, "header %q=%q\n", h.name, i.expandedText(h.value))
	}
	fmt.Fprintf(&b, "bearer %q\n", i.expandedText(s.bearer))
	return b.String()
}

func arrived(u Upstream) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\ncommand %q\nurl %q\n", u.ID, u.Command.Reveal(), u.URL.Reveal())
	for _, arg := range u.Args {
		fmt.Fprintf(&b, "arg %q\n", arg.Reveal())
	}
	for _, e := range u.Env {
		fmt.Fprintf(&b, "env %q=%q\n", e.Name, e.Value.Reveal())
	}
	for _, h := range u.Headers {
		fmt.Fprintf(&b, "header %q=%q\n", h.Name, h.Value.Reveal())
	}
	bearer := ""
	if u.Credential != nil {
		bearer = u.Credential.Bearer.Reveal()
	}
	fmt.Fprintf(&b, "bearer %q\n", bearer)
	return b.String()
}

func TestImportRefusals(t *testing.T) {
	deep := strings.Repeat("[", 2000)
	for in, want := range map[string]string{
		``:                   "f.json:1:1: is empty",
		` // nothing`:        "f.json:1:12: is empty",
		"{\n  \"a\": tru\n}": "f.json:2:8: a value is missing here: a string in double quotes, a number, true, false, null, { or [",
		"{\n\t\"é\": 'x'}":   "f.json:2:7: a string stands in double quotes",
		`{"a": 1 "b": 2}`:    "f.json:1:9: a , or a } is missing here",
		`{"a" 1}`:            "f.json:1:6: a : is missing here, between a member's name and its value",
		`{a: 1}`:             "f.json:1:2: a member's name in double quotes is missing here",
		`{"a": 1,, "b": 2}`:  "f.json:1:9: a member's name in double quotes is missing here",
		`{"a": [1,, 2]}`:     "f.json:1:10: a value is missing here: a string in double quotes, a number, true, false, null, { or [",
		`{"a": [1`:           "f.json:1:9: the file ends too early, a ] is missing",
		`{"a": `:             "f.json:1:7: the file ends too early, a value is missing",
		`{"a": "C:\Users"}`:  `f.json:1:10: a \ in a string stands before one of "\/bfnrt or uXXXX, and is itself written \\`,
		`{"a": "\u12x4"}`:    `f.json:1:8: a \ in a string stands before one of "\/bfnrt or uXXXX, and is itself written \\`,
		"{\"a\": \"x\ny\"}":  "f.json:1:7: a string begins here and is not closed on its line",
		`{"a": "x`:           "f.json:1:7: a string begins here and is not closed",
		`{"a": 01}`:          "f.json:1:7: a value is missing here: a string in double quotes, a number, true, false, null, { or [",
		`{} {}`:              "f.json:1:4: something follows the end of the file's one object, take it out",
		`{ /* x`:             "f.json:1:3: a comment begins here with /* and has no */",
		"{\"a\":\n\"\xff\"}": "f.json:2:2: is not UTF-8 here",
		"\xff\xfe{\x00":      "f.json:1:1: is UTF-16, save it as UTF-8",
		`{"a": ` + deep:      "f.json:1:1007: is nested too deeply",
		`[]`:                 "f.json:1:1: must be an object of members, not a list",
		`{"upstreams": {}}`:  "f.json:1:1: names no servers: a client's file has them in mcpServers, one of VS Code in servers",
		`{"mcpServers": {}}`: "f.json:1:2: mcpServers: is empty",
		`{"servers": []}`:    "f.json:1:2: servers: must be an object of members, not a list",
		`{"mcpServers": {"a": {"command": ["x"], "args": "y", "env": {"E": {}}}, "b": 1}}`: "f.json:1:23: mcpServers.a.command: must be a single value, not a list\n" +
			"f.json:1:49: mcpServers.a.args: must be a list, not a single value: write [ ] around it\nf.json:1:62: mcpServers.a.env.E: must be a single value, not an object of members\n" +
			"f.json:1:78: mcpServers.b: must be an object of members, not a single value",
		`{"mcpServers": {"a": {"command": "x", "command": "y"}}}`: "f.json:1:39: mcpServers.a.command: is here twice, first on line 1: keep one",
		`{"mcpServers": {"a": {"command": "x\u0000"}}}`:           "f.json:1:34: mcpServers.a.command: has a NUL character, take it out",
		`{"mcpServers": {"a": {"command": "\udbff\udffd"}}}`:      "f.json:1:34: mcpServers.a.command: has a character of Unicode's last plane, which is for private use: take it out",
		`{"mcpServers": {"a": {"command": "x", "disabled": true}}}`: "f.json: has no server that is switched on and has a place here: " +
			"mcpServers.a is switched off in the client, so it is a comment here",
	} {
		out, err := Import("f.json", []byte(in))
		if err == nil || err.Error() != want {
			t.Errorf("%.60q:\n got %v, %v\nwant %s", in, out, err, want)
		}
	}
	if _, err := Import("f.json", make([]byte, maxImport+1)); err == nil || !strings.Contains(err.Error(), "is larger than 16 MiB") {
		t.Errorf("of a large one: %v", err)
	}
}

// A file in the project says where the project is; one in the home folder is for all projects.
func TestImportKnowsTheProject(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	project := filepath.Join(home, "project")
	for path, want := range map[string]string{
		filepath.Join(project, ".vscode", "mcp.json"): project,
		filepath.Join(project, ".cursor", "mcp.json"): project,
		filepath.Join(project, ".mcp.json"):           project,
		filepath.Join(home, ".cursor", "mcp.json"):    "${env:WORKSPACE_FOLDER}",
		filepath.Join(project, "mcp.json"):            "${env:WORKSPACE_FOLDER}",
	} {
		out, err := Import(path, []byte(`{"servers": {"a": {"command": "./run", "args": ["${workspaceFolder}/x", "${workspaceFolder:y}"]}, "b": {"command": "b", "cwd": "sub"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		text := string(out.YAML)
		if !strings.Contains(text, `["`+want+`/x", "`+want+`"]`) {
			t.Errorf("%s became\n%s", path, text)
		}
		known := want == project
		if strings.Contains(text, "cwd: "+project+"\n") != known || strings.Contains(text, "cwd: "+filepath.Join(project, "sub")+"\n") != known || (len(out.Notes) > 0) == known {
			t.Errorf("%s has another cwd in\n%s%v", path, text, out.Notes)
		}
	}
}

// What a variable is for is said by its place and by what the file says of it, so that a person knows what to set.
func TestImportNames(t *testing.T) {
	for _, row := range []struct{ owner, wanted, taken, want string }{
		{"a", "GITHUB_TOKEN", "", "GITHUB_TOKEN"},
		{"a", "GITHUB_TOKEN", "GITHUB_TOKEN", "A_GITHUB_TOKEN"},
		{"a", "GITHUB_TOKEN", "GITHUB_TOKEN A_GITHUB_TOKEN", "A_GITHUB_TOKEN_2"},
		{"a-b", "token", "", "A_B_TOKEN"},
		{"a", "PATH", "", "A_PATH"},
		{"a", "https_proxy", "", "A_HTTPS_PROXY"},
		{"github", "github-token", "", "GITHUB_TOKEN"},
		{"github", "github", "", "GITHUB_GITHUB"},
		{"a", "1x-2", "", "A_1X_2"},
		{"a", "日本", "", "A_VALUE"},
		{"a", "x." + strings.Repeat("y", 100), "", "X_" + strings.Repeat("Y", 62)},
	} {
		i := newImporter("f.json")
		for _, name := range strings.Fields(row.taken) {
			i.taken[name] = true
		}
		i.variables = []*variable{{owner: row.owner, wanted: row.wanted}}
		if i.name(); i.variables[0].name != row.want || !environmentName(row.want) {
			t.Errorf("%+v became %s", row, i.variables[0].name)
		}
	}
}

func TestImportIsBounded(t *testing.T) {
	var many, variables strings.Builder
	for n := range maxUpstreams + 1 {
		fmt.Fprintf(&many, `"s%d": {"command": "a"},`, n)
	}
	for n := range maxVariables + 1 {
		fmt.Fprintf(&variables, `"${V%d}",`, n)
	}
	for in, want := range map[string]string{
		`{"mcpServers": {` + many.String() + `}}`:                                                     "has 1001 servers, at most 1000 are served",
		`{"mcpServers": {"a": {"command": "a", "args": [` + variables.String() + `]}}}`:               "brings more than 5000 variables, import it in parts",
		`{"mcpServers": {"a": {"command": "a", "args": ["` + strings.Repeat("a", maxFile) + `"]}}}`:   "makes a configuration of over 1024 KiB",
		`{"mcpServers": {"a": {"command": "a", "args": [` + strings.Repeat(`"",`, maxFile/5) + `]}}}`: "makes a configuration of over 1024 KiB",
	} {
		if _, err := Import("f.json", []byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Whatever the bytes, there is something that came out, or a problem in words.
func FuzzImport(f *testing.F) {
	for _, path := range importFiles(f) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := Import("testdata/import/fuzz.json", data)
		if (out == nil) != (err != nil) || err != nil && err.Error() == "" {
			t.Fatalf("%v beside %v", out, err)
		}
	})
}

// Whatever the texts of a server, they arrive in what is made of them.
func FuzzImportTexts(f *testing.F) {
	f.Add("github", "GITHUB_TOKEN", "planted-1", "--key", "planted-2", "https://h.example/?key=planted-3", "Bearer planted-4")
	f.Add("日本", "X", "${Y:-z}", "$${X}", "a: b #c", "https://u:p@h.example/sse", "Basic cDpw")
	f.Add("a b", "URL", "postgres://u:p${X}@h/?password=x y", "TOKEN=${env:X}", `{"token":"x\"y"}`, "ws://h.example:80", "x")
	f.Fuzz(func(t *testing.T, id, name, value, one, two, address, header string) {
		text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
			id:       map[string]any{"command": "x", "args": []string{one, two, name + "=" + value}, "env": map[string]string{name: value, "A_KEY": one, "OTHER": two}},
			id + "2": map[string]any{"url": address, "headers": map[string]string{"Authorization": header, "X-Other": value}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(address, "${") {
			return // what it stands for would have to be one
		}
		arrived := roundTrip(t, "testdata/import/fuzz.json", text)
		if arrived != "" && !strings.Contains(arrived, "in the file itself") {
			t.Errorf("%s\n%s", text, arrived)
		}
	})
}

func TestImportBasic(t *testing.T) {
	i := newImporter("f.json")
	i.read(`{"servers": {"a": {"url": "https://me:p%40ss@h.example/"}, "b": {"url": "https://token-1@h.example/"}}}`)
	for n, want := range []string{"me:p@ss", "token-1:"} {
		v := i.variables[slices.IndexFunc(i.variables, func(v *variable) bool { return v.owner == i.servers[n].id })]
		if got, err := base64.StdEncoding.DecodeString(v.hidden.Reveal()); string(got) != want || err != nil {
			t.Errorf("got %q, %v, want %s", got, err, want)
		}
	}
}
