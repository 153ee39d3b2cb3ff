package config

import (
	"net/textproto"
	"strings"

	"go.yaml.in/yaml/v4"

	"mcp-gateway/redact"
)

// reserved are headers that an upstream's configuration may not set, and why.
var reserved = map[string]string{
	"Idempotency-Key":          "would make the HTTP client send a call again after it may have run",
	"X-Idempotency-Key":        "would make the HTTP client send a call again after it may have run",
	"Host":                     "comes from the url",
	"Content-Length":           "is the gateway's own",
	"Content-Type":             "is the gateway's own",
	"Content-Encoding":         "is the gateway's own",
	"Accept":                   "is the gateway's own",
	"Accept-Encoding":          "is the gateway's own",
	"Last-Event-Id":            "is the gateway's own",
	"Expect":                   "is the gateway's own",
	"Connection":               "belongs to one connection",
	"Keep-Alive":               "belongs to one connection",
	"Proxy-Connection":         "belongs to one connection",
	"Proxy-Authorization":      "belongs to one connection, put the proxy's credential into HTTPS_PROXY",
	"Proxy-Authenticate":       "belongs to one connection",
	"Te":                       "belongs to one connection",
	"Trailer":                  "belongs to one connection",
	"Transfer-Encoding":        "belongs to one connection",
	"Upgrade":                  "belongs to one connection",
	"Http2-Settings":           "belongs to one connection",
	"Sec-Websocket-Key":        "is the gateway's own",
	"Sec-Websocket-Accept":     "is the gateway's own",
	"Sec-Websocket-Version":    "is the gateway's own",
	"Sec-Websocket-Extensions": "is the gateway's own",
	"Sec-Websocket-Protocol":   "is the gateway's own",
}

// readHeaders reads the fixed headers of a url upstream. No message quotes a value.
func readHeaders(l *loader, d *draft, at place) {
	list, _ := l.entries(at)
	first := map[string]string{}
	for _, e := range list {
		v, ok := l.text(e.at)
		if !ok {
			continue
		}
		name := textproto.CanonicalMIMEHeaderKey(e.name)
		reason, refused := reserved[name]
		if strings.HasPrefix(name, "Mcp-") {
			reason, refused = protocolHeader, true
		}
		switch {
		case !token(e.name):
			l.refuse(e.named(at), "has a member that is not a header's name: letters, digits and - only")
		case refused:
			l.refuse(e.at, "%s, take it out", reason)
		case first[name] != "":
			l.refuse(e.at, "is the same header as %s, keep one", first[name])
		case strings.ContainsFunc(v.text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			l.refuse(e.at, "has control characters in its value, take them out")
		case strings.TrimSpace(v.text) == "" && redact.CredentialName(e.name):
			l.refuse(e.at, "is an empty credential, give it a value or take it out")
		default:
			first[name] = e.name
			d.headers = append(d.headers, item{name: e.name, value: v, at: e.at})
		}
	}
}

// forwardMembers are those of a header that goes on, where it is more than a name.
var forwardMembers = []member[forward]{
	{"name", scalar("the header's name").like(tokenPattern), func(l *loader, f *forward, at place) { f.readName(l, at) }},
	{"required", boolean("refuse a call without it"), func(l *loader, f *forward, at place) { f.Required = l.boolean(at) }},
}

type forward struct {
	ForwardHeader
	at place // of the name
}

func forwardSchema() schema {
	name, object := forwardMembers[0].schema, object("", forwardMembers)
	name.Description, object.Required = "", []string{"name"}
	s := listOf("headers of the caller's request that go on to it, each a name or `{name: NAME, required: true}`; over HTTP only",
		schema{AnyOf: []schema{name, object}})
	return s.without("none")
}

// readForwardHeaders reads which of a caller's headers go on. What lets the caller into the gateway never does, nor
// what belongs to one connection or to the protocol.
func readForwardHeaders(l *loader, d *draft, at place) {
	list, _ := l.items(at)
	first := map[string]string{}
	for _, p := range list {
		f := forward{at: p}
		if p.node.Kind == yaml.MappingNode {
			given, _ := readMembers(l, p, forwardMembers, &f)
			if _, has := given["name"]; !has && !l.refused(p.path) {
				l.refuse(p, "has no name, say which header goes on")
			}
		} else {
			f.readName(l, p)
		}
		if f.Name == "" {
			continue
		}
		name := textproto.CanonicalMIMEHeaderKey(f.Name)
		if first[name] != "" {
			l.refuse(f.at, "is the same header as %s, keep one", first[name])
			continue
		}
		first[name] = p.path
		d.forward = append(d.forward, item{name: f.Name, at: f.at})
		d.up.ForwardHeaders = append(d.up.ForwardHeaders, f.ForwardHeader)
	}
}

func (f *forward) readName(l *loader, at place) {
	v, ok := l.text(at)
	if !ok {
		return
	}
	f.at = at
	if !token(v.text) {
		l.refuse(at, "is not a header's name: letters, digits and - only")
	} else if reason := staysHere(textproto.CanonicalMIMEHeaderKey(v.text)); reason != "" {
		l.refuse(at, "%s, take it out", reason)
	} else {
		f.Name = v.text
	}
}

// staysHere says why a caller's header of this canonical name never goes on, "" where it may.
func staysHere(name string) string {
	switch {
	case name == "Authorization":
		return "is what a caller shows the gateway and never goes on, an upstream has credential for its own"
	case name == "Cookie" || name == "Forwarded" || strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded-"):
		return "is between the caller and the gateway and never goes on"
	case strings.HasPrefix(name, "Mcp-"):
		return protocolHeader
	}
	return reserved[name]
}

const protocolHeader = "is part of the protocol, the gateway writes it"

// tokenPattern is what token takes.
const tokenPattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

// token reports whether name is a token of RFC 9110, 5.6.2.
func token(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// readEnv reads a child's own variables.
func readEnv(l *loader, d *draft, at place) {
	list, _ := l.entries(at)
	for _, e := range list {
		v, ok := l.text(e.at)
		switch {
		case !ok:
		case e.name == "" || strings.ContainsAny(e.name, "=\x00"):
			l.refuse(e.named(at), "has a member that is not a variable's name: no = and not empty")
		default:
			d.env = append(d.env, item{name: e.name, value: v, at: e.at})
		}
	}
}
