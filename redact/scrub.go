package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"
)

// minAlone is the shortest form that is replaced wherever it stands. A shorter one would eat ordinary words.
const minAlone = 8

// A Scrubber replaces the secrets it knows in text written by others. All methods may be called at once; a secret
// is replaced from the moment Add has returned.
//
// It finds each secret as it is and as JSON strings write it: with and without `\/`, with and without the escapes
// for HTML, and with non-ASCII characters as `\u` escapes.
type Scrubber struct {
	mu   sync.Mutex // serialises Add
	live atomic.Pointer[set]
}

// A set is immutable, so that readers need no lock.
type set struct {
	forms []string // longest first, none twice, none shorter than minAlone
}

// NewScrubber returns a Scrubber that knows secrets. Zero secrets and those under 8 bytes are never replaced.
func NewScrubber(secrets ...Secret) *Scrubber {
	s := &Scrubber{}
	s.live.Store(&set{})
	s.Add(secrets...)
	return s
}

// Add makes secrets known. Adding one again changes nothing.
func (s *Scrubber) Add(secrets ...Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.live.Load().forms
	next := slices.Clone(old)
	for _, secret := range secrets {
		next = appendForms(next, secret.Reveal())
	}
	slices.SortFunc(next, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	next = slices.Compact(next)
	if len(next) != len(old) {
		s.live.Store(&set{forms: next})
	}
}

// Bytes returns b with every known secret replaced. Where there is none it returns b itself; it never writes to b.
func (s *Scrubber) Bytes(b []byte) []byte {
	// The view lives no longer than this call, during which b does not change.
	text := unsafe.String(unsafe.SliceData(b), len(b))
	found := s.live.Load().find(text)
	if len(found) == 0 {
		return b
	}
	return replace(text, found)
}

// String returns text with every known secret replaced.
func (s *Scrubber) String(text string) string {
	found := s.live.Load().find(text)
	if len(found) == 0 {
		return text
	}
	return string(replace(text, found))
}

// Holds reports whether text has a known secret in it.
func (s *Scrubber) Holds(text string) bool {
	return slices.ContainsFunc(s.live.Load().forms, func(form string) bool { return strings.Contains(text, form) })
}

type span struct{ from, to int }

// find returns where the forms stand in text, in order, with those that overlap joined into one.
func (s *set) find(text string) []span {
	var found []span
	for _, form := range s.forms {
		for at := 0; ; {
			i := strings.Index(text[at:], form)
			if i < 0 {
				break
			}
			from := at + i
			to := from + len(form)
			if n := len(found); n > 0 && from < found[n-1].to && from >= found[n-1].from {
				found[n-1].to = max(found[n-1].to, to) // a run such as aaaa… stays one span
			} else {
				found = append(found, span{escapeStart(text, from), to})
			}
			at = from + 1
		}
	}
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	joined := found[:1]
	for _, next := range found[1:] {
		if last := &joined[len(joined)-1]; next.from < last.to {
			last.to = max(last.to, next.to)
		} else {
			joined = append(joined, next)
		}
	}
	return joined
}

// escapeStart moves from back to the backslash of an escape that it would split, so that JSON stays JSON.
func escapeStart(text string, from int) int {
	for back := 1; back <= 5 && back <= from; back++ {
		c := text[from-back]
		if c == '\\' {
			slashes := 1
			for from-back-slashes >= 0 && text[from-back-slashes] == '\\' {
				slashes++
			}
			if slashes%2 == 1 && (back == 1 || text[from-back+1] == 'u') {
				return from - back
			}
			return from
		}
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || c == 'u') {
			return from
		}
	}
	return from
}

func replace(text string, found []span) []byte {
	out := make([]byte, 0, len(text)+len(found)*len(Mask))
	at := 0
	for _, f := range found {
		out = append(out, text[at:f.from]...)
		out = append(out, Mask...)
		at = f.to
	}
	return append(out, text[at:]...)
}

// appendForms adds the ways in which secret may be written. The floor counts form by form.
func appendForms(forms []string, secret string) []string {
	add := func(form string) {
		if len(form) >= minAlone {
			forms = append(forms, form)
		}
	}
	add(secret)
	for _, html := range []bool{false, true} {
		escaped := jsonEscape(secret, html)
		for _, form := range []string{escaped, asciiEscape(escaped)} {
			add(form)
			add(strings.ReplaceAll(form, "/", `\/`))
		}
	}
	return forms
}

// jsonEscape returns secret as it stands between the quotes of a JSON string.
func jsonEscape(secret string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(secret); err != nil {
		return secret
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// asciiEscape writes non-ASCII characters as `\u` escapes in lower case, as Python does by default.
func asciiEscape(escaped string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	unit := func(u rune) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(hex[u>>shift&15])
		}
	}
	for _, r := range escaped {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			unit(0xd800 + r>>10)
			unit(0xdc00 + r&0x3ff)
		default:
			unit(r)
		}
	}
	return b.String()
}
