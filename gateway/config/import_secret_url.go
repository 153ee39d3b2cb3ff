package config

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"

	"mcp-gateway/redact"
)

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
		if n := strings.IndexAny(text[from:], " \t\r\n\"'`<>"); n >= 0 && (strings.Count(text, "://") > 1 || !wholeURL.MatchString(text)) {
			end = from + n
		}
		list = append(list, partSpans(text, from, end)...)
	}
}

// wholeURL begins a text that has one url and nothing before it, whose password may have any character in it.
var wholeURL = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.:-]*://`)

func partSpans(text string, from, end int) []span {
	var list []span
	add := func(s span) {
		if s.from < s.to && !onlyReference(text[s.from:s.to]) {
			list = append(list, s)
		}
	}
	host := from
	authority := from + segment(text[from:end], "/?#")
	last := strings.LastIndexByte(text[from:authority], '@')
	if last < 0 && !validAddress(text[from:end]) {
		last = strings.LastIndexByte(text[from:end], '@') // of a password with an unescaped / ? or # in it
	}
	if last >= 0 {
		host = from + last + 1
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

// validAddress reports whether text is a url's authority and what follows.
func validAddress(text string) bool {
	_, err := url.Parse("x://" + strings.Map(one, text))
	return err == nil
}

// one is 1 for a placeholder: as good in a port as in a host or a path.
func one(r rune) rune {
	if isPlaceholder(r) {
		return '1'
	}
	return r
}

// segment is how long text is before the first of ends.
func segment(text, ends string) int {
	if n := strings.IndexAny(text, ends); n >= 0 {
		return n
	}
	return len(text)
}

func shapedPart(text string) bool { return redact.CredentialShape(text) && !ordinary(text) }
