package redact

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode/utf8"
)

// aloneForms returns the ways in which text may be written that are long enough to be replaced wherever they stand. The
// floor counts form by form.
func aloneForms(text string) []form {
	var list []form
	add := func(with string, written ...string) {
		for _, w := range written {
			if len(w) >= minAlone {
				list = append(list, form{text: w, to: len(w), with: with})
			}
		}
	}
	add(Mask, text)
	add(Mask, jsonForms(text)...)
	add(Mask, percentForms(text)...)
	add("", base64Forms(text)...)
	// What was sent percent-encoded, in a form or as Basic credential, may come back encoded as a whole.
	for _, sent := range []string{url.QueryEscape(text), url.PathEscape(text)} {
		if sent != text {
			add(Mask, percentForms(sent)...)
			add("", base64Forms(sent)...)
		}
	}
	return unique(list)
}

// jsonForms returns text as JSON strings hold it, and as they hold it where the text is JSON in a JSON string again. Text
// that is not UTF-8 has no such form but itself.
func jsonForms(text string) []string {
	list := []string{text}
	if !utf8.ValidString(text) {
		return list
	}
	once := jsonEscape(text)
	for _, written := range []string{once, asciiEscape(once, "0123456789abcdef"), asciiEscape(once, "0123456789ABCDEF")} {
		list = append(list, written, strings.ReplaceAll(written, "/", `\/`))
	}
	for _, written := range list[1:] {
		list = append(list, jsonEscape(written))
	}
	return list
}

// jsonEscape returns text as it stands between the quotes of a JSON string, with no escape but those that it needs.
func jsonEscape(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
		return text
	}
	const short = "\"\"\\\\\bb\ff\nn\rr\tt"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch at := strings.IndexByte(short, c); {
		case c >= ' ' && c != '"' && c != '\\':
			b.WriteByte(c)
		case at >= 0 && at%2 == 0:
			b.WriteString(`\` + short[at+1:at+2])
		default:
			appendUnit(&b, rune(c), "0123456789abcdef")
		}
	}
	return b.String()
}

// asciiEscape writes the non-ASCII characters of a JSON string as `\u` escapes.
func asciiEscape(escaped, hex string) string {
	var b strings.Builder
	for _, r := range escaped {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			appendUnit(&b, 0xd800+r>>10, hex)
			appendUnit(&b, 0xdc00+r&0x3ff, hex)
		default:
			appendUnit(&b, r, hex)
		}
	}
	return b.String()
}

func appendUnit(b *strings.Builder, u rune, hex string) {
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(hex[u>>shift&15])
	}
}

// unescaped are the characters, beside letters and digits, that writers of urls and forms leave as they are: RFC 3986 for
// data, encodeURIComponent, encodeURI, a path and userinfo of net/url, quote of Python, and forms of WHATWG.
var unescaped = []string{"-._~", "-._~!'()*", ";,/?:@&=+$#-_.!~*'()", "-._~$&+:=@", "-._~$&+,;=", "-._~/", "*-._"}

// percentForms returns text percent-encoded, and form-encoded with + for a space, in either hex case.
func percentForms(text string) []string {
	list := []string{text}
	for _, hex := range []string{"0123456789ABCDEF", "0123456789abcdef"} {
		for _, kept := range unescaped {
			written := percentEncode(text, kept, hex)
			list = append(list, written)
			if strings.Contains(text, " ") {
				list = append(list, strings.ReplaceAll(written, "%20", "+"))
			}
		}
	}
	return list
}

func percentEncode(text, kept, hex string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(kept, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteString("%" + hex[c>>4:c>>4+1] + hex[c&15:c&15+1])
	}
	return b.String()
}

// base64Forms returns the characters that text alone decides where it stands in something longer, for each of the three
// places in which it can begin there, in both alphabets.
func base64Forms(text string) []string {
	var list []string
	for skip := range 3 {
		whole := make([]byte, skip, skip+len(text))
		whole = append(whole, text...)
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			written := alphabet.EncodeToString(whole)
			from, to := (skip*8+5)/6, len(whole)*8/6
			if from < to {
				list = append(list, written[from:to])
			}
		}
	}
	return list
}

// appendBasic adds userinfo as Basic credential, to its end: the characters that it shares with nothing are fewer.
func appendBasic(list []form, userinfo string) []form {
	basic := base64.StdEncoding.EncodeToString([]byte(userinfo))
	for _, written := range append(percentForms(basic), strings.TrimRight(basic, "=")) {
		if len(written) >= minAlone {
			list = append(list, form{text: written, to: len(written)})
		}
	}
	return unique(list)
}
