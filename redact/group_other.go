//go:build !amd64 || purego

package redact

import (
	"encoding/binary"
	"unsafe"
)

// escapesOf looks at 65 bytes of text. It gives a bit for each of the first 64 that is a backslash, that of the first byte being the
// lowest, and one for each of these that stands before a `/` or `u`.
func escapesOf(text *byte) (slashes, special uint64) {
	group := unsafe.Slice(text, groupSize+1)
	for i := 0; i < groupSize; i += 8 {
		if bytesOf(binary.LittleEndian.Uint64(group[i:]), '\\') == 0 {
			continue
		}
		for j := i; j < i+8; j++ {
			if group[j] == '\\' {
				slashes |= 1 << j
				if next := group[j+1]; next == '/' || next == 'u' {
					special |= 1 << j
				}
			}
		}
	}
	return slashes, special
}
