package config

import (
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A credential is what an upstream's credential has, before it is known whether it counts.
type credential struct {
	source string // which of sources it is; "" where there is none, or more than one
	bearer item
	file   string // of a bearer that is read again when it changes
	helper []item
	oauth2 grant
	query  item
	at     place // of the source
}

var sources = []string{"bearer", "command", "oauth2"}

var credentialMembers = []member[draft]{
	{"bearer", scalar("the token, sent as `Authorization: Bearer`; a lone `${file:PATH}` is read again when the file changes, and when the token is refused"), readBearer},
	{"command", helperSchema(), readHelper},
	{"oauth2", oauth2Schema(), func(l *loader, d *draft, at place) { readOAuth2(l, &d.credential.oauth2, at) }},
	{"query", scalar("over WebSocket: the parameter of the url that holds the token, in place of `Authorization`").like("^[A-Za-z0-9._~-]+$").without("none"), readQuery},
}

func credentialSchema() schema {
	s := object("what the gateway shows the server; exactly one of `bearer`, `command` and `oauth2`", credentialMembers).without("nothing")
	for _, name := range sources {
		s.OneOf = append(s.OneOf, having(name))
	}
	return s
}

func helperSchema() schema {
	list := listOf("", scalar("")).filled()
	return schema{
		Description: "a program that prints the token, or JSON with `access_token` and `expires_in`; a list has its arguments too",
		AnyOf:       []schema{scalar(""), list},
	}
}

func readCredential(l *loader, d *draft, at place) {
	given, ok := readMembers(l, at, credentialMembers, d)
	if !ok {
		return
	}
	c := &d.credential
	for _, name := range sources {
		where, has := given[name]
		switch {
		case !has:
		case c.source == "":
			c.source, c.at = name, where
		default:
			l.refuse(where, "stands beside credential.%s, keep one of the two", c.source)
		}
	}
	if c.source == "" && !l.refused(at.path) {
		l.refuse(at, "has no source, give it one of %s, or take credential out", strings.Join(sources, ", "))
	}
}

func readBearer(l *loader, d *draft, at place) {
	v, ok := l.text(at)
	if !ok {
		return
	}
	l.secret(v.text)
	switch {
	case v.text == "":
		l.refuse(at, "is empty, give it a token or take credential out")
	case strings.ContainsFunc(v.text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		if token, written := strings.CutPrefix(v.text, "Bearer "); written && !strings.Contains(token, " ") {
			l.refuse(at, "leave the word Bearer out, it is added")
			return
		}
		l.refuse(at, "has white space, control or non-ASCII characters, a token has none")
	default:
		d.credential.bearer = item{name: "bearer", value: v, at: at}
		d.credential.file = l.loneFile(at.node.Value)
	}
}

// loneFile returns the path of a text that is one ${file:PATH} and nothing else, "" for any other.
func (l *loader) loneFile(text string) string {
	inside, begins := strings.CutPrefix(text, "${file:")
	path := strings.TrimSuffix(inside, "}")
	switch {
	case !begins || strings.Contains(path, "}"):
		return ""
	case filepath.IsAbs(path):
		return path
	}
	return filepath.Join(l.references.dir, path)
}

// readHelper takes a list, or one program without arguments.
func readHelper(l *loader, d *draft, at place) {
	var list []item
	if at.node.Kind == yaml.ScalarNode {
		v, ok := l.text(at)
		if !ok {
			return
		}
		list = []item{{value: v, at: at}}
	} else {
		var ok bool
		if list, ok = l.texts(at); !ok {
			return
		}
	}
	switch {
	case len(list) == 0 || strings.TrimSpace(list[0].value.text) == "":
		l.refuse(at, "is empty, name the program that prints the token")
	case at.node.Kind == yaml.ScalarNode && list[0].value.commandLine():
		l.refuse(at, "is one program, write it and its arguments as a list")
	default:
		d.credential.helper = list
	}
}

// commandLine reports whether a program's name is rather a whole line of words.
func (v value) commandLine() bool {
	return !v.referenced && !strings.ContainsAny(v.text, `/\`) && strings.ContainsAny(v.text, " \t")
}

func readQuery(l *loader, d *draft, at place) {
	v, ok := l.text(at)
	switch {
	case !ok:
	case v.text == "" || strings.ContainsFunc(v.text, func(r rune) bool { return !publicRune(r) && r != '.' && r != '~' }):
		l.refuse(at, "is not the name of a url's parameter: letters, digits and - . _ ~ only")
	default:
		d.credential.query = item{value: v, at: at}
	}
}

// finishCredential fills in the one source there is.
func (l *loader) finishCredential(d *draft, cleartext bool) {
	c := &d.credential
	if query := c.query.value.text; query != "" && d.address != nil {
		switch {
		case d.address.Scheme != "ws" && d.address.Scheme != "wss":
			l.refuse(c.query.at, "is for WebSocket, over HTTP a token is sent as Authorization: take it out")
		case d.address.Query().Has(query):
			l.refuse(c.query.at, "is a parameter that the url has already, keep one")
		}
	}
	found := &Credential{Query: c.query.value.text}
	switch {
	case c.bearer.value.text != "":
		token := l.secret(c.bearer.value.text)
		if found.BearerFile = c.file; c.file == "" {
			found.Bearer = token
		}
		l.literal(c.at, c.bearer.value)
		l.weak(c.at, token)
	case c.helper != nil:
		found.Command = l.arguments(c.helper)
	case !c.oauth2.TokenURL.IsZero():
		found.OAuth2 = l.finishOAuth2(&c.oauth2)
	default:
		return
	}
	d.up.Credential = found
	if cleartext {
		l.cleartext(c.at)
	}
}
