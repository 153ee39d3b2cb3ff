package wire

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// An Object is the text of a JSON object and the place of each member in it. The zero Object is no object at
// all, which is not the same as the empty one. It shares the bytes that it was read from.
type Object struct {
	raw     []byte
	members []member
	later   *[]Edit // edits that have yet to be carried out, each of another name; never written to, nil is none
}

type member struct {
	nameStart, nameEnd   uint32 // with the quotes
	valueStart, valueEnd uint32
	escaped              bool // the name is written with escapes
}

// IsZero reports whether o is no object at all.
func (o Object) IsZero() bool { return o.raw == nil }

// Raw is the object's text. It must not be changed. That of an object which Later gave is made anew each time.
func (o Object) Raw() []byte {
	if o.later != nil {
		return o.Edited()
	}
	return o.raw
}

// Size is the length of Raw, or a little more.
func (o Object) Size() int {
	size, _ := o.sizeOf(o.allEdits(nil, nil))
	return size
}

// Len is the number of members.
func (o Object) Len() int {
	return len(o.settled().members)
}

// Value is the text of the first member with that name, without the white space around it. It must not be changed.
func (o Object) Value(name string) ([]byte, bool) {
	if o.later != nil {
		for _, e := range *o.later {
			if e.Name == name {
				return e.Value, e.Value != nil
			}
		}
	}
	for _, m := range o.members {
		if o.named(m, name) {
			return o.raw[m.valueStart:m.valueEnd], true
		}
	}
	return nil, false
}

// Has reports whether a member has that name.
func (o Object) Has(name string) bool {
	_, ok := o.Value(name)
	return ok
}

// Unique reports whether each name stands at most once. A reply may repeat names; one whose reader has to
// choose between two values of a member says nothing that can be relied on.
func (o Object) Unique(names ...string) bool {
	o = o.settled()
	for _, name := range names {
		seen := false
		for _, m := range o.members {
			if o.named(m, name) {
				if seen {
					return false
				}
				seen = true
			}
		}
	}
	return true
}

// String is the decoded text of a member that is a string.
func (o Object) String(name string) (string, bool) {
	raw, ok := o.Value(name)
	if !ok {
		return "", false
	}
	return Unquote(raw)
}

// Equals reports whether the member is a string whose decoded text is s. It allocates nothing for one written without escapes.
func (o Object) Equals(name, s string) bool {
	raw, ok := o.Value(name)
	if !ok || len(raw) < 2 || raw[0] != '"' {
		return false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1:len(raw)-1]) == s
	}
	decoded, ok := Unquote(raw)
	return ok && decoded == s
}

// Object is a member that is an object, with the places of its own members.
func (o Object) Object(name string) (Object, bool) {
	raw, ok := o.Value(name)
	if !ok || len(raw) == 0 || raw[0] != '{' {
		return Object{}, false
	}
	child, err := ParseObject(raw)
	return child, err == nil
}

// All yields each member's decoded name and the text of its value, in order.
func (o Object) All() func(yield func(name string, value []byte) bool) {
	o = o.settled()
	return func(yield func(string, []byte) bool) {
		for _, m := range o.members {
			name, _ := Unquote(o.raw[m.nameStart:m.nameEnd])
			if !yield(name, o.raw[m.valueStart:m.valueEnd]) {
				return
			}
		}
	}
}

func (o Object) named(m member, name string) bool {
	quoted := o.raw[m.nameStart:m.nameEnd]
	if !m.escaped {
		return string(quoted[1:len(quoted)-1]) == name
	}
	var buf [64]byte
	decoded, err := jsontext.AppendUnquote(buf[:0], quoted)
	return err == nil && string(decoded) == name
}

// Unquote decodes a JSON string; a lone surrogate becomes U+FFFD. It reports false for any other value.
func Unquote(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), utf8.Valid(raw)
	}
	decoded, err := jsontext.AppendUnquote(nil, raw)
	// A lone surrogate is reported and decoded to U+FFFD all the same.
	return string(decoded), err == nil || bytes.ContainsRune(decoded, utf8.RuneError)
}

// AppendString appends s to dst as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			// AppendQuote reports invalid UTF-8 and has then replaced it.
			dst, _ = jsontext.AppendQuote(dst, s)
			return dst
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// Int is the value of a JSON integer that is written without fraction and exponent.
func Int(raw []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

// Elements are the texts of a JSON array's elements. It reports false for any other value, and for more
// elements than max.
func Elements(raw []byte, max int) ([][]byte, bool) {
	s := borrow(raw, maxReplyDepth, false)
	defer s.free()
	if s.peek() != '[' {
		return nil, false
	}
	s.at++
	var out [][]byte
	for s.peek() != ']' {
		if len(out) > 0 {
			if s.peek() != ',' {
				return nil, false
			}
			s.at++
		}
		value, err := s.value()
		if err != nil || len(out) == max {
			return nil, false
		}
		out = append(out, value)
	}
	return out, true
}
