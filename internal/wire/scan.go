package wire

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// maxReplyDepth bounds how deep arrays and objects may nest where nothing else does.
const maxReplyDepth = 10_000

// A scanner reads one JSON text (RFC 8259) and checks it on the way: lone surrogate escapes pass, since common servers and clients write
// them when a text is cut inside an emoji, and whether its bytes are UTF-8 is not looked at.
//
// It is this package's own because nearly all of a large message is only passed on: it checks text at six times the speed of
// jsontext's decoder, which a test holds it against.
type scanner struct {
	data   []byte
	at     int
	depth  uint // that is still allowed
	unique bool
	names  []place // of the objects that are being read; kept where they must be unique

	// What skip is in: by the depth that was left, whether it is an object, and where names must be unique, what is known of those.
	objects [maxReplyDepth/64 + 1]uint64
	inner   []opened

	// Where the next quotes, backslashes and control characters are: a bit for each of the seen bytes at from and after it.
	from  int
	seen  uint
	marks [window / 64]uint64

	repeated, tooDeep bool // why it has failed, where it is not that the text is no JSON
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// borrow gives a pooled scanner of data, which free takes back. With unique no object may have a name twice.
func borrow(data []byte, depth uint, unique bool) *scanner {
	s := scanners.Get().(*scanner)
	s.data, s.depth, s.unique = data, depth, unique
	return s
}

func (s *scanner) free() {
	s.forget()
	scanners.Put(s)
}

// forget makes s as good as new.
func (s *scanner) forget() {
	clear(s.inner)
	s.data, s.at, s.seen = nil, 0, 0
	s.names, s.inner = s.names[:0], s.inner[:0]
	s.repeated, s.tooDeep = false, false
}

// peek is the first byte of the next token, 0 at the end.
func (s *scanner) peek() byte {
	if s.at = space(s.data, s.at); s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

// end checks that nothing but white space is left.
func (s *scanner) end() error {
	if s.peek(); s.at < len(s.data) {
		return &SyntaxError{Code: CodeParse, Reason: "something follows the message", Offset: int64(s.at)}
	}
	return nil
}

// moved goes on at i, which is the end of something, or where it is negative the complement of the place where it fails.
func (s *scanner) moved(i int) bool {
	if i < 0 {
		s.at = ^i
		return false
	}
	s.at = i
	return true
}

// value reads the next value and gives its text, which shares the data.
func (s *scanner) value() ([]byte, error) {
	s.peek()
	start := s.at
	if !s.moved(s.skip(start)) {
		return nil, s.fail()
	}
	return s.data[start:s.at:s.at], nil
}

// object reads the next value, which must be an object, and notes its members in room or beyond it.
func (s *scanner) object(room []member) (Object, error) {
	if s.peek() != '{' {
		if !s.moved(s.skip(s.at)) {
			return Object{}, s.fail()
		}
		return Object{}, &SyntaxError{Code: CodeInvalidRequest, Reason: "the value is not an object", Offset: int64(s.at)}
	}
	start := s.at
	o, ok := s.open()
	if !ok {
		return Object{}, s.fail()
	}
	for s.moved(s.next(&o, s.at)) && !o.closed {
		m := member{
			nameStart: uint32(o.nameStart - start), nameEnd: uint32(o.nameEnd - start), escaped: escaped(s.data[o.nameStart:o.nameEnd]),
		}
		s.peek()
		m.valueStart = uint32(s.at - start)
		if !s.moved(s.skip(s.at)) {
			return Object{}, s.fail()
		}
		m.valueEnd = uint32(s.at - start)
		room = append(room, m)
	}
	if !o.closed {
		return Object{}, s.fail()
	}
	return Object{raw: s.data[start:s.at:s.at], members: room}, nil
}

// A place is that of a string, with its quotes.
type place struct{ start, end uint32 }

// An opened is an object that is being read, up to the name of its current member.
type opened struct {
	nameStart, nameEnd int // with the quotes
	closed             bool
	base               int                 // in names
	escapes            bool                // one of its names is written with some
	many               map[string]struct{} // what the names say, once they cannot be compared as written or are too many for that
}

// open reads the brace of an object.
func (s *scanner) open() (opened, bool) {
	if s.depth == 0 {
		s.tooDeep = true
		return opened{}, false
	}
	s.depth--
	s.at++
	return opened{base: len(s.names)}, true
}

// next reads the name of o's next member at i and the colon, or o's end, where closed is set, and gives the place after that. All methods
// that do give the complement of the place where they fail.
func (s *scanner) next(o *opened, i int) int {
	d := s.data
	if i = space(d, i); i == len(d) {
		return ^i
	}
	if d[i] == '}' {
		s.depth++
		if s.unique {
			s.names = s.names[:o.base]
		}
		o.closed = true
		return i + 1
	}
	if o.nameEnd > 0 {
		if d[i] != ',' {
			return ^i
		}
		i = space(d, i+1)
	}
	if i == len(d) || d[i] != '"' {
		return ^i
	}
	o.nameStart = i
	if i = s.skipString(i + 1); i < 0 {
		return i
	}
	o.nameEnd = i
	if s.unique && s.repeats(o) {
		s.repeated = true
		return ^o.nameStart
	}
	if i = space(d, i); i == len(d) || d[i] != ':' {
		return ^i
	}
	return i + 1
}

// fewNames is how many names are compared with each other.
const fewNames = 16

// repeats reports whether o has had its current name before, and notes it.
func (s *scanner) repeats(o *opened) bool {
	now := place{uint32(o.nameStart), uint32(o.nameEnd)}
	name := s.data[now.start:now.end]
	o.escapes = o.escapes || escaped(name)
	before := s.names[o.base:]
	switch {
	case o.many != nil:
		return o.add(unquoted(name))
	case len(before) < fewNames && !o.escapes:
		for _, other := range before {
			if other.end-other.start == now.end-now.start && string(s.data[other.start:other.end]) == string(name) {
				return true
			}
		}
		s.names = append(s.names, now)
		return false
	}
	o.many = make(map[string]struct{}, 2*fewNames)
	for _, other := range before {
		o.add(unquoted(s.data[other.start:other.end]))
	}
	return o.add(unquoted(name))
}

// add reports whether name is one of many already, and adds it.
func (o *opened) add(name []byte) bool {
	_, ok := o.many[string(name)]
	if !ok {
		o.many[string(name)] = struct{}{}
	}
	return ok
}

// escaped reports whether a string is written with escapes.
func escaped(quoted []byte) bool { return bytes.IndexByte(quoted, '\\') >= 0 }

// unquoted is what a valid string says; a lone surrogate becomes U+FFFD.
func unquoted(quoted []byte) []byte {
	if !escaped(quoted) {
		return quoted[1 : len(quoted)-1]
	}
	decoded, _ := jsontext.AppendUnquote(nil, quoted)
	return decoded
}

// fail is the error where the scanner stands.
func (s *scanner) fail() error {
	e := &SyntaxError{Code: CodeParse, Reason: "the message is not valid JSON", Offset: int64(s.at)}
	switch {
	case s.repeated:
		e.Code, e.Reason = CodeInvalidRequest, "a name stands twice in one object"
	case s.tooDeep:
		e.Reason = "the message nests too deep"
	}
	return e
}
