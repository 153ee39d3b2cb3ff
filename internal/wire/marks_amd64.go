//go:build !purego

package wire

// marksOf looks at groups of 64 bytes of text, and notes for each in one word of dst which of them are quotes, backslashes and
// control characters, the first byte in the lowest bit.
//
// It is in assembly since the end of a string is then where the next bit is, and what lies before costs next to nothing. SSE2 is all
// that it needs, which every amd64 has.
//
//go:noescape
func marksOf(dst *uint64, text *byte, groups int)
