package config

import (
	"encoding/base64"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"mcp-gateway/redact"
)

// credentialVariable reports whether an environment variable is a credential: by its name, unless its value only
// says where something is, or is a switch.
func credentialVariable(name, text string) bool {
	return redact.CredentialName(name) && !pointer(text) && !slices.Contains(switches, strings.ToLower(text))
}

// switches are values that say nothing under any name: USE_AUTH=true.
var switches = []string{"true", "false", "yes", "no", "on", "off"}

// pointer reports whether text is a path, or a url without userinfo. A path with a part that could be a credential
// is none: some credentials begin with a slash.
func pointer(text string) bool {
	if u, err := url.Parse(text); err == nil && u.Scheme != "" && u.Host != "" {
		return u.User == nil
	}
	for _, start := range []string{"/", "./", "../", "~/"} {
		if strings.HasPrefix(text, start) {
			return !slices.ContainsFunc(strings.Split(text, "/"), redact.CredentialShape)
		}
	}
	return false
}

// knows makes known what the gateway keeps out of what it shows.
func (l *loader) knows(k redact.Known) redact.Secret {
	if !k.Text.IsZero() {
		l.known = append(l.known, k)
	}
	return k.Text
}

// secret makes text known as a credential.
func (l *loader) secret(text string) redact.Secret {
	return l.knows(redact.Known{Text: redact.NewSecret(text)})
}

// named makes text known as the credential called name.
func (l *loader) named(name, text string) redact.Secret {
	return l.knows(redact.Known{Text: redact.NewSecret(text), Name: name})
}

// odd reports whether text looks like a credential and like nothing else. Names of models, revisions, databases and
// buckets may look so too: without a name that says more, records alone go without it.
func odd(text string) bool {
	return redact.CredentialShape(text) && !pointer(text) && !ordinary(text) && oneWord(text)
}

// random reports whether a part of text is made as nobody makes a name: capitals, small letters and digits, of which each third
// or so is of another kind than the one before it.
func random(text string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, joint), func(part string) bool {
		var seen [3]bool
		changes, before := 0, -1
		for _, r := range part {
			kind := 0
			switch {
			case r >= 'a' && r <= 'z':
				kind = 1
			case r >= '0' && r <= '9':
				kind = 2
			}
			if seen[kind] = true; kind != before && before >= 0 {
				changes++
			}
			before = kind
		}
		return len(part) >= 16 && seen == [3]bool{true, true, true} && 3*changes >= len(part)
	})
}

// assigned makes known the credentials of a value that has a name, or of one without, and warns of literal ones.
func (l *loader) assigned(i item) {
	text := i.value.text
	embedded := l.within(text)
	switch {
	case credentialVariable(i.name, text) && text != "":
		s := l.named(i.name, text)
		l.literal(i.at, i.value)
		l.weak(i.at, s)
		return
	case embedded:
		l.literal(i.at, i.value)
	case l.suspect(i):
	case odd(text) && random(text):
		l.secret(text)
	case odd(text):
		l.knows(redact.Known{Text: redact.NewSecret(text), Record: true})
	}
	if i.name != "" {
		l.knows(redact.Known{Text: redact.NewSecret(text), Name: i.name, Record: true})
	}
}

// arguments makes the credentials among a command's arguments known: `--token X`, `--token=X`, `TOKEN=X`, a header's
// line, urls.
func (l *loader) arguments(args []item) []redact.Secret {
	out := make([]redact.Secret, 0, len(args))
	flag := ""
	for _, i := range args {
		out = append(out, redact.NewSecret(i.value.text))
		text := i.value.text
		name, inline, both := strings.Cut(text, "=")
		if both {
			l.pairs(text) // its first name may be that of a pair like the others, and not of all that follows
		}
		switch dashed := strings.HasPrefix(text, "-"); {
		case dashed && both:
			i.name, i.value.text = strings.TrimLeft(name, "-"), inline
			flag = ""
		case dashed:
			flag = strings.TrimLeft(text, "-")
			continue
		case both && token(name): // docker run -e NAME=value
			i.name, i.value.text, flag = name, inline, ""
		default:
			i.name, flag = flag, ""
		}
		// npx mcp-remote … --header "Authorization: Bearer X"
		if name, header, is := strings.Cut(i.value.text, ":"); is && token(name) && redact.CredentialName(name) {
			i.name, i.value.text = name, header
			l.header(i, false)
			continue
		}
		l.assigned(i)
	}
	return out
}

// tokenStarts are what well-known kinds of tokens begin with.
var tokenStarts = []string{"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "xoxb-", "xoxp-", "AKIA", "eyJ", "mcpgw_", "npm_"}

// suspect makes a text known that is a well-known kind of token under a name that does not say so, warns of it, and
// reports whether it is one.
func (l *loader) suspect(i item) bool {
	if !wellKnown(i.value.text) {
		return false
	}
	l.secret(i.value.text)
	l.literal(i.at, i.value)
	return true
}

func wellKnown(text string) bool {
	return len(text) >= 20 && slices.ContainsFunc(tokenStarts, func(start string) bool { return strings.HasPrefix(text, start) })
}

// header makes the credentials of one header known and warns of what is wrong with them. A value that is no
// credential is known with its name only: it may be an ordinary word.
func (l *loader) header(i item, cleartext bool) {
	text := strings.TrimSpace(i.value.text)
	l.embedded(text)
	known := redact.Known{Text: redact.NewSecret(text), Name: i.name, Header: true}
	if !redact.CredentialName(i.name) && (!redact.CredentialShape(text) || ordinary(text)) {
		known.Record = true
		l.knows(known)
		l.suspect(i)
		return
	}
	s := l.knows(known)
	scheme, rest, two := strings.Cut(text, " ")
	if rest = strings.TrimSpace(rest); two && !strings.Contains(rest, " ") {
		s = l.named(i.name, rest)
		if strings.EqualFold(scheme, "Basic") {
			l.basic(rest)
		}
	}
	l.literal(i.at, i.value)
	l.weak(i.at, s)
	if cleartext {
		l.cleartext(i.at)
	}
}

func (l *loader) basic(encoded string) {
	if raw, err := base64.StdEncoding.DecodeString(encoded); err == nil {
		l.userinfo(string(raw), string(raw))
	}
}

// ordinary reports whether text has the shape of a credential and yet is none: a UUID, or words joined by - _ or ., such
// as a package's name, whose parts have letters only, or digits only where they are short.
func ordinary(text string) bool {
	if uuid.MatchString(text) {
		return true
	}
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool { return len(part) >= 16 || !oneKind(part) })
}

var uuid = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// oneWord reports whether text is made of letters, digits, - and _: options, lists and names with dots are not.
func oneWord(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !publicRune(r) })
}

// ambient makes known the credentials that come with the gateway's own environment: the proxies' userinfo, and all that a
// child inherits.
func (l *loader) ambient(c *Config) {
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"} {
		proxy := os.Getenv(name)
		if !strings.Contains(proxy, "://") {
			proxy = "http://" + proxy // a proxy may be named without its scheme
		}
		l.embedded(proxy)
	}
	if !slices.ContainsFunc(c.Upstreams, func(u Upstream) bool { return u.InheritEnv }) {
		return
	}
	for _, pair := range os.Environ() {
		name, text, _ := strings.Cut(pair, "=")
		switch {
		case credentialVariable(name, text):
			l.named(name, text)
		case wellKnown(text):
			l.secret(text)
		}
		l.within(text)
	}
}

// credentials returns what is known but for what only records are cleaned of.
func (l *loader) credentials() []redact.Known {
	return slices.DeleteFunc(slices.Clone(l.known), func(k redact.Known) bool { return k.Record })
}

// gathered returns all that is known, each once. A text that is no credential and stands in the public name of an
// upstream or a caller is left out: records would hide that name too.
func (l *loader) gathered(c *Config) []redact.Known {
	public := c.Callers.Names()
	for _, u := range c.Upstreams {
		public = append(public, u.ID, u.Prefix)
	}
	type content struct {
		text                     string
		name                     string
		header, userinfo, record bool
	}
	seen := make(map[content]bool, len(l.known))
	return slices.DeleteFunc(l.known, func(k redact.Known) bool {
		id := content{k.Text.Reveal(), k.Name, k.Header, k.Userinfo, k.Record}
		if seen[id] {
			return true
		}
		seen[id] = true
		return k.Record && k.Name == "" && slices.ContainsFunc(public, func(name string) bool { return strings.Contains(name, id.text) })
	})
}
