package wire

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	// Lone surrogate escapes pass: common servers and clients write them when a text is cut inside an emoji. Bytes that are
	// not UTF-8 are looked for apart, since the option allows both.
	requestOptions = jsontext.AllowInvalidUTF8(true)
	replyOptions   = joinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
)

// joinOptions makes one Options of several, so that a reset of a pooled decoder need not.
func joinOptions(opts ...jsontext.Options) jsontext.Options {
	return jsontext.NewDecoder(bytes.NewReader(nil), opts...).Options()
}

// A decoder borrows a pooled jsontext.Decoder for one text.
type decoder struct {
	dec  jsontext.Decoder
	buf  bytes.Buffer
	data []byte
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

func borrow(data []byte, opts jsontext.Options) *decoder {
	d := decoders.Get().(*decoder)
	d.data = data
	d.buf = *bytes.NewBuffer(data)
	d.dec.Reset(&d.buf, opts)
	return d
}

func (d *decoder) free() {
	d.data = nil
	d.buf = bytes.Buffer{}
	d.dec.Reset(&d.buf)
	decoders.Put(d)
}

// value reads the next value and gives its text, which shares the decoder's data.
func (d *decoder) value() ([]byte, error) {
	v, err := d.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(d.dec.InputOffset())
	return d.data[end-len(v) : end : end], nil
}

// object reads the next value, which must be an object, and notes its members in room or beyond it.
func (d *decoder) object(room []member) (Object, error) {
	t, err := d.dec.ReadToken()
	if err != nil {
		return Object{}, d.fail(err)
	}
	if t.Kind() != '{' {
		return Object{}, &SyntaxError{Code: CodeInvalidRequest, Reason: "the value is not an object", Offset: d.dec.InputOffset()}
	}
	start := int(d.dec.InputOffset()) - 1
	for d.dec.PeekKind() != '}' {
		name, err := d.value()
		if err != nil {
			return Object{}, d.fail(err)
		}
		nameEnd := int(d.dec.InputOffset())
		value, err := d.value()
		if err != nil {
			return Object{}, d.fail(err)
		}
		valueEnd := int(d.dec.InputOffset())
		room = append(room, member{
			nameStart: uint32(nameEnd - len(name) - start), nameEnd: uint32(nameEnd - start),
			valueStart: uint32(valueEnd - len(value) - start), valueEnd: uint32(valueEnd - start),
			escaped: bytes.IndexByte(name, '\\') >= 0,
		})
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return Object{}, d.fail(err)
	}
	end := int(d.dec.InputOffset())
	return Object{raw: d.data[start:end:end], members: room}, nil
}

// end checks that nothing but white space is left.
func (d *decoder) end() error {
	if _, err := d.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return &SyntaxError{Code: CodeParse, Reason: "something follows the message", Offset: d.dec.InputOffset()}
	}
	return nil
}

// fail keeps the offset and drops the text, which quotes the message.
func (d *decoder) fail(err error) error {
	e := &SyntaxError{Code: CodeParse, Reason: "the message is not valid JSON", Offset: d.dec.InputOffset()}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e.Offset = s.ByteOffset
		if errors.Is(err, jsontext.ErrDuplicateName) {
			e.Code, e.Reason = CodeInvalidRequest, "a name stands twice in one object"
		}
	}
	return e
}

// deeper reports whether data nests deeper than max. Counting the brackets settles almost every message.
func deeper(data []byte, max int) bool {
	if bytes.Count(data, []byte{'['})+bytes.Count(data, []byte{'{'}) <= max {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > max {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
