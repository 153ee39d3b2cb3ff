package mcp

import (
	"bytes"
	"errors"
	"net/textproto"
	"strconv"
	"strings"

	"mcp-gateway/internal/wire"
)

const (
	// schemaDepth bounds how deep a schema is walked for the header keyword.
	schemaDepth = 64
	// maxHeaderParams bounds how many of a tool's arguments ride in headers.
	maxHeaderParams = 64
)

// A HeaderParam is an argument of a tool that also rides in an HTTP header.
type HeaderParam struct {
	Header  string   // Mcp-Param-*, in net/http's canonical form
	Path    []string // of property names, from the arguments' root
	Integer bool     // compared as a number
}

// HeaderParams finds the arguments that a tool's input schema wants in headers. An error says why the schema's use of
// the keyword is invalid, which makes the whole tool invalid over HTTP (2026-07-28, Streamable HTTP: x-mcp-header).
func HeaderParams(schema []byte) ([]HeaderParam, error) {
	if !mayHoldKeyword(schema) {
		return nil, nil
	}
	root, err := wire.ParseObject(schema)
	if err != nil {
		return nil, nil
	}
	w := paramWalk{}
	if err := w.properties(root, nil, 0); err != nil {
		return nil, err
	}
	total, err := countKeyword(root, 0)
	if err != nil {
		return nil, err
	}
	if total != len(w.found) {
		return nil, errors.New("x-mcp-header stands where only a property reached through properties alone may have it")
	}
	return w.found, nil
}

// mayHoldKeyword spares almost every schema the walk. A keyword written with escapes counts, too.
func mayHoldKeyword(schema []byte) bool {
	return bytes.Contains(schema, []byte(HeaderKeyword)) || bytes.Contains(schema, []byte(`\u`))
}

type paramWalk struct{ found []HeaderParam }

func (w *paramWalk) properties(schema wire.Object, path []string, depth int) error {
	if depth > schemaDepth {
		return errors.New("the schema nests too deep to look for x-mcp-header")
	}
	properties, ok := schema.Object("properties")
	if !ok {
		return nil
	}
	for name, raw := range properties.All() {
		property, err := wire.ParseObject(raw)
		if err != nil {
			continue // true and false are schemas as well
		}
		here := append(path[:len(path):len(path)], name)
		if value, ok := property.Value(HeaderKeyword); ok {
			if err := w.add(property, value, here); err != nil {
				return err
			}
		}
		if err := w.properties(property, here, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *paramWalk) add(property wire.Object, value []byte, path []string) error {
	name, ok := wire.Unquote(value)
	if !ok || !token(name) {
		return errors.New("x-mcp-header is not a header name")
	}
	kind, _ := property.String("type")
	if kind != "string" && kind != "integer" && kind != "boolean" {
		return errors.New("x-mcp-header stands on a property that is not a string, an integer or a boolean")
	}
	if len(w.found) == maxHeaderParams {
		return errors.New("more properties have an x-mcp-header than a request has room for")
	}
	header := textproto.CanonicalMIMEHeaderKey(HeaderParamPrefix + name)
	for _, p := range w.found {
		if p.Header == header {
			return errors.New("two properties have the same x-mcp-header")
		}
	}
	w.found = append(w.found, HeaderParam{Header: header, Path: path, Integer: kind == "integer"})
	return nil
}

// token follows RFC 9110, section 5.6.2.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// dataKeywords hold values, not schemas: what looks like the keyword in them is none.
var dataKeywords = map[string]bool{"default": true, "const": true, "enum": true, "examples": true}

// nameKeywords hold schemas by names that the author chose.
var nameKeywords = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true}

func countKeyword(schema wire.Object, depth int) (int, error) {
	if depth > schemaDepth {
		return 0, errors.New("the schema nests too deep to look for x-mcp-header")
	}
	total := 0
	for name, raw := range schema.All() {
		if name == HeaderKeyword {
			total++
			continue
		}
		if dataKeywords[name] || !mayHoldKeyword(raw) {
			continue
		}
		for _, child := range subschemas(name, raw) {
			n, err := countKeyword(child, depth+1)
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return total, nil
}

// subschemas are the objects right below a keyword's value that can be schemas.
func subschemas(keyword string, raw []byte) []wire.Object {
	var candidates [][]byte
	switch {
	case len(raw) > 0 && raw[0] == '[':
		candidates, _ = wire.Elements(raw, len(raw))
	case nameKeywords[keyword]:
		if o, err := wire.ParseObject(raw); err == nil {
			for _, value := range o.All() {
				candidates = append(candidates, value)
			}
		}
	default:
		candidates = [][]byte{raw}
	}
	var out []wire.Object
	for _, c := range candidates {
		if o, err := wire.ParseObject(c); err == nil {
			out = append(out, o)
		}
	}
	return out
}

// WithoutHeaderKeyword is the schema without the keyword at any place, and every other byte as it was. It reports false for a schema
// that nests too deep to be sure.
func WithoutHeaderKeyword(schema []byte) ([]byte, bool) {
	s := stripper{}
	stripped := s.strip("", schema, 0)
	return stripped, !s.tooDeep
}

type stripper struct{ tooDeep bool }

// strip is the value of a keyword without the header keyword in it.
func (s *stripper) strip(keyword string, raw []byte, depth int) []byte {
	if len(raw) == 0 || dataKeywords[keyword] || !mayHoldKeyword(raw) {
		return raw
	}
	if depth > 2*schemaDepth {
		s.tooDeep = true
		return raw
	}
	switch raw[0] {
	case '[':
		elements, ok := wire.Elements(raw, len(raw))
		if !ok {
			return raw
		}
		out := []byte{'['}
		for i, e := range elements {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, s.strip("", e, depth+1)...)
		}
		return append(out, ']')
	case '{':
		o, err := wire.ParseObject(raw)
		if err != nil {
			return raw
		}
		names := nameKeywords[keyword]
		return o.Rewrite(func(name string, value []byte) []byte {
			switch {
			case names:
				return s.strip("", value, depth+1)
			case name == HeaderKeyword:
				return nil
			}
			return s.strip(name, value, depth+1)
		})
	}
	return raw
}

// Value is the header value for the argument in arguments. It reports false where the argument is absent or null, or
// is none of the types that ride in a header.
func (p HeaderParam) Value(arguments wire.Object) (string, bool) {
	raw, ok := p.lookup(arguments)
	if !ok {
		return "", false
	}
	switch raw[0] {
	case '"':
		s, ok := wire.Unquote(raw)
		return EncodeHeader(s), ok
	case 't', 'f':
		return string(raw), true
	case 'n', '{', '[':
		return "", false
	}
	if n, ok := integer(string(raw)); ok {
		return strconv.FormatInt(n, 10), true
	}
	return string(raw), true
}

// Agrees reports whether the values of the header, as they came, say the same as the argument: one value for an
// argument that is there, none for one that is not.
func (p HeaderParam) Agrees(values []string, arguments wire.Object) bool {
	want, present := p.Value(arguments)
	if !present {
		return len(values) == 0
	}
	if len(values) != 1 {
		return false
	}
	got, ok := DecodeHeader(values[0])
	if !ok {
		return false
	}
	if p.Integer {
		a, okA := integer(got)
		b, okB := integer(want)
		return okA && okB && a == b
	}
	decoded, _ := DecodeHeader(want)
	return got == decoded
}

func (p HeaderParam) lookup(o wire.Object) ([]byte, bool) {
	for i, name := range p.Path {
		if i == len(p.Path)-1 {
			return o.Value(name)
		}
		var ok bool
		if o, ok = o.Object(name); !ok {
			return nil, false
		}
	}
	return nil, false
}

// integer reads a JSON number without a fractional part, within the range that every reader keeps exactly.
func integer(s string) (int64, bool) {
	const max = 1<<53 - 1
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && s[0] != '+' {
		return n, n >= -max && n <= max
	}
	if strings.Trim(s, "0123456789+-.eE") != "" || s == "" || strings.IndexByte("-0123456789", s[0]) < 0 {
		return 0, false // what is a number to Go and to nobody else
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != float64(int64(f)) || f > max || f < -max {
		return 0, false
	}
	return int64(f), true
}
