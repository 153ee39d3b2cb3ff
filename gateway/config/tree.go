package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"mcp-gateway/redact"
)

// maxDepth is deeper than any valid configuration.
const maxDepth = 24

// tree parses data into one tree of plain values. Scalars keep the text as written.
func (l *loader) tree(data []byte) (place, bool) {
	whole := place{node: &yaml.Node{}}
	if len(data) > maxFile {
		l.refuse(whole, "is larger than %d KiB, that is no configuration", maxFile>>10)
		return place{}, false
	}
	docs, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		l.refuse(whole, "cannot be parsed")
		return place{}, false
	}
	var doc yaml.Node
	if err := docs.Load(&doc); err != nil {
		l.syntax(data, err)
		return place{}, false
	}
	var second yaml.Node
	switch err := docs.Load(&second); {
	case err == nil:
		l.refuse(place{node: &second}, "a second document begins here, a configuration is one: take the --- out")
	case !errors.Is(err, io.EOF):
		l.syntax(data, err)
	}
	root := place{node: doc.Content[0]}
	l.plain(root.node)
	return root, len(l.problems) == 0 || root.node.Kind == yaml.MappingNode
}

// plain refuses what is more than a plain value: aliases, merge keys, tags. It goes no deeper than maxDepth, since
// no deeper tree is ever made.
func (l *loader) plain(n *yaml.Node) {
	at := place{node: n}
	switch {
	case n.Kind == yaml.AliasNode:
		l.refuse(at, "anchors and aliases are not supported, write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		l.refuse(at, "tags are not supported, write the plain value")
	case n.Tag == "!!merge":
		l.refuse(at, "merge keys are not supported, write the members out")
	}
	for _, child := range n.Content {
		l.plain(child)
	}
}

// syntax reports a parser's error in words that quote nothing of the file: a secret may begin with `*` or `!`.
func (l *loader) syntax(data []byte, err error) {
	at := place{node: &yaml.Node{}}
	if errors.Is(err, io.EOF) {
		l.refuse(at, "is empty, name at least one upstream")
		return
	}
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		l.refuse(at, "is not YAML or JSON")
		return
	}
	at.node.Line, at.node.Column = load.Mark.Line, load.Mark.Column
	switch load.Stage {
	case yaml.ComposerStage:
		l.refuse(at, "anchors and aliases are not supported: write the value out, or quote one that begins with *")
	case yaml.ResolverStage:
		l.refuse(at, "tags are not supported: write the plain value, or quote one that begins with !")
	default:
		l.refuse(at, "is not YAML or JSON: %s", explained(load.Message, lineOf(data, at.node.Line)))
	}
}

// explained is what the parser says of the line, and what to do about the mistakes that are made most.
func explained(message, line string) string {
	switch {
	case strings.Contains(line[:len(line)-len(strings.TrimLeft(line, " \t"))], "\t"):
		return "the line begins with a tab, indent it with spaces"
	case flowReference(line):
		return message + `; quote a reference inside { } or [ ]: "${env:NAME}"`
	case strings.HasPrefix(message, "did not find expected ','"):
		return message + "; the bracket that is open before it wants its end"
	case message == "did not find expected key":
		return message + "; members of one object begin in the same column"
	}
	return message
}

// lineOf is the line of that number, "" where there is none.
func lineOf(data []byte, number int) string {
	lines := strings.SplitN(string(data), "\n", number+1)
	if number < 1 || number > len(lines) {
		return ""
	}
	return lines[number-1]
}

// flowReference reports whether the line has a `${` in braces or brackets, where YAML takes its brace for its own.
func flowReference(line string) bool {
	i := strings.Index(line, "${")
	return i > 0 && strings.ContainsAny(line[:i], "{[")
}

// An entry is one member of a mapping.
type entry struct {
	name string
	at   place
}

// named is where a problem with the name of e stands, in the mapping at. Its path leaves out a name that could be a
// value in the wrong place.
func (e entry) named(at place) place {
	path := e.at.path
	if redact.CredentialShape(e.name) || strings.ContainsAny(e.name, "=: ") {
		path = at.path
	}
	return place{node: e.at.key, path: path}
}

// entries returns the members of the mapping at, in file order, each name once. It reports what is wrong.
func (l *loader) entries(at place) ([]entry, bool) {
	if !l.is(at, yaml.MappingNode) {
		return nil, false
	}
	first := make(map[string]int, len(at.node.Content)/2)
	var list []entry
	for i := 0; i+1 < len(at.node.Content); i += 2 {
		key, value := at.node.Content[i], at.node.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			if key.Kind != yaml.AliasNode {
				l.refuse(place{node: key, path: at.path}, "a member's name must be a string")
			}
			continue
		}
		if key.Tag == "!!merge" {
			continue
		}
		e := entry{name: key.Value, at: place{key: key, node: value, path: join(at.path, key.Value)}}
		if line, twice := first[e.name]; twice {
			l.refuse(place{node: key, path: e.at.path}, "is here twice, first on line %d: keep one", line)
			continue
		}
		first[e.name] = key.Line
		list = append(list, e)
	}
	return list, true
}

// items returns the values of the sequence at.
func (l *loader) items(at place) ([]place, bool) {
	if !l.is(at, yaml.SequenceNode) {
		return nil, false
	}
	list := make([]place, len(at.node.Content))
	for i, n := range at.node.Content {
		list[i] = place{node: n, path: fmt.Sprintf("%s[%d]", at.path, i)}
	}
	return list, true
}

// is reports whether the value at is of kind, and refuses it if not. What plain has refused is refused silently.
func (l *loader) is(at place, kind yaml.Kind) bool {
	n := at.node
	switch {
	case n.Kind == yaml.AliasNode || n.Style&yaml.TaggedStyle != 0 || n.Tag == "!!merge":
		return false
	case n.Tag == "!!null":
		l.refuse(at, "has no value, give it one or take it out")
		return false
	case n.Kind == yaml.ScalarNode && kind == yaml.SequenceNode:
		l.refuse(at, "must be a list, not a single value: write [ ] around it")
		return false
	case n.Kind != kind:
		l.refuse(at, "must be %s, not %s", kindName(kind), kindName(n.Kind))
		return false
	}
	return true
}

func kindName(kind yaml.Kind) string {
	switch kind {
	case yaml.MappingNode:
		return "an object of members"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}

// join names a member in a path; one with odd characters is quoted and cut.
func join(path, name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`."[]:`, r) }) || name == "" || len(name) > 64 {
		name = quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// quote returns text as a short quoted string.
func quote(text string) string {
	const most = 40
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
