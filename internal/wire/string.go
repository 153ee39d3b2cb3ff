package wire

import (
	"math"
	"math/bits"
)

// skipString reads the string whose opening quote is before i.
func (s *scanner) skipString(i int) int {
	if end := s.nextMark(i); end < len(s.data) && s.data[end] == '"' {
		return end + 1
	}
	return s.skipLong(i)
}

// nextMark is the place of the next mark in the group of i, and beyond the text where that is not known.
func (s *scanner) nextMark(i int) int {
	if at := uint(i - s.from); at < s.seen {
		if marks := s.marks[at/64%(window/64)] >> (at % 64); marks != 0 {
			return i + bits.TrailingZeros64(marks)
		}
	}
	return math.MaxInt
}

// skipLong reads the rest of a string, from i on, by its marks.
func (s *scanner) skipLong(i int) int {
	d := s.data
	for i < len(d) {
		at := uint(i - s.from)
		if at >= s.seen {
			s.look(i)
			continue
		}
		group, end := i-int(at%64), i
		// No bit moves, since the place of the next mark is what all waits for.
		for marks := s.marks[at/64%(window/64)] &^ (1<<(at%64) - 1); marks != 0; {
			n := bits.TrailingZeros64(marks)
			if i = group + n; i >= len(d) || d[i] < ' ' {
				return ^i
			}
			if d[i] == '"' {
				return i + 1
			}
			size := escape(d, i)
			if size == 0 {
				return ^i
			}
			end = i + size
			marks &= marks - 1
			marks &^= 2 << (n % 64) // what the backslash stands before
		}
		i = max(group+64, end)
	}
	return ^len(d)
}

// escape is the length of the escape at i, 0 where that is none.
func escape(d []byte, i int) int {
	if i+1 < len(d) && simple[d[i+1]] {
		return 2
	}
	if len(d)-i < 6 || d[i+1] != 'u' || !hex[d[i+2]] || !hex[d[i+3]] || !hex[d[i+4]] || !hex[d[i+5]] {
		return 0
	}
	return 6
}

// window is how many bytes are looked at ahead.
const window = 4096

// look finds the marks from i on.
func (s *scanner) look(i int) {
	ahead := s.data[i:min(len(s.data), i+window)]
	s.from, s.seen = i, uint(len(ahead))
	whole := len(ahead) / 64
	if whole > 0 {
		marksOf(&s.marks[0], &ahead[0], whole)
	}
	if rest := ahead[64*whole:]; len(rest) > 0 {
		// The zeros after the end are marks.
		var group [64]byte
		copy(group[:], rest)
		marksOf(&s.marks[whole], &group[0], 1)
	}
}

const (
	each = 0x0101010101010101
	high = 0x80 * each
)

// simple are the characters that a backslash makes an escape of two with, hex those that write a number.
var simple, hex = setOf(`"\/bfnrt`), setOf("0123456789abcdefABCDEF")

func setOf(characters string) (set [256]bool) {
	for _, c := range []byte(characters) {
		set[c] = true
	}
	return set
}
