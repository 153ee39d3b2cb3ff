package config

import (
	"net/url"
	"strings"

	"mcp-gateway/redact"
)

// A grant is an oauth2 as it is written.
type grant struct {
	OAuth2
	endpoint        *url.URL // nil where it is absent or refused
	written         item     // the endpoint
	secret, refresh item
}

var oauth2Members = []member[grant]{
	{"token_url", form("where tokens are granted, `https://…`", "^[Hh][Tt][Tt][Pp][Ss]?://[^/]"), readTokenURL},
	{"client_id", scalar("the gateway's name there; needed with `client_secret`"), readClientID},
	{"client_secret", scalar("its secret there"), func(l *loader, g *grant, at place) { g.secret = l.credentialText(at) }},
	{"refresh_token", scalar("what a token is refreshed with; without one the grant is that of client credentials"),
		func(l *loader, g *grant, at place) { g.refresh = l.credentialText(at) }},
	{"scopes", listOf("the scopes to ask for", scalar("").like(`^[!#-\[\]-~]+$`)).filled().without("none"), readScopes},
	{"resource", form("the server that the token is for (RFC 8707)", "^[A-Za-z][A-Za-z0-9+.-]*:").without("none"), readResource},
}

func oauth2Schema() schema {
	s := object("the grant of an authorization server that gives the token", oauth2Members)
	s.Required = []string{"token_url"}
	s.AnyOf = []schema{having("client_id", "client_secret"), {Required: []string{"refresh_token"}, Not: &schema{Required: []string{"client_secret"}}}}
	return s
}

func readOAuth2(l *loader, g *grant, at place) {
	given, ok := readMembers(l, at, oauth2Members, g)
	if !ok || l.refused(at.path) {
		return
	}
	has := func(name string) bool { _, has := given[name]; return has }
	switch {
	case !has("token_url"):
		l.refuse(at, "has no token_url, say where tokens are granted")
	case !has("client_secret") && !has("refresh_token"):
		l.refuse(at, "has neither client_secret nor refresh_token, give it the one that the server wants")
	case has("client_secret") && !has("client_id"):
		l.refuse(at, "has a client_secret without its client_id, give it both")
	}
}

func readTokenURL(l *loader, g *grant, at place) {
	v, u, ok := l.absolute(at, absoluteRule{
		schemes: []string{"https", "http"}, begin: "https:// or http://", example: "https://auth.example.com/token",
		instead: "say client_id and client_secret", userless: []string{"https", "http"},
	})
	if !ok {
		return
	}
	g.TokenURL, g.endpoint, g.written = redact.NewSecret(v.text), u, item{value: v, at: at}
}

func readClientID(l *loader, g *grant, at place) {
	v, ok := l.text(at)
	switch {
	case !ok:
	case v.text == "":
		l.refuse(at, "is empty, give it a value or take it out")
	case strings.ContainsFunc(v.text, control):
		l.refuse(at, "has control characters, take them out")
	default:
		g.ClientID = v.text
	}
}

// credentialText reads a secret that is sent in a form.
func (l *loader) credentialText(at place) item {
	v, ok := l.text(at)
	if !ok {
		return item{}
	}
	l.secret(v.text)
	switch {
	case strings.TrimSpace(v.text) == "":
		l.refuse(at, "is an empty credential, give it a value or take it out")
	case strings.ContainsFunc(v.text, control):
		l.refuse(at, "has control characters, take them out")
	default:
		return item{value: v, at: at}
	}
	return item{}
}

func readScopes(l *loader, g *grant, at place) {
	list, ok := l.texts(at)
	if ok && len(list) == 0 {
		l.refuse(at, "is empty, name a scope or take it out")
	}
	for _, i := range list {
		// A scope-token of RFC 6749, 3.3.
		if i.value.text == "" || strings.ContainsFunc(i.value.text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			l.refuse(i.at, "is not one scope: printable ASCII without white space, quotes and backslashes")
			continue
		}
		g.Scopes = append(g.Scopes, i.value.text)
	}
}

func readResource(l *loader, g *grant, at place) {
	v, ok := l.text(at)
	if !ok {
		return
	}
	u, err := url.Parse(v.text)
	if err != nil || u.Scheme == "" || strings.Contains(v.text, "#") || u.User != nil || strings.ContainsFunc(v.text, func(r rune) bool { return r <= ' ' || control(r) }) {
		l.refuse(at, "is not an absolute url without user and fragment, write one such as https://mcp.example.com/mcp")
		return
	}
	l.embedded(v.text)
	g.Resource = v.text
}

func (l *loader) finishOAuth2(g *grant) *OAuth2 {
	if l.embedded(g.written.value.text) {
		l.literal(g.written.at, g.written.value)
	}
	if unencrypted(g.endpoint) {
		l.cleartext(g.written.at)
	}
	for _, s := range []struct {
		i    item
		into *redact.Secret
	}{{g.secret, &g.ClientSecret}, {g.refresh, &g.RefreshToken}} {
		if s.i.value.text == "" {
			continue
		}
		*s.into = redact.NewSecret(s.i.value.text)
		l.literal(s.i.at, s.i.value)
		l.weak(s.i.at, *s.into)
	}
	return &g.OAuth2
}
