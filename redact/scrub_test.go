package redact_test

import (
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

// nest is text as it stands in a string of JSON in a string of JSON, so many levels deep.
func nest(levels int, text string) string {
	for range levels {
		text = quoted(text)
	}
	return text
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
		{"half of a character", []string{"ude00abcd"}, `"x\ud83d\ude00abcd"`, `"x[redacted]"`},
		{"two in an escape", []string{`abcdefg\`, `ud83d\ude`}, `"abcdefg\ud83d\ude00x"`, `"[redacted]x"`},
		{"escape after", []string{`abcdefg\`}, `"abcdefg\n"`, `"[redacted]"`},
		{"u escape after", []string{`abcdefg\u00`}, `"abcdefg\u00e9x"`, `"[redacted]x"`},
		{"JSON twice", []string{`ab"cd\efgh`}, `"{\"a\": \"ab\\\"cd\\\\efgh\"}"`, `"{\"a\": \"[redacted]\"}"`},
		{"JSON of any depth", []string{`ab"cd\efgh`}, nest(3, `ab"cd\efgh`) + " " + nest(4, `ab"cd\efgh`) + " " + nest(6, `ab"cd\efgh`), "[redacted] [redacted] [redacted]"},
		{"newline of any depth", []string{"abcd\nefgh"}, nest(3, "abcd\nefgh") + " " + nest(4, "abcd\nefgh") + " " + nest(6, "abcd\nefgh"), "[redacted] [redacted] [redacted]"},
		{"u escapes of any depth", []string{"abcdefgh"}, nest(3, `abc\u0064efgh`), "[redacted]"},
		{"too deep", []string{`ab"cdefgh`}, nest(7, `ab"cdefgh`), nest(7, `ab"cdefgh`)},
		{"u escapes", []string{"abcdefgh"}, `"abc\u0064efgh \u0061\u0062\u0063\u0064\u0065\u0066\u0067\u0068"`, `"[redacted] [redacted]"`},
		{"u escapes twice", []string{"abcdefgh"}, `"{\"a\":\"abc\\u0064efgh\"}"`, `"{\"a\":\"[redacted]\"}"`},
		{"u escape of a u escape", []string{"abcdefgh"}, `"abc\u005cu0064efgh"`, `"[redacted]"`},
		{"slash twice", []string{"abcd/efgh"}, `"{\"a\":\"abcd\\/efgh\"}"`, `"{\"a\":\"[redacted]\"}"`},
		{"control as u escape", []string{"abcd\nefgh"}, `"abcd\u000aefgh abcd\u000Aefgh"`, `"[redacted] [redacted]"`},
		{"ASCII upper case", []string{"abcdé😀efg"}, "abcd\\u00E9\\uD83D\\uDE00efg", "[redacted]"},
		{"percent", []string{"ab cd/é&gh"}, "ab%20cd%2F%C3%A9%26gh ab%20cd%2f%c3%a9%26gh ab+cd%2F%C3%A9%26gh ab%20cd/%C3%A9&gh", "[redacted] [redacted] [redacted] [redacted]"},
		{"percent, not the other way", []string{"ab%2fcdef"}, "ab/cdef", "ab/cdef"},
		{"floor by form", []string{`a"b"c"d`}, `a"b"c"d a\"b\"c\"d`, `a"b"c"d [redacted]`},
		{"Base64", []string{"abcdefgh1"}, "YWJjZGVmZ2gx", "XXXXXXXXXXXX"},
		{"Base64 later", []string{"abcdefgh1"}, "eGFiY2RlZmdoMXg= eHhhYmNkZWZnaDF4eA==", "eGXXXXXXXXXXXXg= eHhXXXXXXXXXXXF4eA=="},
		{"Base64 for urls", []string{"\xfb\xff\xfe?>?>~~"}, "-__-Pz4_Pn5- +//+Pz4/Pn5+", "XXXXXXXXXXXX XXXXXXXXXXXX"},
		{"Base64 with slashes", []string{"?\xff\xff\xff\xff\xff\xff\xff?"}, `"P\/\/\/\/\/\/\/\/\/8\/"`, `"XXXXXXXXXXXX"`},
		{"not UTF-8", []string{"\xff\xfeabcdefg"}, "\xff\xfeabcdefg %FF%FEabcdefg", "[redacted] [redacted]"},
		{"not UTF-8 is no U+FFFD", []string{"\xff\xfe\xff\xfe\xff\xfe\xff\xfe"}, strings.Repeat(`\ufffd`, 8), strings.Repeat(`\ufffd`, 8)},
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

// A secret is gone from the moment it was made known, while others come and go.
func TestScrubWhileAdding(t *testing.T) {
	s := redact.NewScrubber()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			tokens := s.Tokens()
			defer tokens.Close()
			for j := range 20 {
				token := fmt.Sprintf("concurrent-%d-%d", i, j)
				tokens.Add(redact.NewSecret(token))
				if got := s.String("x " + token); got != "x "+redact.Mask {
					t.Errorf("after Add: %s", got)
				}
				if got, err := s.JSON([]byte(`["` + token + `"]`)); err != nil || string(got) != `["`+redact.Mask+`"]` {
					t.Errorf("after Add: %s, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestScrubberShowsNothing(t *testing.T) {
	s := scrubber("planted-1")
	tokens := s.Tokens()
	tokens.Add(redact.NewSecret("planted-2"))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, v := range []any{s, tokens, struct{ s *redact.Scrubber }{s}} {
			if shown := fmt.Sprintf(verb, v); strings.Contains(shown, "planted") || strings.Contains(shown, fmt.Sprintf("%x", "planted")) {
				t.Errorf("%s shows %s", verb, shown)
			}
		}
	}
}
