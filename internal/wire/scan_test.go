package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

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

func FuzzScanner(f *testing.F) {
	for _, text := range scanned {
		f.Add([]byte(text))
	}
	f.Fuzz(compare)
}

func BenchmarkScan(b *testing.B) {
	rows := "[" + strings.Repeat(`{"id":12345,"name":"web-7f9","ready":true,"load":[0.25,1.5,2],"note":null},`, 14_000)
	text, err := json.Marshal(strings.Repeat("if a < b && c > d {\n\treturn \"x\"\n}\n", 25_000))
	if err != nil {
		b.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"text":       []byte(`"` + strings.Repeat("The deployment web-7f9 has 3 of 3 replicas. ", 24_000) + `"`),
		"escapes":    text,
		"structured": []byte(rows[:len(rows)-1] + "]"),
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
