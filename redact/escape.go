package redact

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"
)

// maxViews is how often text is unescaped and matched again. Forms are as JSON in a string of JSON has them: with four
// more levels, six are seen through. Results that are themselves quoted results have three.
const maxViews = 4

// maxScratch bounds the buffers that wait for the next text, in bytes.
const maxScratch = 4 << 20

var scratch = sync.Pool{New: func() any { return new([]byte) }}

// find appends each place of text at which a form stands, as it is or behind escapes. It allocates nothing where there
// is none.
func (x *index) find(text string, found []span) []span {
	found = x.match(text, found)
	if x.hides(text) {
		found = x.findBehind(text, found, maxViews)
	}
	return found
}

// findBehind appends the places at which a form stands once text is unescaped.
func (x *index) findBehind(text string, found []span, views int) []span {
	buffer := scratch.Get().(*[]byte)
	defer func() {
		if cap(*buffer) <= maxScratch {
			scratch.Put(buffer)
		}
	}()
	*buffer = unescape((*buffer)[:0], text)
	// The view lives no longer than this call, during which nobody else has the buffer.
	view := unsafe.String(unsafe.SliceData(*buffer), len(*buffer))
	inView := x.match(view, nil)
	if views > 1 && x.hides(view) {
		inView = x.findBehind(view, inView, views-1)
	}
	if len(inView) == 0 {
		return found
	}
	return appendTranslated(found, text, inView)
}

// deepRun is how many backslashes in a row tell of an escape that is escaped more often than any form shows: a newline
// has four at the third level, all else has more.
const deepRun = 4

// hides reports whether text has an escape that no form shows as it is, so that one may stand behind it: `\/`, `\u` of a
// character that forms are made of, or one of the third level and deeper. It also sees those that are escaped themselves.
func (x *index) hides(text string) bool {
	at := 0
	for {
		i := strings.IndexByte(text[at:], '\\')
		if i < 0 {
			return false
		}
		// Where escapes are, more are near: from here on a group at a time, until there is none in it.
		for at += i; ; at += groupSize {
			if at+groupSize >= len(text) {
				return x.hidesWithin(text, at, len(text))
			}
			slashes, some := escapesOf(unsafe.StringData(text[at:]))
			if slashes == 0 {
				break
			}
			// Of four in a row, three or more begin in this group or in the next.
			twos := slashes >> 1
			if text[at+groupSize] == '\\' {
				twos |= 1 << (groupSize - 1)
			}
			twos &= slashes
			for some |= twos & (twos >> 1); some != 0; some &= some - 1 {
				if x.hidesAt(text, at+bits.TrailingZeros64(some)) {
					return true
				}
			}
		}
	}
}

// groupSize is how many bytes escapesOf looks at.
const groupSize = 64

// bytesOf returns a word with a bit in each byte of word that is c, and maybe in others.
func bytesOf(word uint64, c byte) uint64 {
	const ones = 0x0101010101010101
	word ^= ones * uint64(c)
	return (word - ones) &^ word & (ones << 7)
}

// hidesWithin is hides for the escapes that begin in text[from:to].
func (x *index) hidesWithin(text string, from, to int) bool {
	for ; from < to && from+1 < len(text); from++ {
		if x.hidesAt(text, from) {
			return true
		}
	}
	return false
}

// hidesAt is hides for an escape that begins at a place before the last.
func (x *index) hidesAt(text string, at int) bool {
	if text[at] != '\\' {
		return false
	}
	switch text[at+1] {
	case '/':
		return x.used['/']
	case 'u':
		if x.wide {
			return true
		}
		if at+6 > len(text) || text[at+2] != '0' || text[at+3] != '0' {
			return false
		}
		u, ok := unit(text[at+2 : at+6])
		return ok && u < utf8.RuneSelf && (x.used[u] || u == '\\')
	case '\\':
		// What an escape is of has one in some form, with the same byte behind the backslashes, unless that is an escape itself.
		run, end := slashRun(text, at)
		return run >= deepRun && (x.ends || end == len(text) || text[end] == '\\' || x.after[text[end]])
	}
	return false
}

// maxRun is how many backslashes in a row are looked at for what follows them.
const maxRun = 64

// slashRun returns how many backslashes are in a row with the one at, up to deepRun before it and maxRun in all, and where they end.
func slashRun(text string, at int) (run, end int) {
	from, end := at, at+1
	for from > 0 && at-from < deepRun && text[from-1] == '\\' {
		from--
	}
	for end < len(text) && end-from < maxRun && text[end] == '\\' {
		end++
	}
	return end - from, end
}

// digits are the values of hexadecimal digits, and more than any for other bytes.
var digits = func() (values [256]uint8) {
	for i := range values {
		values[i] = 0xff
	}
	for i := range 16 {
		values["0123456789abcdef"[i]], values["0123456789ABCDEF"[i]] = uint8(i), uint8(i)
	}
	return values
}()

// unit reads the four digits of a `\u` escape.
func unit(text string) (rune, bool) {
	a, b, c, d := digits[text[0]], digits[text[1]], digits[text[2]], digits[text[3]]
	if a|b|c|d > 15 {
		return 0, false
	}
	return rune(a)<<12 | rune(b)<<8 | rune(c)<<4 | rune(d), true
}

// escape reads the JSON escape that text begins with: what it stands for and how long it is. The two halves of a
// character are one escape. The size is 0 where text begins with none.
func escape(text string) (rune, int) {
	if len(text) < 2 || text[0] != '\\' {
		return 0, 0
	}
	switch c := text[1]; c {
	case '"', '\\', '/':
		return rune(c), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return 0, 0
	}
	if len(text) < 6 {
		return 0, 0
	}
	u, ok := unit(text[2:6])
	switch {
	case !ok:
		return 0, 0
	case u < 0xd800 || u > 0xdfff:
		return u, 6
	case u < 0xdc00 && len(text) >= 12 && text[6] == '\\' && text[7] == 'u':
		if low, ok := unit(text[8:12]); ok && low >= 0xdc00 && low <= 0xdfff {
			return 0x10000 + (u-0xd800)<<10 + low - 0xdc00, 12
		}
	}
	return utf8.RuneError, 6
}

// short are the characters that the escapes of two stand for.
var short = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape appends text with its escapes carried out. A backslash that begins none stays.
func unescape(dst []byte, text string) []byte {
	dst = slices.Grow(dst, len(text)+8) // no escape is shorter than what it stands for; whole words are written
	out := dst[len(dst) : len(dst)+len(text)+8]
	from := unsafe.Slice(unsafe.StringData(text), len(text))
	at, n := 0, 0
	for at < len(text) {
		if at+8 <= len(text) {
			word := binary.LittleEndian.Uint64(from[at:])
			binary.LittleEndian.PutUint64(out[n:], word)
			run := bits.TrailingZeros64(bytesOf(word, '\\')) / 8
			at, n = at+run, n+run
			if run == 8 {
				continue
			}
		} else if text[at] != '\\' {
			out[n] = text[at]
			at, n = at+1, n+1
			continue
		}
		if at+1 < len(text) && short[text[at+1]] != 0 {
			out[n] = short[text[at+1]]
			at, n = at+2, n+1
			continue
		}
		r, size := escape(text[at:])
		if size == 0 {
			r, size = '\\', 1
		}
		n += utf8.EncodeRune(out[n:], r)
		at += size
	}
	return dst[:len(dst)+n]
}

// appendTranslated appends the spans of text's view as spans of text: whole escapes, and what replaces them escaped
// once more.
func appendTranslated(found []span, text string, inView []span) []span {
	inView = sorted(inView)
	at, viewAt := 0, 0 // the same place in text and in its view, where an escape or a run without one begins
	translate := func(place int, end bool) int {
		for {
			run := strings.IndexByte(text[at:], '\\')
			if run < 0 {
				run = len(text) - at
			}
			if place <= viewAt+run {
				return at + place - viewAt
			}
			r, size := escape(text[at+run:])
			if size == 0 {
				r, size = '\\', 1
			}
			width := utf8.RuneLen(r)
			switch inside := place < viewAt+run+width; {
			case inside && end:
				return at + run + size
			case inside:
				return at + run
			}
			at, viewAt = at+run+size, viewAt+run+width
		}
	}
	for _, s := range inView {
		from := translate(s.from, false)
		found = append(found, span{from, translate(s.to, true), jsonEscape(s.with)})
	}
	return found
}

// around returns the bounds of the escape that a place between two bytes of text would split, or the place itself twice.
func around(text string, at int) (from, to int) {
	// From afar, so that the two halves of a character are met as one.
	for back := min(11, at); back > 0; back-- {
		if text[at-back] != '\\' {
			continue
		}
		slashes := 1
		for at-back-slashes >= 0 && text[at-back-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			continue // an escaped backslash, which begins nothing
		}
		if _, size := escape(text[at-back:]); size > back {
			return at - back, at - back + size
		}
	}
	return at, at
}
