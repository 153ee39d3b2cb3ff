package config

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxImportDepth is deeper than any client writes.
const maxImportDepth = 1000

// A jsonReader reads JSON with what clients allow in it: // and /* */ comments, and a comma after the last member. YAML does
// not have these, and takes other escapes in its strings.
type jsonReader struct {
	text      string
	at        int
	counted   int // line and col are those of this byte
	line, col int
	failure   string // what is wrong at the byte at; "" for nothing yet
}

// readJSON parses text, whose tree has the kinds, positions and plain scalars that tree makes of YAML. It returns false
// with the place of the first fault and its words, which quote nothing.
func readJSON(text string) (root *yaml.Node, fault string, ok bool) {
	r := &jsonReader{text: text, line: 1, col: 1}
	switch {
	case strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff"):
		r.fail("is UTF-16, save it as UTF-8")
	case !utf8.ValidString(text):
		r.at = len(text) - len(invalid(text))
		r.fail("is not UTF-8 here")
	default:
		r.at = len(text) - len(strings.TrimPrefix(text, "\uFEFF"))
		r.counted = r.at
		root = r.document()
	}
	if r.failure != "" {
		return r.node(0, ""), r.failure, false
	}
	return root, "", true
}

// invalid returns text from its first byte on that is not UTF-8.
func invalid(text string) string {
	for text != "" {
		c, size := utf8.DecodeRuneInString(text)
		if c == utf8.RuneError && size == 1 {
			break
		}
		text = text[size:]
	}
	return text
}

func (r *jsonReader) document() *yaml.Node {
	r.space()
	if r.at == len(r.text) {
		r.fail("is empty")
		return nil
	}
	root := r.value(0)
	if r.space(); r.at < len(r.text) {
		r.fail("something follows the end of the file's one object, take it out")
	}
	return root
}

func (r *jsonReader) fail(words string) {
	if r.failure == "" {
		r.failure = words
	}
}

// node makes one that begins at the next byte.
func (r *jsonReader) node(kind yaml.Kind, tag string) *yaml.Node {
	for r.counted < min(max(r.at, 0), len(r.text)) {
		c, size := utf8.DecodeRuneInString(r.text[r.counted:])
		r.counted += size
		r.col++
		if c == '\n' {
			r.line, r.col = r.line+1, 1
		}
	}
	return &yaml.Node{Kind: kind, Tag: tag, Line: r.line, Column: r.col}
}

// space goes on to what is neither white space nor comment.
func (r *jsonReader) space() {
	for r.failure == "" {
		r.at += len(r.text[r.at:]) - len(strings.TrimLeft(r.text[r.at:], " \t\r\n"))
		end := ""
		switch rest := r.text[r.at:]; {
		case strings.HasPrefix(rest, "//"):
			end = "\n"
		case strings.HasPrefix(rest, "/*"):
			end = "*/"
		default:
			return
		}
		n := strings.Index(r.text[r.at+2:], end)
		switch {
		case n >= 0:
			r.at += 2 + n + len(end)
		case end == "\n":
			r.at = len(r.text)
		default:
			r.fail("a comment begins here with /* and has no */")
		}
	}
}

func (r *jsonReader) next() byte {
	if r.space(); r.failure == "" && r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *jsonReader) value(depth int) *yaml.Node {
	if depth > maxImportDepth {
		r.fail("is nested too deeply")
		return nil
	}
	switch c := r.next(); c {
	case '{':
		n := r.node(yaml.MappingNode, "!!map")
		r.list('}', func() { r.member(n, depth) })
		return n
	case '[':
		n := r.node(yaml.SequenceNode, "!!seq")
		r.list(']', func() { n.Content = append(n.Content, r.value(depth+1)) })
		return n
	case '"':
		n := r.node(yaml.ScalarNode, "!!str")
		n.Style = yaml.DoubleQuotedStyle
		n.Value = r.quoted()
		return n
	}
	return r.bare()
}

func (r *jsonReader) member(n *yaml.Node, depth int) {
	if r.next() != '"' {
		r.fail("a member's name in double quotes is missing here")
		return
	}
	key := r.node(yaml.ScalarNode, "!!str")
	key.Value = r.quoted()
	if r.next() != ':' {
		r.fail("a : is missing here, between a member's name and its value")
		return
	}
	r.at++
	n.Content = append(n.Content, key, r.value(depth+1))
}

// list reads what stands between an opening bracket and the closing one, with a comma behind each.
func (r *jsonReader) list(closing byte, item func()) {
	r.at++
	for r.failure == "" {
		if r.next() == closing {
			r.at++
			return
		}
		if item(); r.failure != "" {
			return
		}
		switch c := r.next(); c {
		case ',':
			r.at++
		case closing:
		case 0:
			r.fail("the file ends too early, a " + string(closing) + " is missing")
		default:
			r.fail("a , or a " + string(closing) + " is missing here")
		}
	}
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// bare reads a number, true, false or null.
func (r *jsonReader) bare() *yaml.Node {
	if r.failure != "" {
		return nil
	}
	n := r.node(yaml.ScalarNode, "")
	rest := r.text[r.at:]
	n.Value = rest[:len(rest)-len(strings.TrimLeft(rest, "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"))]
	switch {
	case n.Value == "true" || n.Value == "false":
		n.Tag = "!!bool"
	case n.Value == "null":
		n.Tag = "!!null"
	case jsonNumber.MatchString(n.Value):
		n.Tag = "!!float"
	case rest == "":
		r.fail("the file ends too early, a value is missing")
	case rest[0] == '\'':
		r.fail("a string stands in double quotes")
	default:
		r.fail("a value is missing here: a string in double quotes, a number, true, false, null, { or [")
	}
	if r.failure == "" {
		r.at += len(n.Value)
	}
	return n
}

// quoted reads a string. Half of a surrogate pair becomes U+FFFD.
func (r *jsonReader) quoted() string {
	begin := r.at
	r.at++
	var b strings.Builder
	for r.at < len(r.text) {
		n := strings.IndexAny(r.text[r.at:], "\"\\\n")
		if n < 0 {
			break
		}
		b.WriteString(r.text[r.at : r.at+n])
		r.at += n
		switch r.text[r.at] {
		case '"':
			r.at++
			return b.String()
		case '\n':
			r.at = begin
			r.fail("a string begins here and is not closed on its line")
			return ""
		}
		if !r.escape(&b) {
			r.fail(`a \ in a string stands before one of "\/bfnrt or uXXXX, and is itself written \\`)
			return ""
		}
	}
	r.at = begin
	r.fail("a string begins here and is not closed")
	return ""
}

func (r *jsonReader) escape(b *strings.Builder) bool {
	rest := r.text[r.at+1:]
	if i := strings.IndexByte(`"\/bfnrt`, first(rest)); i >= 0 {
		b.WriteByte("\"\\/\b\f\n\r\t"[i])
		r.at += 2
		return true
	}
	unit, ok := hexUnit(rest)
	if !ok {
		return false
	}
	r.at += 6
	if utf16.IsSurrogate(unit) && strings.HasPrefix(r.text[r.at:], `\`) {
		if low, ok := hexUnit(r.text[r.at+1:]); ok {
			if whole := utf16.DecodeRune(unit, low); whole != utf8.RuneError {
				unit = whole
				r.at += 6
			}
		}
	}
	b.WriteRune(unit) // half of a pair is written as U+FFFD
	return true
}

func first(text string) byte {
	if text == "" {
		return 0
	}
	return text[0]
}

// hexUnit reads the uXXXX that text begins with.
func hexUnit(text string) (rune, bool) {
	if len(text) < 5 || text[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(text[1:5], 16, 16)
	return rune(n), err == nil
}
