package config

import (
	"cmp"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"mcp-gateway/redact"
)

// A label says what a text is in its server.
type label struct {
	server *server
	use    string // where it stands, in words
	name   string // what it is the value of; "" where nothing says so
	wanted string // what a variable for it would be called

	argument bool
}

// hide replaces every credential of s by a placeholder.
func (i *importer) hide(s *server) {
	for n, e := range s.env {
		s.env[n].value = i.hideValue(label{server: s, use: "the variable " + e.name, name: e.name, wanted: e.name}, e.value)
	}
	i.hideArgs(s)
	s.command = i.hideText(label{server: s, use: "the command", wanted: s.id + "_COMMAND_SECRET", argument: true}, s.command)
	s.url = i.hideText(label{server: s, use: "the url", wanted: s.id + "_URL_KEY"}, s.url)
	for n, h := range s.headers {
		s.headers[n].value = i.hideHeader(s, h)
	}
	if s.bearer != "" && !onlyReference(s.bearer) {
		s.bearer = i.literalSecret(label{server: s, use: "the bearer token", wanted: s.id + "_TOKEN"}, s.bearer)
	}
}

// literalSecret returns a placeholder for text as a whole. One long secret in many places is one variable.
func (i *importer) literalSecret(l label, text string) string {
	key := "value " + text
	if len(text) < 8 || redact.Weak(text) {
		key = "word " + l.server.id + " " + l.use + " " + text
	}
	return i.refer(l.server, key, l.use, func(v *variable) {
		v.wanted, v.hidden = l.wanted, redact.NewSecret(text)
		if strings.ContainsFunc(text, isPlaceholder) {
			v.hints = []string{"with what its own references stand for put in"}
		}
	})
}

// secretText reports whether text, the value of name, is a credential or has one in it as far as can be seen.
func secretText(name, text string) bool {
	return credentialVariable(name, text) && !harmless(name, text) || len(spans(text)) > 0 || given(text) || odd(text) || found(text)
}

// found reports whether the parser will take text for a credential, by its looks, once it is in a configuration.
func found(text string) bool {
	l := newLoader("")
	l.assigned(item{value: value{text: text}, at: place{node: &yaml.Node{}}})
	return slices.ContainsFunc(l.credentials(), func(k redact.Known) bool {
		plain, err := url.PathUnescape(k.Text.Reveal())
		return (err != nil || !strings.ContainsFunc(plain, isPlaceholder)) && !strings.ContainsFunc(k.Text.Reveal(), isPlaceholder)
	})
}

// harmless reports whether a text with the name of a credential is none by what it says: a switch, a number of tokens, or a reference of a
// shell.
func harmless(name, text string) bool {
	switch strings.ToLower(text) {
	case "", "true", "false", "yes", "no", "on", "off", "none", "null", "undefined":
		return true
	}
	upper := strings.ToUpper(name)
	return strings.HasSuffix(upper, "TOKENS") && strings.Trim(text, "0123456789") == "" || shellReference.MatchString(text)
}

var shellReference = regexp.MustCompile(`^(\$[A-Za-z_][A-Za-z0-9_]*|%[A-Za-z_][A-Za-z0-9_]*%|process\.env\.[A-Za-z0-9_]+)$`)

// onlyReference reports whether text has so little beside its references that they are what is secret of it.
func onlyReference(text string) bool {
	literal := strings.Map(func(r rune) rune {
		if isPlaceholder(r) {
			return -1
		}
		return r
	}, text)
	return len(literal) < len(text) && len(literal) < 8
}

// hideValue is hideText for the value of a name, which may say itself that it is secret.
func (i *importer) hideValue(l label, text string) string {
	if credentialVariable(l.name, text) && !harmless(l.name, text) && !onlyReference(text) {
		return i.literalSecret(l, text)
	}
	return i.hideText(l, text)
}

// hideText replaces what in text is surely a credential, and all of text where it still seems to have one.
func (i *importer) hideText(l label, text string) string {
	var b strings.Builder
	at := 0
	for _, s := range spans(text) {
		part := l
		part.use, part.wanted = "part of "+l.use, l.server.id+"_"+s.name
		b.WriteString(text[at:s.from])
		b.WriteString(i.literalSecret(part, text[s.from:s.to]))
		at = s.to
	}
	b.WriteString(text[at:])
	// What only looks odd goes too, but not of arguments: a package's name may well have the shape of a credential.
	if hidden := b.String(); !given(hidden) && !found(hidden) && (l.argument || !odd(hidden)) {
		return hidden
	}
	return i.literalSecret(l, text)
}

// hideArgs hides `--token X`, `--token=X`, `TOKEN=X`, a header's line, and what gives itself away.
func (i *importer) hideArgs(s *server) {
	flag := ""
	for n, text := range s.args {
		l := label{server: s, use: "an argument", wanted: s.id + "_SECRET", argument: true}
		name, inline, both := strings.Cut(text, "=")
		dashed := strings.HasPrefix(text, "-")
		before := flag
		flag = ""
		switch {
		case both && (dashed || token(name)):
			l.name = strings.TrimLeft(name, "-")
			l.use, l.wanted = "the argument "+name, s.id+"_"+l.name
			s.args[n] = name + "=" + i.hideArg(l, inline)
		case dashed:
			if flag = strings.TrimLeft(text, "-"); strings.HasPrefix(flag, "no-") {
				flag = ""
			}
			s.args[n] = i.hideText(l, text)
		default:
			if before != "" {
				l.name, l.use, l.wanted = before, "the argument behind "+before, s.id+"_"+before
			}
			s.args[n] = i.hideArg(l, text)
		}
	}
}

// hideArg hides one argument, or what stands behind its =. It may be the line of a header.
func (i *importer) hideArg(l label, text string) string {
	if name, value, is := strings.Cut(text, ":"); is && token(name) && redact.CredentialName(name) && !strings.HasPrefix(value, "//") {
		rest := strings.TrimLeft(value, " ")
		return name + ":" + value[:len(value)-len(rest)] + i.hideHeader(l.server, setting{name, rest})
	}
	if !credentialVariable(l.name, text) && !onlyReference(text) && slices.ContainsFunc(strings.FieldsFunc(text, joint), redact.CredentialShape) && oneWord(text) && !ordinary(text) {
		return i.literalSecret(l, text)
	}
	return i.hideValue(l, text)
}

func joint(r rune) bool { return r == '-' || r == '_' || r == '.' }

var scheme = regexp.MustCompile(`^(?i:bearer|basic|token|apikey|digest) +`)

// hideHeader hides the value of a header but for its scheme.
func (i *importer) hideHeader(s *server, h setting) string {
	l := label{server: s, use: "the header " + h.name, name: h.name, wanted: s.id + "_" + strings.TrimPrefix(strings.ToUpper(h.name), "X-")}
	begin := scheme.FindString(h.value)
	rest := h.value[len(begin):]
	switch {
	case onlyReference(rest) || harmless(h.name, rest):
		return h.value
	case redact.CredentialName(h.name):
		if strings.HasPrefix(strings.ToLower(begin), "bearer") {
			l.wanted = s.id + "_TOKEN"
		}
		return begin + i.literalSecret(l, rest)
	case shapedPart(h.value):
		return i.literalSecret(l, h.value)
	}
	return i.hideText(l, h.value)
}

// A span is a part of a text that is secret, and what it is called there.
type span struct {
	from, to int
	name     string
}

var (
	// pairs are names beside values, in a connection string, a command line, or JSON in a string.
	pairs = []*regexp.Regexp{
		regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)[\\"']*\s*[:=]\s*[\\"']*(?:(?i:bearer|basic|token) +)?([^\s"'\\;&]+)`),
		regexp.MustCompile(`(?:^|\s)--?([A-Za-z][A-Za-z0-9_-]*)\s+["']?([^\s"'-][^\s"']*)`),
	}
	jsonPair = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"\s*:\s*"(?:(?i:bearer|basic|token) +)?((?:[^"\\]|\\.)*)"`)
	// tokens are known by what stands before them, or by how they begin.
	tokens = []*regexp.Regexp{
		regexp.MustCompile(`()(?i:\b(?:bearer|basic) +)([A-Za-z0-9._~+/=-]{8,})`),
		regexp.MustCompile(`()\b((?:` + strings.Join(tokenStarts, "|") + `)[A-Za-z0-9_.-]{12,})`),
	}
)

// given reports whether a name in text gives what stands beside it away as a credential.
func given(text string) bool {
	for _, expression := range pairs {
		if len(matches(expression, text)) > 0 {
			return true
		}
	}
	return false
}

// spans finds the credentials in text whose ends are sure, in order and apart.
func spans(text string) []span {
	list := urlSpans(text)
	if json.Valid([]byte(text)) {
		list = append(list, matches(jsonPair, text)...)
	}
	for _, expression := range tokens {
		list = append(list, matches(expression, text)...)
	}
	slices.SortStableFunc(list, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	end := 0
	return slices.DeleteFunc(list, func(s span) bool {
		if s.from < end {
			return true
		}
		end = s.to
		return false
	})
}

// matches are the second groups of expression, each the value of what the first group names.
func matches(expression *regexp.Regexp, text string) []span {
	var list []span
	for _, m := range expression.FindAllStringSubmatchIndex(text, -1) {
		s := span{m[4], m[5], cmp.Or(text[m[2]:m[3]], "TOKEN")}
		if strings.EqualFold(s.name, "Authorization") {
			s.name = "TOKEN"
		}
		if part := text[s.from:s.to]; credentialVariable(s.name, part) && !harmless(s.name, part) && !onlyReference(part) {
			list = append(list, s)
		}
	}
	return list
}

// spread hides each secret also where it stands elsewhere, beside nothing that gives it away.
func (i *importer) spread() {
	var replaced []string
	for _, v := range slices.SortedFunc(slices.Values(i.variables), func(a, b *variable) int {
		return cmp.Compare(len(b.hidden.Reveal()), len(a.hidden.Reveal()))
	}) {
		if text := v.hidden.Reveal(); len(text) >= 8 && !redact.Weak(text) {
			replaced = append(replaced, text, string(rune(placeholders+v.index)))
		}
	}
	replacer := strings.NewReplacer(replaced...)
	for _, s := range i.servers {
		l := label{server: s, use: "a text with $ before a reference", wanted: s.id + "_TEXT"}
		for _, text := range s.texts() {
			*text = replacer.Replace(*text)
			if dollarReference.MatchString(*text) {
				*text = i.literalSecret(l, *text)
			}
		}
	}
}

// dollarReference is what no configuration can say: there $${ is a literal ${.
var dollarReference = regexp.MustCompile(`\$[\x{100000}-\x{10ffff}]`)

// texts are all values of s that may have placeholders.
func (s *server) texts() []*string {
	list := []*string{&s.command, &s.cwd, &s.url, &s.bearer}
	for n := range s.args {
		list = append(list, &s.args[n])
	}
	for n := range s.env {
		list = append(list, &s.env[n].value)
	}
	for n := range s.headers {
		list = append(list, &s.headers[n].value)
	}
	return list
}
