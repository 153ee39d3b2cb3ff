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

// skipAtom reads the number or literal at i.
func skipAtom(d []byte, i int) int {
	switch rest := d[i:]; rest[0] {
	case 't':
		if len(rest) >= 4 && string(rest[:4]) == "true" {
			return i + 4
		}
	case 'f':
		if len(rest) >= 5 && string(rest[:5]) == "false" {
			return i + 5
		}
	case 'n':
		if len(rest) >= 4 && string(rest[:4]) == "null" {
			return i + 4
		}
	default:
		return skipNumber(d, i)
	}
	return ^i
}

// shortNumber is the end of the number at i if that is a common one, of up to seven digits and as many after a point, and a comma or
// bracket ends it; else 0. Its branches do not depend on how many digits there are.
func shortNumber(d []byte, i int) int {
	if len(d)-i < 17 {
		return 0
	}
	n := digitsOf(binary.LittleEndian.Uint64(d[i:]))
	if n == 0 || n == 8 || d[i] == '0' && n > 1 {
		return 0
	}
	i += n
	if d[i] == '.' {
		n = digitsOf(binary.LittleEndian.Uint64(d[i+1:]))
		if n == 0 || n == 8 {
			return 0
		}
		i += n + 1
	}
	if c := d[i]; c == ',' || c == '}' || c == ']' {
		return i
	}
	return 0
}

// digitsOf is how many of eight bytes, from the first on, are digits.
func digitsOf(w uint64) int {
	w ^= '0' * each
	// Digits are 0 to 9 now, and stay below the high bit.
	return bits.TrailingZeros64((w+(0x80-10)*each|w)&high) / 8
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
