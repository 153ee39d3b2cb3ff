package config

import (
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"mcp-gateway/redact"
)

const (
	maxVariables = 5000 // that an imported configuration may refer to
	placeholders = 0x100000
	maxName      = 64 // characters of a variable's name that is made up here
)

// A variable is one that the configuration will refer to. In a server's strings a placeholder stands for it: the character
// placeholders + its index.
type variable struct {
	index  int
	name   string // "" until it is clear which names the file has for others
	owner  string // id of the first server that refers to it
	wanted string // what it would be called
	used   bool   // by what was written
	plain  bool   // a name that is there on any machine, and needs no setting
	hidden redact.Secret
	uses   []string
	hints  []string
}

// An input is what VS Code asks a person for.
type input struct{ hints []string }

// refer returns the placeholder of the variable that key identifies, making it with fill where it is new. Use is what it is
// needed for.
func (i *importer) refer(s *server, key, use string, fill func(*variable)) string {
	v := i.byKey[key]
	if v == nil {
		if len(i.variables) >= maxVariables {
			i.refuse(s.at, "brings more than %d variables, import it in parts", maxVariables)
			return ""
		}
		v = &variable{index: len(i.variables), owner: s.id}
		fill(v)
		i.byKey[key] = v
		i.variables = append(i.variables, v)
	}
	if use += " of " + s.id; !slices.Contains(v.uses, use) && len(v.uses) < 8 {
		v.uses = append(v.uses, use)
	}
	return string(rune(placeholders + v.index))
}

func isPlaceholder(r rune) bool { return r >= placeholders }

// environment refers to a variable by the name that it has already.
func (i *importer) environment(s *server, name, use string) string {
	return i.refer(s, "env "+name, use, func(v *variable) {
		v.name, v.plain = name, slices.Contains([]string{"HOME", "USERPROFILE", "PATH", "USER"}, name)
		i.taken[name] = true
	})
}

// resolveClient replaces the references that clients know in text by placeholders. Own gives what a variable of the server itself
// stands for; nil where it has none.
func (i *importer) resolveClient(s *server, text, use string, own func(name string) (string, bool)) string {
	var b strings.Builder
	for {
		begin := strings.Index(text, "${")
		if begin < 0 {
			break
		}
		b.WriteString(text[:begin])
		inside, rest, closed := braced(text[begin+2:])
		if !closed {
			b.WriteString("${")
			text = text[begin+2:]
			continue
		}
		text = rest
		if value, known := i.client(s, inside, use, own); known {
			b.WriteString(value)
		} else {
			b.WriteString("${" + inside + "}")
		}
	}
	b.WriteString(text)
	return b.String()
}

// braced cuts text behind the brace that closes an open one.
func braced(text string) (inside, rest string, closed bool) {
	depth := 1
	for n := range len(text) {
		switch text[n] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return text[:n], text[n+1:], true
		}
	}
	return "", "", false
}

// client returns what the reference ${inside} stands for.
func (i *importer) client(s *server, inside, use string, own func(string) (string, bool)) (string, bool) {
	kind, name, two := strings.Cut(inside, ":")
	switch {
	case inside == "workspaceFolder" || kind == "workspaceFolder" || inside == "cwd":
		return i.folderOf(s, use), true
	case inside == "workspaceFolderBasename" && i.workspace != "":
		return filepath.Base(i.workspace), true
	case inside == "userHome":
		return i.home(s, use), true
	case inside == "pathSeparator" || inside == "/":
		return string(filepath.Separator), true
	case kind == "env" && environmentName(name):
		return i.environment(s, name, use), true
	case kind == "input" && name != "":
		return i.refer(s, inside, use, func(v *variable) { v.wanted, v.hints = name, i.inputs[name].hints }), true
	case (kind == "config" || kind == "command") && name != "":
		return i.refer(s, inside, use, func(v *variable) {
			v.wanted, v.hints = name, []string{"VS Code's " + map[string]string{"config": "setting ", "command": "command "}[kind] + quote(name)}
		}), true
	case two && strings.HasPrefix(name, "-") && environmentName(kind):
		return i.withDefault(s, kind, name[1:], use), true
	case !environmentName(inside):
		return "", false
	}
	if own != nil {
		if value, has := own(inside); has {
			return value, true
		}
	}
	return i.environment(s, inside, use), true
}

// withDefault refers to a variable that need not be set in the client. Here it must, since a reference has no default.
func (i *importer) withDefault(s *server, name, text, use string) string {
	placeholder := i.environment(s, name, use)
	hint := "it was optional"
	switch {
	case text == "":
		hint += ", empty by default"
	case !strings.Contains(text, "${") && !secretText(name, text):
		hint += ", by default " + quote(text)
	}
	if v := i.byKey["env "+name]; v != nil && !slices.Contains(v.hints, hint) {
		v.hints = append(v.hints, hint)
	}
	return placeholder
}

func (i *importer) folderOf(s *server, use string) string {
	if i.workspace != "" {
		return i.workspace
	}
	return i.refer(s, "workspace", use, func(v *variable) { v.wanted, v.hints = "WORKSPACE_FOLDER", []string{"the project's folder"} })
}

func (i *importer) home(s *server, use string) string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	return i.environment(s, name, use)
}

// readInputs reads what VS Code asks for, but never what a person answered, which is not in the file.
func (i *importer) readInputs(at place) {
	list, _ := i.items(at)
	for _, p := range list {
		members, ok := i.entries(p)
		if !ok {
			continue
		}
		given := map[string]string{}
		for _, e := range members {
			if e.at.node.Kind == yaml.ScalarNode && e.at.node.Tag != "!!null" {
				given[e.name] = e.at.node.Value
			}
		}
		in := input{}
		if text := given["description"]; text != "" {
			in.hints = append(in.hints, quote(text))
		}
		if text := given["default"]; text != "" && given["password"] != "true" && !secretText(given["id"], text) {
			in.hints = append(in.hints, "by default "+quote(text))
		}
		i.inputs[given["id"]] = in
	}
}

// name gives each variable that has none yet one that means nothing else: neither in this file nor, where it would be of one
// word such as PATH or TOKEN, in many environments.
func (i *importer) name() {
	for _, v := range i.variables {
		if v.name != "" {
			continue
		}
		owner := upperSnake(v.owner)
		base := upperSnake(v.wanted)
		if !strings.Contains(base, "_") || strings.HasSuffix(base, "_PROXY") || base[0] <= '9' {
			base = owned(owner, base)
		}
		if i.taken[base] {
			base = owned(owner, base)
		}
		v.name = base
		for n := 2; i.taken[v.name]; n++ {
			v.name = base + "_" + strconv.Itoa(n)
		}
		i.taken[v.name] = true
	}
}

func owned(owner, name string) string {
	if strings.HasPrefix(name, owner+"_") {
		return name
	}
	return owner + "_" + name
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// upperSnake makes the name of a variable of text.
func upperSnake(text string) string {
	words := strings.FieldsFunc(strings.ToUpper(camel.ReplaceAllString(text, "${1}_${2}")), func(r rune) bool { return r > unicode.MaxASCII || !publicRune(r) || r == '_' || r == '-' })
	name := strings.Join(words, "_")
	if name == "" {
		name = "VALUE"
	}
	return strings.TrimRight(name[:min(len(name), maxName)], "_")
}

// list is every variable that has to be set, by name.
func (i *importer) list() []Variable {
	var list []Variable
	for _, v := range i.variables {
		if v.plain || !v.used {
			continue
		}
		list = append(list, Variable{Name: v.name, For: strings.Join(append(slices.Clone(v.uses), v.hints...), ", ")})
	}
	slices.SortFunc(list, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return list
}
