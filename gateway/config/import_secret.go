package config

import (
	"cmp"
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
}

// hide replaces every credential of s by a placeholder.
func (i *importer) hide(s *server) {
	for n, e := range s.env {
		s.env[n].value = i.hideValue(label{s, "the variable " + e.name, e.name, e.name}, e.value)
	}
	i.hideArgs(s)
	s.command = i.hideText(label{server: s, use: "the command", wanted: s.id + "_COMMAND_SECRET"}, s.command)
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

// secretText reports whether text, the value of name, is a credential as far as can be seen.
func (i *importer) secretText(name, text string) bool {
	return credentialVariable(name, text) && !harmless(name, text) || len(i.spans(text)) > 0 || found(name, text)
}

// found reports whether the parser would take text for a credential, once it is in a configuration.
func found(name, text string) bool {
	l := newLoader("")
	i := item{value: value{text: text}, at: place{node: &yaml.Node{}}}
	if l.variable(i); len(name) == 0 {
		l.suspect(i)
	}
	return slices.ContainsFunc(l.credentials(), func(k redact.Known) bool { return !strings.ContainsFunc(k.Text.Reveal(), isPlaceholder) })
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

// hideText replaces what in text gives itself away, or all of it where the parser still sees a credential.
func (i *importer) hideText(l label, text string) string {
	var b strings.Builder
	at := 0
	for _, s := range i.spans(text) {
		part := l
		part.use = l.use + ", in part"
		if part.wanted = l.wanted; s.name != "" {
			part.wanted = l.server.id + "_" + s.name
		}
		b.WriteString(text[at:s.from])
		b.WriteString(i.literalSecret(part, text[s.from:s.to]))
		at = s.to
	}
	b.WriteString(text[at:])
	if hidden := b.String(); !found(l.name, hidden) {
		return hidden
	}
	return i.literalSecret(l, text)
}

// hideArgs hides `--token X`, `--token=X`, `TOKEN=X`, a header's line, and what gives itself away.
func (i *importer) hideArgs(s *server) {
	flag := ""
	for n, text := range s.args {
		l := label{server: s, use: "an argument", wanted: s.id + "_SECRET"}
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
	if !credentialVariable(l.name, text) && slices.ContainsFunc(strings.FieldsFunc(text, joint), redact.CredentialShape) && oneWord(text) && !ordinary(text) {
		return i.literalSecret(l, text)
	}
	return i.hideValue(l, text)
}

func joint(r rune) bool { return r == '-' || r == '_' || r == '.' }

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]* +`)

// hideHeader hides the value of a header but for its scheme.
func (i *importer) hideHeader(s *server, h setting) string {
	name := strings.TrimPrefix(strings.ToUpper(h.name), "X-")
	l := label{s, "the header " + h.name, h.name, s.id + "_" + name}
	if credentialVariable(h.name, h.value) && !harmless(h.name, h.value) {
		begin := scheme.FindString(h.value)
		if rest := h.value[len(begin):]; rest != "" && !onlyReference(rest) {
			if strings.HasPrefix(strings.ToLower(begin), "bearer") {
				l.wanted = s.id + "_TOKEN"
			}
			return begin + i.literalSecret(l, rest)
		}
		return h.value
	}
	if redact.CredentialShape(h.value) && !ordinary(h.value) && oneWord(h.value) {
		return i.literalSecret(l, h.value)
	}
	return i.hideText(l, h.value)
}

// A span is a part of a text that is secret, and what it is called there.
type span struct {
	from, to int
	name     string
}

var givesAway = []*regexp.Regexp{
	// A pair, in JSON, a connection string or a command line. A value in quotes ends with them.
	regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)\\?["']?\s*[:=]\s*(?:\\?["'](?:(?i:bearer|basic|token) +)?([^"'\\]+)|(?:(?i:bearer|basic|token) +)?([^\s"'\\,;&{}()\[\]]+))`),
	regexp.MustCompile(`(?:^|\s)--?([A-Za-z][A-Za-z0-9_-]*)\s+(?:["']([^"']+)["']|([^\s"'-][^\s"']*))`),
	regexp.MustCompile(`(?i)\b(bearer|basic) +()([A-Za-z0-9._~+/=-]{8,})`),
	regexp.MustCompile(`()()\b((?:` + strings.Join(tokenStarts, "|") + `)[A-Za-z0-9_.-]{12,})`),
}

// spans finds the credentials in text that what stands beside them gives away, in order and apart.
func (i *importer) spans(text string) []span {
	list := urlSpans(text)
	for _, expression := range givesAway {
		for _, m := range expression.FindAllStringSubmatchIndex(text, -1) {
			s := span{from: m[4], to: m[5], name: text[m[2]:m[3]]}
			if s.from < 0 || s.from == s.to {
				s.from, s.to = m[6], m[7]
			}
			if s.name == "" || strings.EqualFold(s.name, "bearer") || strings.EqualFold(s.name, "basic") {
				s.name = "TOKEN"
			}
			if part := text[s.from:s.to]; credentialVariable(s.name, part) && !harmless(s.name, part) && !onlyReference(part) {
				list = append(list, s)
			}
		}
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

// urlSpans finds what the parser would take for credentials in the urls of text: userinfo, and parts of path and query.
func urlSpans(text string) []span {
	var list []span
	for from := 0; ; {
		n := strings.Index(text[from:], "://")
		if n < 0 {
			return list
		}
		from += n + len("://")
		end := len(text)
		if n := strings.IndexAny(text[from:], " \t\r\n\"'`<>"); n >= 0 {
			end = from + n
		}
		list = append(list, partSpans(text, from, end)...)
	}
}

func partSpans(text string, from, end int) []span {
	var list []span
	add := func(s span) {
		if s.from < s.to && !onlyReference(text[s.from:s.to]) {
			list = append(list, s)
		}
	}
	host := from
	authority := from + segment(text[from:end], "/?#")
	if at := strings.LastIndexByte(text[from:authority], '@'); at >= 0 {
		host = from + at + 1
		if user := strings.IndexByte(text[from:host-1], ':'); user >= 0 {
			add(span{from + user + 1, host - 1, "PASSWORD"})
			if redact.CredentialShape(text[from : from+user]) {
				add(span{from, from + user, "USER_TOKEN"})
			}
		} else {
			add(span{from, host - 1, "USER_TOKEN"})
		}
	}
	path := host + segment(text[host:end], "?#")
	for at := host + segment(text[host:path], "/"); at < path; {
		to := at + 1 + segment(text[at+1:path], "/")
		if part := text[at+1 : to]; shapedPart(part) {
			add(span{at + 1, to, "URL_KEY"})
		}
		at = to
	}
	for at := path; at < end; {
		to := at + 1 + segment(text[at+1:end], "&#?")
		equals := at + 1 + segment(text[at+1:to], "=")
		name, err := url.QueryUnescape(text[at+1 : equals])
		if err != nil {
			name = ""
		}
		switch {
		case equals < to && (redact.CredentialName(name) || shapedPart(text[equals+1:to])):
			add(span{equals + 1, to, cmp.Or(name, "URL_KEY")})
		case shapedPart(text[at+1 : equals]):
			add(span{at + 1, equals, "URL_KEY"})
		}
		at = to
	}
	return list
}

// segment is how long text is before the first of ends.
func segment(text, ends string) int {
	if n := strings.IndexAny(text, ends); n >= 0 {
		return n
	}
	return len(text)
}

func shapedPart(text string) bool { return redact.CredentialShape(text) && !ordinary(text) }

// spread hides each secret also where it stands elsewhere, beside nothing that gives it away.
func (i *importer) spread() {
	var pairs []string
	for _, v := range slices.SortedFunc(slices.Values(i.variables), func(a, b *variable) int {
		return cmp.Compare(len(b.hidden.Reveal()), len(a.hidden.Reveal()))
	}) {
		if text := v.hidden.Reveal(); len(text) >= 8 && !redact.Weak(text) {
			pairs = append(pairs, text, string(rune(placeholders+v.index)))
		}
	}
	replacer := strings.NewReplacer(pairs...)
	for _, s := range i.servers {
		s.command, s.cwd, s.url, s.bearer = replacer.Replace(s.command), replacer.Replace(s.cwd), replacer.Replace(s.url), replacer.Replace(s.bearer)
		for n := range s.args {
			s.args[n] = replacer.Replace(s.args[n])
		}
		for _, list := range [][]setting{s.env, s.headers} {
			for n := range list {
				list[n].value = replacer.Replace(list[n].value)
			}
		}
	}
}
