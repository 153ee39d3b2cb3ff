//go:build !race

package redact_test

import (
	"strings"
	"testing"

	"mcp-gateway/redact"
)

// Nothing is allocated where nothing matches, escapes and almost-matches included.
func TestNoAllocations(t *testing.T) {
	s := scrubber("abcdefgh-secret", "pass/word-1", "geheim-äöü")
	s.Learn(redact.Known{Text: redact.NewSecret("v"), Name: "k"})
	for name, text := range map[string]string{
		"plain": `{"a":"` + strings.Repeat("nothing here ", 100) + `"}`, "escapes": `{"a":"` + strings.Repeat(`\u0061\/\n\u00e9 abcdefgh-`, 100) + `"}`,
		"deep": `{"a":"` + strings.Repeat(`\\\\n\\\\\\\" `, 100) + `"}`,
	} {
		in := []byte(text)
		if n := testing.AllocsPerRun(100, func() {
			if out, err := s.JSON(in, "code"); err != nil || &out[0] != &in[0] {
				t.Fatal("it was changed")
			}
			s.Bytes(in)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
