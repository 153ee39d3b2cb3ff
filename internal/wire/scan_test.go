package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// reference reads data as jsontext does: the end of its one value, and what is wrong with it.
func reference(data []byte, unique bool) (end int, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(!unique))
	if _, err := d.ReadValue(); err != nil {
		return 0, err
	}
	end = int(d.InputOffset())
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return 0, errors.New("something follows")
	}
	return end, nil
}

// scan is the same by the scanner.
func scan(data []byte, unique bool) (end int, err error) {
	s := borrow(data, maxReplyDepth, unique)
	defer s.free()
	if _, err := s.value(); err != nil {
		return 0, err
	}
	end = s.at
	return end, s.end()
}

func compare(t *testing.T, data []byte) {
	for _, unique := range []bool{false, true} {
		if unique && !utf8.Valid(data) {
			continue // a request is looked at for that first
		}
		wantEnd, wantErr := reference(data, unique)
		end, err := scan(data, unique)
		if (err == nil) != (wantErr == nil) || err == nil && end != wantEnd {
			t.Fatalf("%.200q, unique %v: ends at %d with %v; jsontext at %d with %v", data, unique, end, err, wantEnd, wantErr)
		}
		syntax, ok := errors.AsType[*SyntaxError](err)
		if ok && (syntax.Code == CodeInvalidRequest) != errors.Is(wantErr, jsontext.ErrDuplicateName) {
			t.Fatalf("%.200q, unique %v: %v, jsontext %v", data, unique, err, wantErr)
		}
	}
}

// manyNames is an object with n names, the last as given.
func manyNames(n int, last string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n - 1 {
		fmt.Fprintf(&b, `"k%d":[{"k0":%d}],`, i, i)
	}
	return b.String() + last + `:0}`
}

var scanned = []string{
	`{}`, `[]`, ` { } `, "\t[\r\n]\n", `{"a":1,"b":[true,false,null,-0.5e+10,"x"]}`, `[1,]`, `{"a":1,}`, `{,}`, `[,]`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{a:1}`, `{"a":1 "b":2}`, `[1 2]`,
	`""`, `"`, `"\`, `"\"`, `"\""`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\ud800"`, `"\uDFFF\ud83d\ude00"`, "\"\x1f\"", "\"\x7f\"", "\"\xff\xfe\"", `"12345678"`, `"1234567`, `"1234567\n890"`, "\"1234567\n\"",
	`0`, `-0`, `-`, `01`, `1.`, `.5`, `1e`, `1e+`, `1E-5`, `1.5.5`, `0x1`, `1a`, `+1`, `tru`, `true1`, `nul`, `nulll`, `NaN`, `//`, "\ufeff{}", `{}x`, `{} {}`, "", " ", "\x00", "{\x00}",
	`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"\ud800":1,"\udfff":2}`, `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}`, `{"a":{"b":1,"b":2}}`, `{"":1,"":2}`, `[[[[[[`, `]`, `}`, `{"a":[}`, `[{]`,
	manyNames(40, `"k3"`), manyNames(40, `"last"`), manyNames(17, `"k0"`), manyNames(18, `"k\u0030"`), manyNames(18, `"k16"`),
	strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999), strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001),
}

func TestScannerAgreesWithJSONText(t *testing.T) {
	for _, text := range scanned {
		compare(t, []byte(text))
	}
	// Each byte at each place of a word, in a string and outside.
	for c := range 256 {
		for at := range 17 {
			text := []byte(`"0123456789abcdef"`)
			text[1+at%16] = byte(c)
			compare(t, text)
			compare(t, append([]byte(strings.Repeat(" ", at)), byte(c)))
		}
	}
}

// The ends of what is looked at in one go, a group of 64 bytes or a window, are nothing to a string.
func TestScannerAgreesAcrossGroups(t *testing.T) {
	specials := []string{`"`, `\n"`, `\\"`, `\\\"`, `\u00e9"`, `\u00e"`, `\x"`, "\x1f\"", "\x00\"", ``, `\`, `\\`, `\u00e`, `","more"]`}
	var lengths []int
	for n := range 24 {
		lengths = append(lengths, n, 52+n, window-12+n, 2*window-12+n)
	}
	for _, n := range lengths {
		plain := strings.Repeat("x", n)
		for _, special := range specials {
			for _, text := range []string{`["` + plain + special, `["` + plain + special + `]`, `{"a\n":["` + plain + special + `,{"b":"` + plain + `"}]}`} {
				compare(t, []byte(text))
			}
		}
	}
}

// Numbers of each length, and with each byte in the place of a digit, whatever ends them.
func TestScannerAgreesOnNumbers(t *testing.T) {
	const padding = `,"padding","padding"]`
	for _, number := range []string{"1", "12", "1234567", "12345678", "123456789", "0.1", "1.1234567", "1.12345678", "1234567.7654321", "0", "-1", "1e5"} {
		for _, end := range []string{"", " ", "]", "}", ":", ".", "x", "\""} {
			compare(t, []byte("["+number+end+padding))
			compare(t, []byte(`{"a":`+number+end+`,"padding":"padding"}`))
		}
		for at := range number {
			for c := range 256 {
				text := []byte("[" + number + padding)
				text[1+at] = byte(c)
				compare(t, text)
			}
		}
	}
}

// A scanner that has been used knows nothing of the next text.
func TestAUsedScannerStartsAnew(t *testing.T) {
	s := new(scanner)
	for range 3 {
		for _, text := range []string{`["` + strings.Repeat(`x\"`, window) + `"`, `{"a":{"b":1,"c":[{"b":1,"d":`, strings.Repeat("[", 9)} {
			s.data, s.depth, s.unique = []byte(text), 8, true
			if _, err := s.value(); err == nil {
				t.Errorf("%.20s was taken", text)
			}
			s.forget()
		}
		for _, text := range []string{`["` + strings.Repeat("y", 200) + `"]`, `{"a":{"b":1},"c":{"b":1}}`} {
			s.data, s.depth, s.unique = []byte(text), 8, true
			if value, err := s.value(); err != nil || string(value) != text {
				t.Errorf("%s: %v", text, err)
			}
			s.forget()
		}
	}
}

// Each byte is the same in each place of a group.
func TestMarks(t *testing.T) {
	for c := range 256 {
		marked := c < ' ' || c == '"' || c == '\\'
		for at := range 64 {
			text := bytes.Repeat([]byte{'x'}, 128)
			text[at], text[64+(at+1)%64] = byte(c), byte(c)
			var got, want [3]uint64
			if marked {
				want = [3]uint64{1 << at, 1 << ((at + 1) % 64)}
			}
			if marksOf(&got[0], &text[0], 2); got != want {
				t.Fatalf("byte %#x at %d: %b", c, at, got)
			}
		}
	}
	// Neighbours do not borrow from each other.
	var got [1]uint64
	text := bytes.Repeat([]byte("\"#\\]\x1f \xff\x80"), 8)
	if marksOf(&got[0], &text[0], 1); got[0] != 0x1515151515151515 {
		t.Errorf("%x", got[0])
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range scanned {
		f.Add([]byte(text))
	}
	f.Fuzz(compare)
}

var words = strings.Fields("the gateway passes what a server says byte for byte and its caller knows whether a call ran")

// prose is a string without escapes, code one with many, rows an array of objects: each of about that size, and no two parts alike.
func prose(size int) []byte {
	random, out := rand.New(rand.NewPCG(1, 2)), []byte{'"'}
	for len(out) < size {
		out = append(append(out, words[random.IntN(len(words))]...), ' ')
	}
	return append(out, '"')
}

func code(size int) []byte {
	random, out := rand.New(rand.NewPCG(3, 4)), []byte{'"'}
	for len(out) < size {
		word := words[random.IntN(len(words))]
		out = fmt.Appendf(out, `if len(%s) \u003e %d {\n\treturn errors.New(\"no %s\")\n}\n\n`, word, random.IntN(1000), word)
	}
	return append(out, '"')
}

func rows(size int) []byte {
	random, out := rand.New(rand.NewPCG(5, 6)), []byte{'['}
	for len(out) < size {
		out = fmt.Appendf(out, `{"id":%d,"name":"%s-%s","score":%.3f,"done":%t,"parent":null,"tags":["%s"],"at":{"line":%d,"column":%d}},`, random.IntN(100_000),
			words[random.IntN(len(words))], words[random.IntN(len(words))], random.Float64(), random.IntN(3) == 0, words[random.IntN(len(words))], random.IntN(5000), random.IntN(120))
	}
	return append(out, `{}]`...)
}

func BenchmarkScan(b *testing.B) {
	for name, data := range map[string][]byte{
		"text": prose(1 << 20), "escapes": code(1 << 20), "structured": rows(1 << 20),
	} {
		for _, unique := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/unique=%v", name, unique), func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if _, err := scan(data, unique); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(name+"/jsontext", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := reference(data, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
