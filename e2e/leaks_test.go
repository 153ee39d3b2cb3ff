package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// mask is what the gateway writes in place of a credential.
const mask = "[redacted]"

// A hunt looks for planted secrets in whatever was written, in any of the encodings and any mix of them. It shares no code with
// what it judges, and works the other way round: it decodes what it reads instead of encoding what it looks for.
type hunt struct {
	mu      sync.Mutex
	secrets map[string]string // by text, what it is
	grams   map[string]string // each window of gram bytes of each
	starts  []bool            // by the first three bytes of a window, so that hardly any place of a text needs a look at grams
}

// gram is how much of a secret, in a row, is a leak. Base64 at its worst alignment shares one byte at either end with what is
// around it.
const gram = 10

func newHunt() *hunt {
	return &hunt{secrets: map[string]string{}, grams: map[string]string{}, starts: make([]bool, 1<<24)}
}

// plant makes a random secret that has letters and digits, and extra in its middle.
func (h *hunt) plant(what, extra string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return h.add(what, pick(letters, 12)+"7"+extra+"z4"+pick(letters, 12))
}

// plantNumber makes one of digits only, as a JSON number may have.
func (h *hunt) plantNumber(what string) string { return h.add(what, "7"+pick("123456789", 23)) }

func pick(alphabet string, n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw)
	for i := range raw {
		raw[i] = alphabet[int(raw[i])%len(alphabet)]
	}
	return string(raw)
}

func (h *hunt) add(what, text string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secrets[text] = what
	for i := range len(text) - gram + 1 {
		h.grams[text[i:i+gram]] = what
		h.starts[opening(text[i:])] = true
	}
	return text
}

func opening(text string) int { return int(text[0])<<16 | int(text[1])<<8 | int(text[2]) }

// all are the secrets so far.
func (h *hunt) all() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]string{}
	for text, what := range h.secrets {
		all[text] = what
	}
	return all
}

// A trace is a part of a secret that was found.
type trace struct{ what, gram, near string }

// find gives what is found, each secret once.
func (h *hunt) find(text string) []trace {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := map[string]trace{}
	h.look(text, 3, found, map[string]bool{})
	var list []trace
	for _, t := range found {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b trace) int { return strings.Compare(a.what, b.what) })
	return list
}

var base64Run = regexp.MustCompile(`[A-Za-z0-9+/_-]{14,}`)

// look reads text as it stands and as each decoder would, depth times over.
func (h *hunt) look(text string, depth int, found map[string]trace, seen map[string]bool) {
	if seen[text] || len(text) < gram {
		return
	}
	seen[text] = true
	for i := range len(text) - gram + 1 {
		if !h.starts[opening(text[i:])] {
			continue
		}
		if what, ok := h.grams[text[i:i+gram]]; ok {
			if _, known := found[what]; !known {
				found[what] = trace{what, text[i : i+gram], text[max(0, i-60):min(len(text), i+gram+60)]}
			}
		}
	}
	if depth == 0 {
		return
	}
	if strings.Contains(text, `\`) {
		h.look(unescapeJSON(text), depth-1, found, seen)
	}
	if strings.Contains(text, "%") {
		h.look(unescapePercent(text), depth-1, found, seen)
	}
	for _, run := range base64Run.FindAllString(text, -1) {
		if seen["Base64 "+run] {
			continue
		}
		seen["Base64 "+run] = true
		plain := strings.NewReplacer("-", "+", "_", "/").Replace(run)
		for skip := range 4 {
			cut := plain[skip:]
			raw, _ := base64.RawStdEncoding.DecodeString(cut[:len(cut)/4*4])
			// What is no text at all was no Base64.
			h.look(string(raw), min(depth-1, 1), found, seen)
		}
	}
}

// unescapeJSON undoes each escape of a JSON string, wherever it stands.
func unescapeJSON(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		if at := strings.IndexByte("bfnrt", text[i]); at >= 0 {
			b.WriteByte("\b\f\n\r\t"[at])
			continue
		}
		if text[i] == 'u' && i+5 <= len(text) {
			if unit, err := strconv.ParseUint(text[i+1:i+5], 16, 32); err == nil {
				b.WriteRune(rune(unit))
				i += 4
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func unescapePercent(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+3 <= len(text) {
			if c, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// clean fails the test for each secret in text.
func (h *hunt) clean(t *testing.T, where, text string) {
	t.Helper()
	for _, found := range h.find(text) {
		t.Errorf("%s shows %s: %q in %q", where, found.what, found.gram, found.near)
	}
}

// encodings are the ways in which a server may write down what it was sent, each as the JSON string of it.
var encodings = []struct {
	name  string
	write func(s string) string
}{
	{"raw", jsonText},
	{"escapes", func(s string) string {
		var b strings.Builder
		b.WriteByte('"')
		for _, unit := range utf16Of(s) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
		return b.String() + `"`
	}},
	{"solidus", func(s string) string { return strings.ReplaceAll(jsonText(s), "/", `\/`) }},
	{"percent upper", func(s string) string { return jsonText(url.PathEscape(s)) }},
	{"percent lower", func(s string) string {
		return jsonText(percentTriple.ReplaceAllStringFunc(url.PathEscape(s), strings.ToLower))
	}},
	{"form", func(s string) string { return jsonText(url.QueryEscape(s)) }},
	{"base64 at 0", func(s string) string { return jsonText(base64.StdEncoding.EncodeToString([]byte(s))) }},
	{"base64 at 1", func(s string) string { return jsonText(base64.StdEncoding.EncodeToString([]byte("?" + s + "!"))) }},
	{"base64 at 2", func(s string) string { return jsonText(base64.URLEncoding.EncodeToString([]byte("??" + s + "!!"))) }},
	{"json in json", func(s string) string { return jsonText(`{"said":` + jsonText(s) + `}`) }},
	{"escapes in json", func(s string) string { return jsonText(`{"said":` + strings.ReplaceAll(jsonText(s), "/", `\/`) + `}`) }},
}

var percentTriple = regexp.MustCompile(`%[0-9A-F]{2}`)

func utf16Of(s string) []uint16 {
	var units []uint16
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			units = append(units, uint16(0xd800+r>>10), uint16(0xdc00+r&0x3ff))
			continue
		}
		units = append(units, uint16(r))
	}
	return units
}

// jsonText writes s with no escapes but those that JSON needs.
func jsonText(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}

// everyWay writes each text in each encoding, as a JSON array.
func everyWay(texts []string) string {
	var all []string
	for _, text := range texts {
		for _, e := range encodings {
			all = append(all, e.write(text))
		}
	}
	return "[" + strings.Join(all, ",") + "]"
}

// wholeJSON fails the test where a body, or the data of an event, is no JSON.
func wholeJSON(t *testing.T, where string, header http.Header, body []byte) {
	t.Helper()
	if len(body) == 0 {
		return
	}
	if !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		if strings.HasPrefix(header.Get("Content-Type"), "application/json") && !json.Valid(body) {
			t.Errorf("%s is no JSON: %.300q", where, body)
		}
		return
	}
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 && !json.Valid(data) {
			t.Errorf("%s has an event that is no JSON: %.300q", where, data)
		}
	}
}

// TestTheHuntFinds holds the searcher itself to finding each secret in each encoding, so that finding none means something.
func TestTheHuntFinds(t *testing.T) {
	h := newHunt()
	secret := h.plant("the secret", `/+%"\ ~`)
	other := h.plant("the other", "é\n")
	h.plant("absent", "")
	for _, e := range encodings {
		for text, what := range map[string]string{secret: "the secret", other: "the other"} {
			found := h.find(`{"a":[1,` + e.write("X-Header: "+text+"; more") + `]}`)
			if len(found) != 1 || found[0].what != what {
				t.Errorf("%s: found %v, want %s", e.name, found, what)
			}
		}
	}
	if found := h.find(strings.Repeat("nothing of it ", 50)); found != nil {
		t.Errorf("found %v in a text without any", found)
	}
}
