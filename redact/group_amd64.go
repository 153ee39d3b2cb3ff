//go:build !purego

package redact

// escapesOf looks at 65 bytes of text. It gives a bit for each of the first 64 that is a backslash, that of the first byte being the
// lowest, and one for each of these that stands before a `/` or `u`, or maybe another byte that no escape has.
//
// It is in assembly since text that quotes code is full of escapes, nearly all of which hide nothing. SSE2 is all that it needs, which
// every amd64 has.
//
//go:noescape
func escapesOf(text *byte) (slashes, special uint64)
