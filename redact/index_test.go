package redact

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// searched is what match must find, by looking for one form after the other.
func searched(forms []form, text string) []span {
	var found []span
	for i := range forms {
		for from := range len(text) {
			if forms[i].at(text, from) {
				found = append(found, span{from + forms[i].from, from + forms[i].to, forms[i].with})
			}
		}
	}
	return found
}

func inOrder(found []span) []span {
	slices.SortFunc(found, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.with, b.with))
	})
	return found
}

// Sampling misses no place: forms of any lengths, of few different characters, so that they begin alike, overlap and are
// within each other, in texts of any length.
func TestMatchFindsAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	word := func(length, characters int) string {
		b := make([]byte, length)
		for i := range b {
			b[i] = "ab-1"[random.IntN(characters)]
		}
		return string(b)
	}
	matches := 0
	for range 1000 {
		least, characters := 2+random.IntN(40), 2+random.IntN(3)
		var forms []form
		for range 1 + random.IntN(12) {
			text := word(least+random.IntN(12), characters)
			if len(forms) > 0 && random.IntN(3) == 0 {
				text = forms[0].text + text
			}
			forms = append(forms, form{text: text, from: 1, to: len(text), with: text[:1], apart: random.IntN(4) == 0})
		}
		text := word(random.IntN(120), characters)
		for _, f := range forms {
			text += word(random.IntN(9), characters) + f.text
		}
		text += word(random.IntN(9), characters)
		got, want := inOrder(newIndex(forms[:1], forms[1:]).match(text, nil)), inOrder(searched(forms, text))
		if !slices.Equal(got, want) {
			t.Fatalf("%+v in %q:\n got %v\nwant %v", forms, text, got, want)
		}
		matches += len(got)
	}
	if matches < 5_000 {
		t.Errorf("the test had only %d matches", matches)
	}
}

// Forms that begin alike are found without a look at each: with 2,000 of them, a text made of their beginnings costs about
// as many comparisons as with one.
func TestFormsThatBeginAlike(t *testing.T) {
	const begin = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJo"
	var forms []form
	for i := range 2000 {
		text := fmt.Sprintf("%s%04d", begin, i)
		forms = append(forms, form{text: text, to: len(text), with: Mask})
	}
	x := newIndex(forms)
	first := hash8(load8(begin, 0)) >> x.beginAt
	if n := x.begin[first+1] - x.begin[first]; n != 2000 {
		t.Fatalf("%d forms begin alike", n)
	}
	for i := range x.long {
		if x.prefix[i] >= 0 {
			t.Fatalf("%q is said to begin with %q", x.long[i].text, x.long[x.prefix[i]].text)
		}
	}
	for i := range 2000 {
		if found := x.match(fmt.Sprintf("%s%s%04d!", begin, begin, i), nil); len(found) != 1 || found[0].from != len(begin) {
			t.Fatalf("%d: %v", i, found)
		}
	}
}

// An escape that may hide something is seen wherever it stands.
func TestHides(t *testing.T) {
	x := newIndex(aloneForms("abc/def-1"))
	wide := newIndex(aloneForms("geheim/ä1"))
	if narrow := newIndex([]form{{text: "\xff\xfe12345678"}}); narrow.hides(`\/`) || narrow.hides(`\u00ff`) || !narrow.hides(`\u0031`) {
		t.Error("an escape that hides nothing, or one that does, is taken for the other")
	}
	for _, around := range []string{"", "x", `\n`, `\"`, `\\`, "plain text ", `\"\"\"\"\"`} {
		for n := range 20 {
			before := strings.Repeat(around, n)
			for _, after := range []string{"", "x", strings.Repeat("y", 30)} {
				for escape, want := range map[string][2]bool{
					`\/`: {true, true}, `\u0061`: {true, true}, `\u002f`: {true, true}, `\u002F`: {true, true}, `\u005c`: {true, true}, `\u003c`: {false, true},
					`\\\\/`: {true, true}, `\\\\n`: {false, false}, `\\n`: {false, false}, strings.Repeat(`\`, maxRun+1) + "n": {true, true},
					`\u00e9`: {false, true}, `\u000a`: {false, true}, `\n`: {false, false}, "/": {false, false}, "u0061": {false, false},
				} {
					text := before + escape + after
					if strings.HasSuffix(before, `\`) && escape[0] != '\\' {
						want = [2]bool{true, true} // an escape that is escaped itself
					}
					if strings.HasSuffix(text, `\\\\`) || strings.Contains(text, strings.Repeat(`\`, maxRun+1)) {
						want = [2]bool{true, true} // nobody knows what follows
					}
					if got := [2]bool{x.hides(text), wide.hides(text)}; got != want {
						t.Fatalf("%q: %t, want %t", text, got, want)
					}
				}
			}
		}
	}
}

// What is looked at in groups hides what it hides byte by byte, wherever the groups begin and end.
func TestGroupsHideWhatTheirBytesDo(t *testing.T) {
	x := newIndex([]form{{text: `with \" and /12`}, {text: `ends with \`}})
	narrow := newIndex([]form{{text: "12345678"}})
	pieces := []string{`\`, `\\`, `\\\\`, `\u0031`, `\u003c`, `\u`, `\/`, `/`, `u`, `\n`, `\"`, "x", "text without any", "é"}
	random := rand.New(rand.NewPCG(7, 8))
	for range 20_000 {
		text := strings.Repeat("y", random.IntN(70))
		for range random.IntN(30) {
			text += pieces[random.IntN(len(pieces))]
		}
		for _, index := range []*index{x, narrow} {
			if got, want := index.hides(text), index.hidesWithin(text, 0, len(text)); got != want {
				t.Fatalf("%q hides something: %v, and byte by byte %v", text, got, want)
			}
		}
	}
}
