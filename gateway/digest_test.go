package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"mcp-gateway/internal/wire"
)

func TestDigest(t *testing.T) {
	sum := func(t *testing.T, arguments string) [32]byte {
		t.Helper()
		d, err := digest(params(t, `{"arguments":`+arguments+`,"_meta":{"x":`+arguments+`}}`), "_meta")
		if err != nil {
			t.Fatalf("%s: %v", arguments, err)
		}
		return d
	}
	same := [][]string{
		{`{}`, ` { } `},
		{`[]`, "[\n]"},
		{`{"a":1,"b":[true,null]}`, ` {"b" : [ true , null ] , "\u0061" : 1 } `},
		{`{"a":{"x":1,"y":2}}`, `{"a":{"y":2,"x":1}}`},
		{`"é\"\\/\b\f\n\r\t😀"`, `"\u00e9\u0022\u005c\/\u0008\u000c\u000a\u000D\u0009\ud83d\uDE00"`},
		{`1`, `1.0`, `10e-1`, `0.1e1`, `1E+0`, `100e-2`, `1e00`},
		{`0`, `-0`, `0.0`, `-0e7`, `0e-999999999999999999999`},
		{`-120`, `-1.2e2`, `-12e1`},
		{`12345678901234567890`, `1234567890123456789e1`},
		{`1e999999999`, `10e999999998`, `0.1e1000000000`},
		{`"\ud83d"`, `"\uD83D"`},
	}
	seen := map[[32]byte]string{}
	for _, group := range same {
		want := sum(t, group[0])
		for _, text := range group[1:] {
			if sum(t, text) != want {
				t.Errorf("%s and %s differ", group[0], text)
			}
		}
		if other, ok := seen[want]; ok {
			t.Errorf("%s and %s are one", other, group[0])
		}
		seen[want] = group[0]
	}
	for _, text := range []string{
		`{"a":{}}`, `{"a":[]}`, `{"a":null}`, `[{}]`, `[[]]`, `[null]`, `null`, `true`, `false`, `""`, `"null"`, `"1"`, `[1]`, `-1`, `10`, `1e-1`,
		`12345678901234567891`, `1e999999998`, `1e9999999999999999999999`, `1e9999999999999999999998`, `-1e999999999`, `[1,2]`, `[2,1]`, `[12]`, `[[1],2]`, `[1,[2]]`,
		`{"a":1}`, `{"b":1}`, `{"a":1,"b":2}`, `{"a":2,"b":1}`, `{"a":{"b":1}}`, `["a","b"]`, `["ab"]`, `["a,b"]`, `{"":""}`, `"\ud83e"`, `"�"`, `"\ud83d\ud83d"`, `"\u0000"`, `"0"`,
	} {
		d := sum(t, text)
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s are one", other, text)
		}
		seen[d] = text
	}
}

func TestDigestIsBounded(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	for text, good := range map[string]bool{deep(maxDigestDepth): true, deep(maxDigestDepth + 2): false} {
		o, err := wire.ParseObject([]byte(`{"arguments":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := digest(o); (err == nil) != good {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
	for _, text := range []string{``, `{`, `[`, `[1`, `[1 2]`, `{"a"`, `{"a" 1}`, `{"a":1 "b":2}`, `{a:1}`, `"`, `"\`, `"\u12`, `"\u12zz"`, `tru`, `x`} {
		d := digester{text: []byte(text)}
		if err := d.value(0); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// What a client writes anew is the same call, and whatever is not JSON ends the walk.
func FuzzDigest(f *testing.F) {
	for _, text := range []string{`{"a":[1.50,-0,1e5,"\u00e9\ud83d"],"b":{"c":null}}`, `[[{}]]`, `"\`, `1e`, `-`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = (&digester{text: text}).value(0)
		m, err := wire.ParseRequest([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":` + string(text) + `}}`))
		if err != nil {
			return
		}
		want, err := digest(m.Params)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		anew, ok := rewritten(m.Params.Raw())
		if !ok {
			return
		}
		o, err := wire.ParseObject(anew)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := digest(o); err != nil || got != want {
			t.Errorf("%s and %s differ: %v", m.Params.Raw(), anew, err)
		}
	})
}

// rewritten is the text as a client that keeps numbers as they are writes it: members sorted, no white space, other escapes. It reports
// false where that client would lose something: half a surrogate pair.
func rewritten(text []byte) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	out, err := json.Marshal(v)
	return out, err == nil && !bytes.ContainsRune(out, utf8.RuneError) && !bytes.Contains(out, []byte(`\ufffd`))
}
