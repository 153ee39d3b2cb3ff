//go:build !amd64 || purego

package wire

import (
	"encoding/binary"
	"unsafe"
)

// marksOf looks at groups of 64 bytes of text, and notes for each in one word of dst which of them are quotes, backslashes and
// control characters, the first byte in the lowest bit.
func marksOf(dst *uint64, text *byte, groups int) {
	words, data := unsafe.Slice(dst, groups), unsafe.Slice(text, 64*groups)
	for i := range words {
		group := (*[64]byte)(data[64*i:])
		words[i] = 0
		for j := 0; j < 64; j += 8 {
			if w := binary.LittleEndian.Uint64(group[j:]); special(w) != 0 {
				words[i] |= exactly(w) << j
			}
		}
	}
}

// exactly has a bit for each of eight bytes that is special.
func exactly(w uint64) uint64 {
	// Each sum has the high bit of a byte set unless that byte is zero, or below the space.
	quote, backslash := w^'"'*each, w^'\\'*each
	none := (quote&^high + ^uint64(high) | quote) & (backslash&^high + ^uint64(high) | backslash) & (w&^high + (0x80-' ')*each | w)
	// The product brings the bits of eight bytes together in the highest one.
	return ^none & high >> 7 * 0x0102040810204080 >> 56
}

// special has the high bit of the first byte set that is a quote, a backslash or a control character, and none where there is no
// such byte. Those of later bytes mean nothing.
func special(w uint64) uint64 {
	// With the bit 2 turned over, control characters stay below the space, and the quote takes its place.
	low, backslash := w^2*each, w^'\\'*each
	return ((low-(' '+1)*each)&^low | (backslash-each)&^backslash) & high
}
