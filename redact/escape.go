package redact

import (
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
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '\\')
		if i < 0 {
			return false
		}
		// Where escapes are, more are near: from here on eight bytes at a time, until there is none in them.
		for at += i; at+9 <= len(text); at += 8 {
			slashes := bytesOf(load8(text, at), '\\')
			if slashes == 0 {
				break
			}
			next := load8(text, at+1)
			twos := slashes & bytesOf(next, '\\')
			// Of four in a row, three or more lie in this word or in the next, in either order of bytes.
			if slashes&(bytesOf(next, '/')|bytesOf(next, 'u'))|twos&(twos>>8) != 0 && x.hidesWithin(text, at, at+8) {
				return true
			}
		}
		if at+9 > len(text) {
			return x.hidesWithin(text, at, len(text))
		}
	}
}

// bytesOf returns a word with a bit in each byte of word that is c, and maybe in others.
func bytesOf(word uint64, c byte) uint64 {
	const ones = 0x0101010101010101
	word ^= ones * uint64(c)
	return (word - ones) &^ word & (ones << 7)
}

// hidesWithin is hides for the escapes that begin in text[from:to].
func (x *index) hidesWithin(text string, from, to int) bool {
	for ; from < to && from+1 < len(text); from++ {
		if text[from] != '\\' {
			continue
		}
		switch text[from+1] {
		case '/':
			if x.used['/'] {
				return true
			}
		case 'u':
			if x.wide {
				return true
			}
			if from+6 > len(text) {
				continue
			}
			if u, ok := unit(text[from+2 : from+6]); ok && u < utf8.RuneSelf && (x.used[u] || u == '\\') {
				return true
			}
		case '\\':
			// The backslash of an escape is in a form of all that needs one.
			if x.used['\\'] && slashRun(text, from) >= deepRun {
				return true
			}
		}
	}
	return false
}

// slashRun returns how many backslashes are in a row with the one at, up to deepRun on each side.
func slashRun(text string, at int) int {
	from, to := at, at+1
	for from > 0 && at-from < deepRun && text[from-1] == '\\' {
		from--
	}
	for to < len(text) && to-at < deepRun && text[to] == '\\' {
		to++
	}
	return to - from
}

// unit reads the four digits of a `\u` escape.
func unit(digits string) (rune, bool) {
	var u rune
	for i := range 4 {
		c := digits[i]
		switch {
		case c >= '0' && c <= '9':
			u = u<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			u = u<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			u = u<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return u, true
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

// unescape appends text with its escapes carried out. A backslash that begins none stays.
func unescape(dst []byte, text string) []byte {
	dst = slices.Grow(dst, len(text)) // no escape is shorter than what it stands for
	for at := 0; at < len(text); {
		run := 0
		for run < 16 && at+run < len(text) && text[at+run] != '\\' {
			run++ // most runs between escapes are too short for a search to pay
		}
		if run == 16 {
			if run = strings.IndexByte(text[at:], '\\'); run < 0 {
				run = len(text) - at
			}
		}
		dst = append(dst, text[at:at+run]...)
		if at += run; at == len(text) {
			break
		}
		r, size := escape(text[at:])
		if size == 0 {
			r, size = '\\', 1
		}
		if r < utf8.RuneSelf {
			dst = append(dst, byte(r))
		} else {
			dst = utf8.AppendRune(dst, r)
		}
		at += size
	}
	return dst
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
