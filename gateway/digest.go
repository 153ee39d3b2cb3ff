package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"mcp-gateway/internal/wire"
)

// digest is the same for every way to write the members of an object but those left out: in any order, with any escapes and
// white space, and with numbers that are equal whatever their form. A client may write a request anew for each round.
func digest(o wire.Object, leftOut ...string) ([sha256.Size]byte, error) {
	d := digester{}
	var members []digested
	for name, value := range o.All() {
		if slices.Contains(leftOut, name) {
			continue
		}
		d.text, d.at, d.out = value, 0, d.out[:0]
		if err := d.value(0); err != nil {
			return [sha256.Size]byte{}, err
		}
		members = append(members, digested{name, sha256.Sum256(d.out)})
	}
	return sha256.Sum256(appendMembers(nil, members)), nil
}

// maxDigestDepth is that of requests, which have been read before.
const maxDigestDepth = wire.MaxRequestDepth

var errDigest = errors.New("params cannot be read")

// A digester walks a valid JSON text once, and writes what it means so that no two meanings are written alike. The members of
// an object are digested one by one, since they have to be put in order. It gives up on a text that is not valid.
type digester struct {
	text []byte
	at   int
	out  []byte
}

type digested struct {
	name string
	sum  [sha256.Size]byte
}

func appendMembers(dst []byte, members []digested) []byte {
	slices.SortFunc(members, func(a, b digested) int { return strings.Compare(a.name, b.name) })
	dst = binary.BigEndian.AppendUint64(append(dst, '{'), uint64(len(members)))
	for _, m := range members {
		dst = append(appendField(dst, m.name), m.sum[:]...)
	}
	return dst
}

// next is the first byte of what comes after white space, 0 at the end.
func (d *digester) next() byte {
	for ; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take passes over c where it is next.
func (d *digester) take(c byte) bool {
	if d.next() != c {
		return false
	}
	d.at++
	return true
}

func (d *digester) value(depth int) error {
	if depth > maxDigestDepth {
		return errDigest
	}
	switch c := d.next(); {
	case c == '{':
		d.at++
		return d.object(depth + 1)
	case c == '[':
		d.at++
		return d.array(depth + 1)
	case c == '"':
		s, err := d.string()
		d.out = append(binary.BigEndian.AppendUint64(append(d.out, '"'), uint64(len(s))), s...)
		return err
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(d.text[d.at:], []byte(word)) {
			d.at += len(word)
			d.out = append(d.out, word[0])
			return nil
		}
	}
	return errDigest
}

func (d *digester) array(depth int) error {
	d.out = append(d.out, '[')
	for more := !d.take(']'); more; more = !d.take(']') {
		if err := d.value(depth); err != nil {
			return err
		}
		if !d.take(',') && d.next() != ']' {
			return errDigest
		}
	}
	d.out = append(d.out, ']')
	return nil
}

func (d *digester) object(depth int) error {
	var members []digested
	start := len(d.out)
	for more := !d.take('}'); more; more = !d.take('}') {
		if d.next() != '"' {
			return errDigest
		}
		name, err := d.string()
		if err != nil || !d.take(':') {
			return errDigest
		}
		if err := d.value(depth); err != nil {
			return err
		}
		members = append(members, digested{string(name), sha256.Sum256(d.out[start:])})
		d.out = d.out[:start]
		if !d.take(',') && d.next() != '}' {
			return errDigest
		}
	}
	d.out = appendMembers(d.out, members)
	return nil
}

// string is the text of the string that begins here. Half a surrogate pair is kept as the three bytes that UTF-8 would have
// for it, so that it is like nothing else.
func (d *digester) string() ([]byte, error) {
	d.at++
	rest := d.text[d.at:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil, errDigest
	}
	if bytes.IndexByte(rest[:end], '\\') < 0 {
		d.at += end + 1
		return rest[:end], nil
	}
	var out []byte
	for d.at < len(d.text) {
		c := d.text[d.at]
		d.at++
		switch c {
		case '"':
			return out, nil
		case '\\':
			var err error
			if out, err = d.escape(out); err != nil {
				return nil, err
			}
		default:
			out = append(out, c)
		}
	}
	return nil, errDigest
}

// escape appends what the escape after a backslash stands for.
func (d *digester) escape(out []byte) ([]byte, error) {
	if d.at == len(d.text) {
		return nil, errDigest
	}
	c := d.text[d.at]
	d.at++
	switch c {
	case 'b':
		return append(out, '\b'), nil
	case 'f':
		return append(out, '\f'), nil
	case 'n':
		return append(out, '\n'), nil
	case 'r':
		return append(out, '\r'), nil
	case 't':
		return append(out, '\t'), nil
	case 'u':
	default:
		return append(out, c), nil
	}
	r, ok := d.unit(d.at)
	if !ok {
		return nil, errDigest
	}
	d.at += 4
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(out, r), nil
	}
	if bytes.HasPrefix(d.text[d.at:], []byte(`\u`)) {
		if low, ok := d.unit(d.at + 2); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				d.at += 6
				return utf8.AppendRune(out, pair), nil
			}
		}
	}
	return append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f), nil
}

// unit is the UTF-16 unit whose four digits stand at i.
func (d *digester) unit(i int) (rune, bool) {
	if i+4 > len(d.text) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(d.text[i:i+4]), 16, 16)
	return rune(n), err == nil
}

// number writes sign, digits and exponent, without zeros at either end of the digits: 1, 1.0 and 10e-1 are one. Nothing is ever
// expanded. Minus zero is zero, since common clients write it so.
func (d *digester) number() error {
	start := d.at
	for d.at < len(d.text) && bytes.IndexByte([]byte("+-.0123456789eE"), d.text[d.at]) >= 0 {
		d.at++
	}
	text := d.text[start:d.at]
	sign := byte('+')
	if text[0] == '-' {
		sign, text = '-', text[1:]
	}
	mantissa, power := text, []byte(nil)
	if e := bytes.IndexAny(text, "eE"); e >= 0 {
		mantissa, power = text[:e], text[e+1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	digits := append(append(make([]byte, 0, len(mantissa)), whole...), fraction...)
	digits = bytes.TrimLeft(digits, "0")
	significant := bytes.TrimRight(digits, "0")
	if len(significant) == 0 {
		d.out = append(d.out, '0')
		return nil
	}
	d.out = append(binary.BigEndian.AppendUint64(append(d.out, sign), uint64(len(significant))), significant...)
	d.out = appendExponent(d.out, power, int64(len(digits)-len(significant)-len(fraction)))
	return nil
}

// appendExponent appends power plus shift. A power beyond what any reader takes is kept as it is written, beside the shift:
// two ways to write such a number are two numbers.
func appendExponent(dst, power []byte, shift int64) []byte {
	if len(power) == 0 {
		power = []byte{'0'}
	}
	if n, err := strconv.ParseInt(string(power), 10, 62); err == nil {
		return binary.BigEndian.AppendUint64(append(dst, 'e'), uint64(n+shift))
	}
	dst = binary.BigEndian.AppendUint64(append(dst, 'E'), uint64(shift))
	return appendField(dst, string(power))
}
