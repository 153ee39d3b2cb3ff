package config

import (
	"encoding/base64"
	"net/url"
	"os"
	"slices"
	"strings"

	"mcp-gateway/redact"
)

// credentialVariable reports whether an environment variable is a credential: by its name, unless its value only
// says where something is.
func credentialVariable(name, text string) bool {
	return redact.CredentialName(name) && !pointer(text)
}

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

// variable makes the credentials of one variable known and warns of a literal one.
func (l *loader) variable(i item) {
	if l.embedded(i.value.text) {
		l.literal(i.at, i.value)
		return
	}
	if !credentialVariable(i.name, i.value.text) {
		l.suspect(i)
		return
	}
	s := l.secret(i.value.text)
	if s.IsZero() {
		return
	}
	l.literal(i.at, i.value)
	l.weak(i.at, s)
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
		switch dashed := strings.HasPrefix(text, "-"); {
		case dashed && both:
			i.name, i.value.text = strings.TrimLeft(name, "-"), inline
			flag = ""
		case dashed:
			flag = strings.TrimLeft(text, "-")
			continue
		case both && redact.CredentialName(name): // docker run -e NAME=value
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
		l.variable(i)
	}
	return out
}

// suspect warns of a literal that looks like a well-known kind of token under a name that does not say so.
func (l *loader) suspect(i item) {
	text := i.value.text
	if len(text) < 20 || i.value.referenced {
		return
	}
	for _, start := range []string{"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "xoxb-", "xoxp-", "AKIA", "eyJ", "mcpgw_", "npm_"} {
		if strings.HasPrefix(text, start) {
			l.secret(text)
			l.literal(i.at, i.value)
			return
		}
	}
}

// header makes the credentials of one header known and warns of what is wrong with them. A value that is no
// credential is known with its name only: it may be an ordinary word.
func (l *loader) header(i item, cleartext bool) {
	text := strings.TrimSpace(i.value.text)
	l.embedded(text)
	scheme, rest, two := strings.Cut(text, " ")
	if !redact.CredentialName(i.name) && !redact.CredentialShape(text) {
		l.secret(i.name + ": " + text)
		l.suspect(i)
		return
	}
	s := l.secret(text)
	if rest = strings.TrimSpace(rest); two && !strings.Contains(rest, " ") {
		s = l.secret(rest)
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
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return
	}
	l.secret(string(raw))
	if _, password, ok := strings.Cut(string(raw), ":"); ok {
		l.secret(password)
	}
}

// address warns of the credentials of an upstream's url.
func (l *loader) address(d *draft, cleartext bool) {
	if !l.urlSecrets(d.address) {
		return
	}
	l.literal(d.given["url"], d.url)
	if cleartext {
		l.cleartext(d.given["url"])
	}
}

// embedded makes known the credentials of a url that is the value of something else, such as DATABASE_URL. It reports
// whether there is one.
func (l *loader) embedded(text string) bool {
	if !strings.Contains(text, "://") {
		return false
	}
	u, err := url.Parse(text)
	return err == nil && l.urlSecrets(u)
}

// urlSecrets makes the credentials of u known, as written and as decoded: its userinfo, and the query values and path
// segments that are credentials by name or by shape. It reports whether there is one.
func (l *loader) urlSecrets(u *url.URL) bool {
	found := false
	known := func(text string) {
		found = true
		l.secret(text)
		if plain, err := url.QueryUnescape(text); err == nil {
			l.secret(plain)
		}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		plain := u.User.Username() + ":" + password
		for _, text := range []string{u.User.String(), plain, password, base64.StdEncoding.EncodeToString([]byte(plain))} {
			l.secret(text)
		}
		found = true
	}
	for field := range strings.SplitSeq(u.RawQuery, "&") {
		name, text, _ := strings.Cut(field, "=")
		if plain, err := url.QueryUnescape(name); err == nil && redact.CredentialName(plain) || redact.CredentialShape(text) {
			if text != "" {
				known(text)
			}
		}
		if redact.CredentialShape(name) {
			known(name)
		}
	}
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		if redact.CredentialShape(segment) && !words(segment) {
			known(segment)
		}
	}
	return found
}

// words reports whether segment is words joined by - _ or ., such as a package's name: its parts have letters only,
// or digits only where they are short.
func words(segment string) bool {
	parts := strings.FieldsFunc(segment, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool { return len(part) >= 16 || !oneKind(part) })
}

// ambient returns the credentials that come with the gateway's own environment: the proxies' userinfo, and all that a
// child inherits.
func ambient(c *Config) []redact.Secret {
	l := newLoader("")
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"} {
		l.embedded(os.Getenv(name))
	}
	if slices.ContainsFunc(c.Upstreams, func(u Upstream) bool { return u.InheritEnv }) {
		for _, pair := range os.Environ() {
			name, text, _ := strings.Cut(pair, "=")
			if credentialVariable(name, text) {
				l.secret(text)
			}
			l.embedded(text)
		}
	}
	return l.secrets
}
