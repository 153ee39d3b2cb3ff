package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"mcp-gateway/redact"
)

func scrubber(texts ...string) *redact.Scrubber {
	s := redact.NewScrubber()
	for _, text := range texts {
		s.Add(redact.NewSecret(text))
	}
	return s
}

func TestScrub(t *testing.T) {
	for _, row := range []struct {
		name    string
		secrets []string
		in, out string
	}{
		{"nothing known", nil, "text", "text"},
		{"plain", []string{"abcdefgh"}, "x abcdefgh y abcdefgh", "x [redacted] y [redacted]"},
		{"adjoining", []string{"abcdefgh"}, "abcdefghabcdefgh", "[redacted][redacted]"},
		{"other case", []string{"abcdefgh"}, "ABCDEFGH", "ABCDEFGH"},
		{"floor", []string{"abcdefg"}, "abcdefg", "abcdefg"},
		{"longest first", []string{"abcdefgh", "abcdefghijkl"}, "abcdefghijkl abcdefgh", "[redacted] [redacted]"},
		{"overlap", []string{"abcdefgh", "fghijklm"}, "-abcdefghijklm-", "-[redacted]-"},
		{"overlap of one", []string{"abababab"}, "xababababababy", "x[redacted]y"},
		{"within", []string{"abcdefghijkl", "cdefghij"}, "abcdefghijkl", "[redacted]"},
		{"JSON quote", []string{`abc"def\gh`}, `{"a":"abc\"def\\gh"}`, `{"a":"[redacted]"}`},
		{"JSON slash", []string{"abcd/efgh"}, `"abcd\/efgh" "abcd/efgh"`, `"[redacted]" "[redacted]"`},
		{"JSON for HTML", []string{"abcd<efgh&"}, "abcd\\u003cefgh\\u0026", "[redacted]"},
		{"JSON in ASCII", []string{"abcdé😀efg"}, "abcd\\u00e9\\ud83d\\ude00efg", "[redacted]"},
		{"JSON newline", []string{"abcd\nefgh"}, `"abcd\nefgh"`, `"[redacted]"`},
		{"escape before", []string{"nabcdefg"}, `"x\nabcdefg"`, `"x[redacted]"`},
		{"escaped backslash before", []string{"nabcdefg"}, `"x\\nabcdefg"`, `"x\\[redacted]"`},
		{"u escape split", []string{"0e9abcdef"}, `"x\u00e9abcdef"`, `"x[redacted]"`},
		{"no escape", []string{"0e9abcdef"}, `"xu00e9abcdef"`, `"xu0[redacted]"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := scrubber(row.secrets...)
			if got := s.String(row.in); got != row.out {
				t.Errorf("String = %s, want %s", got, row.out)
			}
			in := []byte(row.in)
			if got := s.Bytes(in); string(got) != row.out || string(in) != row.in {
				t.Errorf("Bytes = %s, want %s; the input is %s", got, row.out, in)
			}
			if s.Holds(row.in) != (row.in != row.out) {
				t.Errorf("Holds = %t", s.Holds(row.in))
			}
		})
	}
}

func TestBytesReturnsTheSameSlice(t *testing.T) {
	s := scrubber("abcdefgh")
	in := []byte("nothing here")
	if got := s.Bytes(in); &got[0] != &in[0] {
		t.Error("a copy was made")
	}
	if n := testing.AllocsPerRun(100, func() { s.Bytes(in) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := s.Bytes(nil); got != nil {
		t.Errorf("nil became %v", got)
	}
}

func TestScrubWhileAdding(t *testing.T) {
	s := redact.NewScrubber()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			secret := fmt.Sprintf("concurrent-%d", i)
			for range 20 {
				s.Add(redact.NewSecret(secret))
				if got := s.String("x " + secret); got != "x "+redact.Mask {
					t.Errorf("after Add: %s", got)
				}
			}
		})
	}
	wg.Wait()
}

// The secret is gone in every spelling, and JSON stays JSON.
func FuzzScrubJSON(f *testing.F) {
	f.Add("abcdefgh", "x", "y")
	f.Add(`ab"\/cdé😀`, `\`, "n")
	f.Add("u00e9abcd", `\u00e9`, `"`)
	f.Add("nabcdefgh", "\n", "")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if len(secret) < 8 || len(secret) > 100 || strings.ToValidUTF8(secret, "") != secret {
			return
		}
		doc, err := json.Marshal(map[string]string{"k": before + secret + after})
		if err != nil {
			t.Fatal(err)
		}
		s := scrubber(secret)
		for _, in := range [][]byte{doc, bytes.ReplaceAll(doc, []byte("/"), []byte(`\/`))} {
			out := s.Bytes(in)
			var back map[string]string
			if strings.Contains(`{"k":"`, secret) || strings.HasPrefix(secret, `"`) || strings.HasSuffix(secret, `"`) || strings.ContainsAny(secret, `{}:`) {
				continue // such a secret, as it is, also matches the document's own punctuation
			}
			if err := json.Unmarshal(out, &back); err != nil {
				t.Fatalf("%q in %s became %s: %v", secret, in, out, err)
			}
			if strings.Contains(back["k"], secret) {
				t.Fatalf("%q is left in %s", secret, out)
			}
		}
		if got := s.String(secret); strings.Contains(got, secret) && !strings.Contains(redact.Mask, secret) {
			t.Fatalf("%q is left in %q", secret, got)
		}
	})
}
