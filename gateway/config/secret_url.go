package config

import (
	"net/url"
	"slices"
	"strings"

	"mcp-gateway/redact"
)

// address makes the credentials of an upstream's url known and warns of them.
func (l *loader) address(d *draft, cleartext bool) {
	if d.address == nil || !l.embedded(d.url.text) {
		return
	}
	l.literal(d.given["url"], d.url)
	if cleartext {
		l.cleartext(d.given["url"])
	}
}

// embedded makes known the credentials of each url in text, such as the value of DATABASE_URL, valid or not. It reports
// whether there is one.
func (l *loader) embedded(text string) bool {
	found := false
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			return found
		}
		begin := i
		for begin > 0 && schemeByte(text[begin-1]) {
			begin--
		}
		end := len(text)
		if n := strings.IndexAny(text[i:], " \t\r\n\"'`<>"); n >= 0 {
			end = i + n
		}
		found = l.location(text[begin:end], i-begin+len("://")) || found
		text = text[i+len("://"):]
	}
}

func schemeByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
}

// location makes known the credentials of whole, a url whose authority begins at.
func (l *loader) location(whole string, at int) bool {
	rest := whole[at:]
	n := strings.IndexAny(rest, "/?#")
	if n < 0 {
		n = len(rest)
	}
	last := strings.LastIndexByte(rest[:n], '@')
	if last < 0 {
		// A password with an unescaped / ? or # in it leaves no valid url, and is met all the same.
		if _, err := url.Parse(whole); err != nil {
			last = strings.LastIndexByte(rest, '@')
		}
	}
	userinfo := ""
	if last >= 0 {
		userinfo, rest = rest[:last], rest[last+1:]
	}
	if n = strings.IndexAny(rest, "/?#"); n < 0 {
		n = len(rest)
	}
	path, query, _ := strings.Cut(rest[n:], "?")
	path, fragment, _ := strings.Cut(path, "#")
	query, late, _ := strings.Cut(query, "#")
	if scheme := strings.ToLower(whole[:at]); !slices.Contains(webSchemes, scheme) {
		l.elsewhere(path)
		path = ""
	}
	return l.parts(userinfo, path, query, fragment, late)
}

// webSchemes begin urls whose path may be a credential, such as a webhook's. Elsewhere it names a database, a bucket or a
// file.
var webSchemes = []string{"https://", "http://", "wss://", "ws://"}

// elsewhere makes the segments of a path known that names something: only records go without what looks like a credential.
func (l *loader) elsewhere(path string) {
	for segment := range strings.SplitSeq(path, "/") {
		if redact.CredentialShape(segment) {
			l.knows(redact.Known{Text: redact.NewSecret(segment), Record: true})
		}
	}
}

// parts makes known, as written and as decoded, the credentials of a url: its userinfo, and the path segments and the
// fields of queries that are credentials by name or by shape. It reports whether there is one. What is none is known for
// records: there a url has no query.
func (l *loader) parts(userinfo, path string, queries ...string) bool {
	found := false
	if userinfo != "" {
		plain, err := url.PathUnescape(userinfo)
		if err != nil {
			plain = userinfo
		}
		l.userinfo(userinfo, plain)
		found = true
	}
	for segment := range strings.SplitSeq(path, "/") {
		found = l.shaped(segment) || found
	}
	for _, query := range queries {
		for field := range strings.SplitSeq(query, "&") {
			found = l.field(field) || found
		}
	}
	return found
}

// field handles one name=value of a query.
func (l *loader) field(field string) bool {
	name, text, _ := strings.Cut(field, "=")
	found := l.shaped(name)
	plainName, err := url.QueryUnescape(name)
	if err != nil {
		plainName = name
	}
	switch {
	case text == "":
		return found
	case redact.CredentialName(fieldName(plainName)):
		l.named(name, text)
		if plain, err := url.QueryUnescape(text); err == nil {
			l.named(name, plain)
		}
		return true
	case l.shaped(text):
		return true
	case name != "":
		l.knows(redact.Known{Text: redact.NewSecret(text), Name: name, Record: true})
	}
	return found
}

// shaped makes text known if it has the shape of a credential, and reports whether it may be one.
func (l *loader) shaped(text string) bool {
	if !redact.CredentialShape(text) {
		return false
	}
	list := []string{text}
	if plain, err := url.PathUnescape(text); err == nil && plain != text {
		list = append(list, plain)
	}
	record := ordinary(text)
	for _, t := range list {
		l.knows(redact.Known{Text: redact.NewSecret(t), Record: record})
	}
	return !record
}

// userinfo makes a user and password known, as they are written and as they are: together, the password by itself, and
// the user where that could be a token.
func (l *loader) userinfo(written, plain string) {
	user, password, both := strings.Cut(plain, ":")
	sent := url.User(user).String()
	if both {
		sent = url.UserPassword(user, password).String()
	}
	for _, text := range []string{written, plain, sent} {
		l.knows(redact.Known{Text: redact.NewSecret(text), Userinfo: true})
	}
	_, writtenPassword, _ := strings.Cut(written, ":")
	l.secret(writtenPassword)
	l.secret(password)
	if redact.CredentialShape(user) {
		l.secret(user)
	}
}
