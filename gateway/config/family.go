package config

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// family picks the engine of an upstream. It is the one place that does, by what is configured alone:
//
//	command                               legacy over stdio
//	command + protocol: modern            modern over stdio
//	ws, wss url                           legacy over WebSocket
//	http, https url                       modern over Streamable HTTP
//	the same + protocol: legacy           legacy over Streamable HTTP
//	the same + transport: sse             legacy over HTTP+SSE
//
// It reports false after refusing what the table has no row for.
func (l *loader) family(d *draft) (Engine, bool) {
	before := len(l.problems)
	command, url := d.has("command"), d.has("url")
	var engine Engine
	switch {
	case !command && !url && (l.meant(d.at.path, "command") || l.meant(d.at.path, "url")):
		return "", false
	case !command && !url:
		l.refuse(d.at, "needs command (a server to start) or url (a server to reach)")
		return "", false
	case command && url && d.transport == "":
		if !l.refused(d.at.path + ".transport") {
			l.refuse(d.given["url"], "command and url stand together: take one out, or say with transport which one counts")
		}
		return "", false
	case command && (!url || d.transport == "stdio"):
		engine = l.childFamily(d)
	default:
		engine = l.urlFamily(d)
	}
	if engine != "" && engine.modern() && d.has("revision") {
		l.refuse(d.given["revision"], "has no effect on a modern upstream, take it out")
	}
	return engine, engine != "" && len(l.problems) == before
}

func (l *loader) childFamily(d *draft) Engine {
	if d.transport != "" && d.transport != "stdio" {
		l.refuse(d.given["transport"], "%s needs url, and a command is always stdio: take it out", d.transport)
	}
	if !d.has("url") {
		if at, has := d.given["headers"]; has {
			l.refuse(at, "has no effect on a command, take it out; a child gets its settings by env or args")
		}
		if at, has := d.given["forward_headers"]; has {
			l.refuse(at, "has no effect on a command, which is sent no headers: take it out")
		}
		if at, has := d.given["credential"]; has {
			l.refuse(at, "has no effect on a command, give the child its credential by env")
		}
	}
	if d.protocol == "modern" {
		return ModernStdio
	}
	return LegacyStdio
}

func (l *loader) urlFamily(d *draft) Engine {
	if !d.has("command") {
		for _, name := range []string{"args", "env", "cwd", "inherit_env"} {
			if at, has := d.given[name]; has {
				l.refuse(at, "has no effect on a url, take it out; it is for a command")
			}
		}
	}
	if d.transport == "stdio" {
		l.refuse(d.given["transport"], "stdio needs command, and this upstream has a url: take it out")
	}
	if d.address == nil {
		return ""
	}
	if d.address.Scheme == "ws" || d.address.Scheme == "wss" {
		if d.transport == "http" || d.transport == "sse" {
			l.refuse(d.given["transport"], "%s disagrees with the url, whose %s is WebSocket: take it out, or write http or https", d.transport, d.address.Scheme)
		}
		if d.protocol == "modern" {
			l.refuse(d.given["protocol"], "modern is not defined over WebSocket, take it out")
		}
		if at, has := d.given["forward_headers"]; has {
			l.refuse(at, "has no effect on WebSocket, where all calls share one connection: take it out")
		}
		return LegacyWebSocket
	}
	switch {
	case d.transport == "websocket":
		l.refuse(d.given["transport"], "websocket disagrees with the url: write ws or wss there, or take it out")
	case d.transport == "sse" && d.protocol != "legacy":
		l.refuse(d.given["transport"], "sse is a legacy transport, add protocol: legacy")
	case d.transport == "sse":
		return LegacySSE
	case d.protocol == "legacy":
		return LegacyHTTP
	}
	return ModernHTTP
}

// readURL checks an upstream's url.
func readURL(l *loader, d *draft, at place) {
	d.url, d.address, _ = l.absolute(at, absoluteRule{
		schemes: []string{"http", "https", "ws", "wss"}, begin: "http://, https://, ws:// or wss://",
		example: "https://mcp.example.com/mcp", instead: "say credential or headers", userless: []string{"http", "https"},
	})
}

// An absoluteRule is what a url may be.
type absoluteRule struct {
	schemes  []string
	begin    string // schemes in words
	example  string
	userless []string // the schemes where a user may not stand in the url
	instead  string   // what to do in place of a user there
}

// absolute reads a url with a host. No message quotes any of it.
func (l *loader) absolute(at place, rule absoluteRule) (value, *url.URL, bool) {
	v, ok := l.text(at)
	if !ok {
		return value{}, nil, false
	}
	l.embedded(v.text)
	u, err := url.Parse(v.text)
	if err != nil || strings.ContainsFunc(v.text, func(r rune) bool { return r <= ' ' || control(r) }) {
		l.refuse(at, "is not a valid url, write one such as %s", rule.example)
		return value{}, nil, false
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case !slices.Contains(rule.schemes, u.Scheme):
		l.refuse(at, "must begin with %s", rule.begin)
	case u.Port() != "" && (err != nil || port == 0):
		l.refuse(at, "has a port that is not from 1 to 65535")
	case u.Hostname() == "":
		l.refuse(at, "has no host, write one such as %s", rule.example)
	case u.User != nil && slices.Contains(rule.userless, u.Scheme):
		l.refuse(at, "has a user or password in it: take it out, and %s instead", rule.instead)
	case u.Fragment != "" || strings.Contains(v.text, "#"):
		l.refuse(at, "has a fragment, which is never sent: take it out")
	default:
		return v, u, true
	}
	return value{}, nil, false
}
