package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/redact"
)

// The defaults and bounds of an upstream.
const (
	defaultTimeout      = 5 * time.Minute
	defaultStartTimeout = 2 * time.Minute
	defaultReconnectMin = 500 * time.Millisecond
	defaultReconnectMax = 30 * time.Second

	maxUpstreams = 1000
	maxPattern   = 256 // characters of a glob
)

var upstreamID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// A draft is an upstream as it is written, before the family table has said what of it counts.
type draft struct {
	up    Upstream
	at    place
	given map[string]place

	url                value
	address            *url.URL // nil where url is absent or refused
	protocol           string
	transport          string
	args, env, headers []item
	bearer             item
}

func (d *draft) has(name string) bool { _, has := d.given[name]; return has }

var upstreamMembers = []member[draft]{
	{"command", readCommand},
	{"args", func(l *loader, d *draft, at place) { d.args, _ = l.texts(at) }},
	{"env", readEnv},
	{"inherit_env", func(l *loader, d *draft, at place) { d.up.InheritEnv = l.boolean(at) }},
	{"cwd", func(l *loader, d *draft, at place) { d.up.Cwd = l.folder(at) }},
	{"url", readURL},
	{"headers", readHeaders},
	{"protocol", func(l *loader, d *draft, at place) { d.protocol, _ = l.word(at, "modern", "legacy") }},
	{"transport", func(l *loader, d *draft, at place) {
		d.transport, _ = l.word(at, "stdio", "websocket", "http", "sse")
	}},
	{"revision", readRevision},
	{"prefix", readPrefix},
	{"timeout", func(l *loader, d *draft, at place) { l.duration(at, time.Millisecond, &d.up.Timeout) }},
	{"start_timeout", func(l *loader, d *draft, at place) { l.duration(at, time.Millisecond, &d.up.StartTimeout) }},
	{"reconnect", readReconnect},
	{"tools", func(l *loader, d *draft, at place) { readMembers(l, at, toolsMembers, d) }},
	{"credential", readCredential},
}

var reconnectMembers = []member[Reconnect]{
	{"min", func(l *loader, r *Reconnect, at place) { l.duration(at, time.Millisecond, &r.Min) }},
	{"max", func(l *loader, r *Reconnect, at place) { l.duration(at, time.Millisecond, &r.Max) }},
}

var toolsMembers = []member[draft]{
	{"allow", func(l *loader, d *draft, at place) {
		d.up.Tools.Allow = l.patterns(at)
		if d.up.Tools.Allow != nil && len(d.up.Tools.Allow) == 0 && !l.refused(at.path) {
			l.warn(at, "is empty, so no tool is shown; take it out to show all")
		}
	}},
	{"deny", func(l *loader, d *draft, at place) { d.up.Tools.Deny = l.patterns(at) }},
}

var credentialMembers = []member[draft]{{"bearer", readBearer}}

// readUpstreams reads each upstream, in file order.
func readUpstreams(l *loader, c *Config, at place) {
	list, ok := l.entries(at)
	if !ok {
		return
	}
	if len(list) == 0 && !l.refused(at.path) {
		l.refuse(at, "is empty, name at least one upstream")
	}
	if len(list) > maxUpstreams {
		l.refuse(at, "has %d upstreams, at most %d are served", len(list), maxUpstreams)
		return
	}
	var drafts []*draft
	for _, e := range list {
		if !upstreamID.MatchString(e.name) {
			l.refuse(e.named(at), "an upstream's id has 1 to 31 lower-case letters, digits and -, and begins with a letter")
		}
		d := &draft{at: e.at, up: Upstream{
			ID: e.name, Prefix: e.name + "__", Timeout: defaultTimeout, StartTimeout: defaultStartTimeout,
			Reconnect: Reconnect{Min: defaultReconnectMin, Max: defaultReconnectMax},
		}}
		if d.given, ok = readMembers(l, e.at, upstreamMembers, d); !ok {
			continue
		}
		l.finish(d)
		drafts = append(drafts, d)
		c.Upstreams = append(c.Upstreams, d.up)
	}
	l.prefixes(drafts)
}

func readCommand(l *loader, d *draft, at place) {
	v, ok := l.text(at)
	if ok && strings.TrimSpace(v.text) == "" {
		l.refuse(at, "is empty, name the program to start")
		return
	}
	if ok && !v.referenced && !strings.ContainsAny(v.text, `/\`) && strings.ContainsAny(v.text, " \t") {
		l.refuse(at, "is one program, put what follows the first space into args")
		return
	}
	d.up.Command = redact.NewSecret(v.text)
}

func readRevision(l *loader, d *draft, at place) {
	v, ok := l.text(at)
	switch {
	case !ok:
	case v.text == mcp.Modern:
		l.refuse(at, "%v is the modern revision, take this out and set protocol: modern", v)
	case !mcp.IsLegacy(v.text):
		l.refuse(at, "%v is not a revision with a handshake, write one such as %s", v, mcp.LegacyLatest)
	default:
		d.up.Revision = v.text
	}
}

func readReconnect(l *loader, d *draft, at place) {
	given, ok := readMembers(l, at, reconnectMembers, &d.up.Reconnect)
	if ok && d.up.Reconnect.Min > d.up.Reconnect.Max {
		about := at
		for _, name := range []string{"min", "max"} {
			if p, has := given[name]; has {
				about = p
				break
			}
		}
		l.refuse(about, "min is %v and max is %v, min must not be above max", d.up.Reconnect.Min, d.up.Reconnect.Max)
	}
}

func readCredential(l *loader, d *draft, at place) {
	given, ok := readMembers(l, at, credentialMembers, d)
	if _, has := given["bearer"]; ok && !has && !l.refused(at.path) {
		l.refuse(at, "has no bearer, give it one or take credential out")
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
		d.bearer = item{name: "bearer", value: v, at: at}
	}
}

// patterns reads a list of globs; never nil, since a list that is there but unusable must not let all pass.
func (l *loader) patterns(at place) []string {
	list, _ := l.texts(at)
	globs := make([]string, 0, len(list))
	for _, i := range list {
		switch {
		case i.value.text == "":
			l.refuse(i.at, "is empty, it would match no tool")
		case len(i.value.text) > maxPattern:
			l.refuse(i.at, "has over %d characters, no tool's name is that long", maxPattern)
		default:
			globs = append(globs, i.value.text)
		}
	}
	return globs
}

func readPrefix(l *loader, d *draft, at place) {
	const longest = 64 // clients take public names up to here
	v, ok := l.text(at)
	switch {
	case !ok:
	case len(v.text) >= longest:
		l.refuse(at, "has %d characters, it leaves no room for a tool's name", len(v.text))
	case strings.ContainsFunc(v.text, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		l.refuse(at, "has white space or control characters, use letters, digits, _ and -")
	default:
		d.up.Prefix = v.text
		if strings.ContainsFunc(v.text, func(r rune) bool { return !publicRune(r) }) {
			l.warn(at, "has characters other than letters, digits, _ and -, many clients refuse such tool names")
		}
	}
}

func publicRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// prefixes refuses those that meet: a call could go to either upstream.
func (l *loader) prefixes(drafts []*draft) {
	for j, d := range drafts {
		i := slices.IndexFunc(drafts[:j], func(other *draft) bool {
			return strings.HasPrefix(d.up.Prefix, other.up.Prefix) || strings.HasPrefix(other.up.Prefix, d.up.Prefix)
		})
		if i < 0 {
			continue
		}
		at, has := d.given["prefix"]
		if !has {
			if at, has = drafts[i].given["prefix"]; !has {
				at = d.at
			}
		}
		a, b := drafts[i].up, d.up
		if a.Prefix == "" || b.Prefix == "" {
			l.refuse(at, `"" is for a single upstream, but there are %s and %s: give each a prefix`, a.ID, b.ID)
			continue
		}
		l.refuse(at, "%q of %s meets %q of %s, none may begin with another", a.Prefix, a.ID, b.Prefix, b.ID)
	}
}

// finish lets the family table decide, and fills in what counts.
func (l *loader) finish(d *draft) {
	engine, known := l.family(d)
	child := d.has("command") && (!d.has("url") || d.transport == "stdio")
	if known {
		child = engine.Stdio()
		d.up.Engine = engine
	}
	if child {
		l.finishChild(d)
	} else {
		l.finishURL(d)
	}
}

func (l *loader) finishChild(d *draft) {
	d.up.Args = l.arguments(d.args)
	for _, i := range d.env {
		d.up.Env = append(d.up.Env, EnvVar{Name: i.name, Value: redact.NewSecret(i.value.text)})
		l.variable(i)
	}
}

func (l *loader) finishURL(d *draft) {
	d.up.Command, d.up.Cwd, d.up.InheritEnv = redact.Secret{}, "", false
	d.up.URL = redact.NewSecret(d.url.text)
	cleartext := d.address != nil && (d.address.Scheme == "http" || d.address.Scheme == "ws") && !loopback(d.address.Hostname())
	for _, i := range d.headers {
		d.up.Headers = append(d.up.Headers, Header{Name: i.name, Value: redact.NewSecret(i.value.text)})
		l.header(i, cleartext)
	}
	if d.address != nil {
		l.address(d, cleartext)
	}
	if d.bearer.value.text == "" {
		return
	}
	token := l.secret(d.bearer.value.text)
	d.up.Credential = &Credential{Bearer: token}
	l.literal(d.bearer.at, d.bearer.value)
	l.weak(d.bearer.at, token)
	if cleartext {
		l.cleartext(d.bearer.at)
	}
	if i := slices.IndexFunc(d.headers, func(h item) bool { return strings.EqualFold(h.name, "Authorization") }); i >= 0 {
		l.refuse(d.headers[i].at, "stands beside credential.bearer, which is sent as Authorization: keep one")
	}
}

func (l *loader) cleartext(at place) {
	l.warn(at, "a credential crosses the network unencrypted, use https or wss, or a server on this machine")
}
