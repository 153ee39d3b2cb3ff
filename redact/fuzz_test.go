package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"mcp-gateway/redact"
)

// escapeAll writes each UTF-16 unit of text as an escape, in upper case where upper.
func escapeAll(text, digits string) string {
	var b strings.Builder
	unit := func(u rune) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(digits[u>>shift&15])
		}
	}
	for _, r := range text {
		if r > 0xffff {
			unit(0xd800 + (r-0x10000)>>10)
			unit(0xdc00 + (r-0x10000)&0x3ff)
			continue
		}
		unit(r)
	}
	return b.String()
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b[1 : len(b)-1])
}

// lowerHex makes the hex digits of percent-encoded text lower case.
func lowerHex(text string) string {
	b := []byte(text)
	for i := range b {
		if b[i] == '%' && i+2 < len(b) {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// written are the ways to write secret that the specification of redaction lists. The first are texts, which then stand in a
// JSON string; the others are the content of one already.
func written(secret string) (texts, contents []string) {
	component := strings.ReplaceAll(url.QueryEscape(secret), "+", "%20")
	texts = []string{
		secret, component, lowerHex(component), url.QueryEscape(secret), lowerHex(url.QueryEscape(secret)), url.PathEscape(secret),
		quoted(secret), escapeAll(secret, "0123456789abcdef"), strings.ReplaceAll(quoted(secret), "/", `\/`),
	}
	once := quoted(secret)
	contents = []string{
		once, strings.ReplaceAll(once, "/", `\/`), escapeAll(secret, "0123456789abcdef"), escapeAll(secret, "0123456789ABCDEF"),
		quoted(once), strings.ReplaceAll(quoted(strings.ReplaceAll(once, "/", `\/`)), "/", `\/`), quoted(escapeAll(secret, "0123456789ABCDEF")),
	}
	return texts, contents
}

// The texts and names that a reader finds in a JSON text, and those in JSON in its strings, which is as deep as the
// specification goes.
func readers(v any, list []string, inner bool) []string {
	switch v := v.(type) {
	case string:
		list = append(list, v)
		var decoded any
		if !inner && strings.ContainsAny(v, `"\`) && json.Unmarshal([]byte(`"`+v+`"`), &decoded) == nil {
			list = readers(decoded, list, true)
		}
	case json.Number:
		list = append(list, v.String())
	case []any:
		for _, e := range v {
			list = readers(e, list, inner)
		}
	case map[string]any:
		for name, e := range v {
			list = readers(e, readers(name, list, inner), inner)
		}
	}
	return list
}

func plantable(secret string) bool {
	return len(secret) >= 8 && len(secret) <= 100 && utf8.ValidString(secret) && !redact.Weak(secret) &&
		!strings.ContainsAny(secret, "[]X") && !strings.Contains("redacted", secret)
}

// A secret in any encoding of the list is in nothing that a reader gets, and JSON stays JSON.
func FuzzPlanted(f *testing.F) {
	f.Add("abcdefg8", "x", "y")
	f.Add(`ab"\/cdé😀`, `\`, "n")
	f.Add("u00e9abcd", "é", `"`)
	f.Add("nabcdef8", "\n", "")
	f.Add("p%20a+s/ =&", "%", "%41")
	f.Add("line one\nline two\t\x01", "\\n", "\U0001f600")
	f.Add(`","a":{`, `{`, `}`)
	f.Add("12345678901234567", "-", "1")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if !plantable(secret) || !utf8.ValidString(before+after) || strings.Contains(before+after, "[") || strings.Contains(before+after, "]") {
			return
		}
		s := scrubber(secret)
		texts, contents := written(secret)
		for _, text := range texts {
			contents = append(contents, quoted(text))
		}
		for _, content := range contents {
			check(t, s, secret, `{"`+quoted(before)+content+quoted(after)+`":0,"k":["`+quoted(before)+content+quoted(after)+`"]}`)
		}
		for skip := range 3 {
			for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
				checkBase64(t, s, secret, alphabet, []byte(strings.Repeat("~", skip)+secret+after))
			}
		}
		for _, text := range texts[:6] {
			if got := s.String(before + text + after); strings.Contains(got, text) {
				t.Fatalf("%q is left in the record %q", text, got)
			}
		}
	})
}

func check(t *testing.T, s *redact.Scrubber, secret, in string) {
	t.Helper()
	if !json.Valid([]byte(in)) {
		t.Fatalf("the test made %s", in)
	}
	out, err := s.JSON([]byte(in))
	if err != nil {
		t.Fatalf("%s: %v", in, err)
	}
	var v any
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%q in %s became %s: %v", secret, in, out, err)
	}
	texts, _ := written(secret)
	for _, read := range readers(v, nil, false) {
		for _, text := range texts[:6] {
			if strings.Contains(read, text) {
				t.Fatalf("%q is left in %q of %s, which was %s", text, read, out, in)
			}
		}
	}
}

func checkBase64(t *testing.T, s *redact.Scrubber, secret string, alphabet *base64.Encoding, plain []byte) {
	t.Helper()
	encoded := alphabet.EncodeToString(plain)
	out, err := s.JSON([]byte(`"` + encoded + `"`))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := alphabet.DecodeString(strings.Trim(string(out), `"`))
	if err != nil || len(decoded) != len(plain) {
		t.Fatalf("%s became %s, %d bytes for %d: %v", encoded, out, len(decoded), len(plain), err)
	}
	if bytes.Contains(decoded, []byte(secret)) {
		t.Fatalf("%q is left in %s", secret, out)
	}
}

// A body that no form of a secret is in is the same body, byte for byte; and whatever the body, JSON stays JSON.
func FuzzIdentity(f *testing.F) {
	f.Add(`{"a":"\u0061\/\\u0062","b":[1,2.50,1e999],"a":null}`)
	f.Add(`"~tok\u0065n-~s3cr3t"`)
	f.Add(`{"~key~":"value","x":"~pass\"word\n1~"}`)
	f.Add(`{"PIN":1234,"x":"PIN=123"}`)
	s := scrubber("~token-~s3cr3t", "~pass\"word\n1~", "~gehäim~12", "~a/b/c/d/e~")
	s.Learn(redact.Known{Text: redact.NewSecret("1~34"), Name: "PIN"}, redact.Known{Text: redact.NewSecret("us~r:p"), Userinfo: true})
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			s.String(text)
			return
		}
		out, err := s.JSON([]byte(text))
		if err != nil || !json.Valid(out) {
			t.Fatalf("%q became %q, %v", text, out, err)
		}
		clean := strings.NewReplacer("~", "-", "7e", "7f", "7E", "7F").Replace(text)
		for _, kept := range []string{clean, strings.ReplaceAll(clean, "n", `\n`)} {
			if !json.Valid([]byte(kept)) || base64Like(kept) {
				continue
			}
			if out, err := s.JSON([]byte(kept)); err != nil || string(out) != kept {
				t.Fatalf("%q became %q, %v", kept, out, err)
			}
		}
	})
}

// base64Like reports whether text could hold a secret of the test in Base64, which has no ~ to take out.
func base64Like(text string) bool {
	for _, core := range []string{"dG9rZW4t", "Rva2VuL", "b2tlbi1", "cGFzcyJ3", "Bhc3Mid", "YXNzIndv", "Z2Vow6Rp", "dlaMOka", "ZWjDpGlt", "YS9iL2Mv", "EvYi9jL", "L2IvYy9k", "dXN+cjpw", "dXN-cjpw"} {
		if strings.Contains(text, core) {
			return true
		}
	}
	return false
}
