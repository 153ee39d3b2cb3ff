package wire

import (
	"encoding/binary"
	"math/bits"
)

// space is the place of the next token at or after i.
func space(d []byte, i int) int {
	for i < len(d) && d[i] <= ' ' && (d[i] == ' ' || d[i] == '\n' || d[i] == '\r' || d[i] == '\t') {
		i++
	}
	return i
}

func skipLiteral(d []byte, i int, text string) int {
	if len(d)-i < len(text) || string(d[i:i+len(text)]) != text {
		return ^i
	}
	return i + len(text)
}

func skipNumber(d []byte, i int) int {
	if i < len(d) && d[i] == '-' {
		i++
	}
	whole := i
	if i = skipDigits(d, i); i == whole || d[whole] == '0' && i > whole+1 {
		return ^i
	}
	if i < len(d) && d[i] == '.' {
		fraction := i + 1
		if i = skipDigits(d, fraction); i == fraction {
			return ^i
		}
	}
	if i < len(d) && d[i]|0x20 == 'e' {
		if i++; i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		exponent := i
		if i = skipDigits(d, i); i == exponent {
			return ^i
		}
	}
	return i
}

func skipDigits(d []byte, i int) int {
	for i < len(d) && d[i]-'0' <= 9 {
		i++
	}
	return i
}

// skipString reads the string whose opening quote is before i.
func skipString(d []byte, i int) int {
	for {
		for len(d)-i >= 8 {
			if marks := special(binary.LittleEndian.Uint64(d[i:])); marks != 0 {
				i += bits.TrailingZeros64(marks) >> 3
				goto marked
			}
			for i += 8; len(d)-i >= 16; i += 16 {
				if next := d[i : i+16]; special(binary.LittleEndian.Uint64(next))|special(binary.LittleEndian.Uint64(next[8:])) != 0 {
					break
				}
			}
		}
		for i < len(d) && d[i] >= ' ' && d[i] != '"' && d[i] != '\\' {
			i++
		}
		if i == len(d) {
			return ^i
		}
	marked:
		if d[i] == '"' {
			return i + 1
		}
		if d[i] < ' ' {
			return ^i
		}
		for ; i < len(d) && d[i] == '\\'; i += 2 {
			switch {
			case i+1 == len(d):
				return ^i
			case d[i+1] != 'u':
				if !simple[d[i+1]] {
					return ^i
				}
			case len(d)-i < 6 || !hex[d[i+2]] || !hex[d[i+3]] || !hex[d[i+4]] || !hex[d[i+5]]:
				return ^i
			default:
				i += 4
			}
		}
	}
}

const (
	each = 0x0101010101010101
	high = 0x80 * each
)

// special has the high bit of the first byte set that is a quote, a backslash or a control character, and none where there is no
// such byte. Those of later bytes mean nothing.
func special(w uint64) uint64 {
	// With the bit 2 turned over, control characters stay below the space, and the quote takes its place.
	low, backslash := w^2*each, w^'\\'*each
	return ((low-(' '+1)*each)&^low | (backslash-each)&^backslash) & high
}

// simple are the characters that a backslash makes an escape of two with, hex those that write a number.
var simple, hex = setOf(`"\/bfnrt`), setOf("0123456789abcdefABCDEF")

func setOf(characters string) (set [256]bool) {
	for _, c := range []byte(characters) {
		set[c] = true
	}
	return set
}
