package redact

import (
	"encoding/base64"
	"net/textproto"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// minAlone is the shortest form that is replaced wherever it stands. A shorter one would eat ordinary words.
const minAlone = 8

// weakBelow is the length, in characters, from which on a text of letters alone, or of digits alone, is no longer taken
// for words or a number that may well mean something else.
const weakBelow = 16

// A Known is one text that a Scrubber replaces, and where it does.
//
// By itself it is a credential, which is replaced in results and in records, wherever one of its forms has 8 bytes or
// more. What is shorter, or is a short word, words or number, is left alone in results and goes there only right behind
// its Name, or behind `Bearer `. The name stays.
type Known struct {
	Text Secret
	Name string // what the text is the value of; "" where nothing says so

	Header   bool // Name is a header's, which is written in small, capital and initial letters, and as CGI does
	Userinfo bool // Text is the user and password of a url: a short one goes between its `//` and `@`, and as Basic credential
	Record   bool // Text is no credential: it is replaced in records only, and where it has a Name only with that
}

// Weak reports whether text is so much like an ordinary word or number that results keep it where it stands alone:
// fewer than 16 characters, all letters or all digits. A single _ - or . may stand between two of them: customer_id is
// what a tool's schema may well have, too.
func Weak(text string) bool {
	if utf8.RuneCountInString(text) >= weakBelow {
		return false
	}
	letters, digits, joined := true, true, text != ""
	for _, r := range text {
		if r == '_' || r == '-' || r == '.' {
			if joined {
				return false
			}
			joined = true
			continue
		}
		joined = false
		letters = letters && unicode.IsLetter(r)
		digits = digits && unicode.IsDigit(r)
	}
	return (letters || digits) && !joined
}

// A form is one way in which a text may be written.
type form struct {
	text     string
	from, to int    // the part of it that is replaced
	with     string // what that becomes; "" is Base64 characters, as many as there were
	apart    bool   // counts only where no letter or digit adjoins
}

// forms returns what of k is replaced everywhere and what is replaced in records only.
func (k Known) forms() (everywhere, records []form) {
	text := k.Text.Reveal()
	if text == "" {
		return nil, nil
	}
	alone := aloneForms(text)
	for _, line := range linesOf(text) {
		alone = append(alone, aloneForms(line)...)
	}
	if k.Userinfo {
		alone = appendBasic(alone, text)
	}
	switch short := len(text) < minAlone || Weak(text); {
	case k.Record && k.Name != "":
		return nil, k.named(text)
	case k.Record:
		return nil, alone
	case !short:
		return alone, nil
	case Weak(text):
		return k.behind(text), alone
	default:
		return append(alone, k.behind(text)...), nil
	}
}

// linesOf are the lines of a text of several, such as a key in PEM, that are a secret by themselves: whatever is recorded
// line by line shows them so. The lines around a key say nothing.
func linesOf(text string) []string {
	if !strings.Contains(text, "\n") {
		return nil
	}
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if len(line) >= minAlone && !Weak(line) && !strings.HasPrefix(line, "-----") {
			lines = append(lines, line)
		}
	}
	return lines
}

// behind returns the forms that have what gives a short credential away in front of it.
func (k Known) behind(text string) []form {
	var list []form
	if k.Userinfo {
		for _, written := range append(percentForms(text), jsonForms(text)...) {
			list = append(list, form{text: "//" + written + "@", from: 2, to: 2 + len(written), with: Mask})
		}
		basic := base64.StdEncoding.EncodeToString([]byte(text))
		return append(list, form{text: "Basic " + basic, from: 6, to: 6 + len(basic), with: Mask, apart: true})
	}
	for _, scheme := range []string{"Bearer ", "bearer "} {
		for _, written := range jsonForms(text) {
			list = append(list, form{text: scheme + written, from: len(scheme), to: len(scheme) + len(written), with: Mask, apart: true})
		}
	}
	if k.Name != "" {
		list = append(list, k.named(text)...)
	}
	return list
}

// named returns the forms of the pair of k's name and text: `name=text`, `name: text`, and as member of a JSON object, that
// text being JSON itself or standing in a string of one, or in a string of a string.
func (k Known) named(text string) []form {
	names := []string{k.Name}
	if k.Header {
		upper := strings.ToUpper(k.Name)
		for _, name := range []string{
			strings.ToLower(k.Name), textproto.CanonicalMIMEHeaderKey(k.Name), upper,
			"HTTP_" + strings.ReplaceAll(upper, "-", "_"), // of CGI, RFC 3875, section 4.1.18
		} {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	plain := append(percentForms(text), jsonForms(text)...)
	var list []form
	for _, name := range names {
		for _, between := range []string{"=", ": ", ":", " = ", ":["} {
			for _, quote := range []string{"", `'`, `"`, `\"`} {
				for _, written := range plain {
					list = append(list, pair(name+between+quote, written, quote, Mask, true))
				}
			}
		}
		list = append(list, members(name, text)...)
	}
	return unique(list)
}

// members returns the forms of a member called name whose value is text, as a string, as the first string of a list,
// and as a number.
func members(name, text string) []form {
	var list []form
	quote, written, behindEscapes := `"`, jsonEscape(text), text
	for range 3 {
		key := quote + name + quote
		for _, between := range []string{":", ": ", " : ", ":[", ": ["} {
			list = append(list, pair(key+between+quote, written, quote, Mask, false), pair(key+between+quote, behindEscapes, quote, Mask, false))
		}
		for _, between := range []string{":", ": ", " : "} {
			if number(text) {
				list = append(list, pair(key+between, text, "", quote+Mask+quote, true))
			}
		}
		quote, written, behindEscapes, name = jsonEscape(quote), jsonEscape(written), written, jsonEscape(name)
	}
	return list
}

func pair(before, written, after, with string, apart bool) form {
	return form{text: before + written + after, from: len(before), to: len(before) + len(written), with: with, apart: apart}
}

// number reports whether text is made of what JSON numbers are made of.
func number(text string) bool { return strings.Trim(text, "+-.0123456789eE") == "" }

func unique(list []form) []form {
	seen := make(map[string]bool, len(list))
	kept := list[:0]
	for _, f := range list {
		if !seen[f.text] {
			seen[f.text] = true
			kept = append(kept, f)
		}
	}
	return kept
}
