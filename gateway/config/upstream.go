package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/redact"
)

// The defaults and bounds of an upstream.
const (
	defaultTimeout      = 5 * time.Minute
	defaultStartTimeout = 2 * time.Minute
	defaultReconnectMin = 500 * time.Millisecond
	defaultReconnectMax = 30 * time.Second
	defaultInputTimeout = 10 * time.Minute
	defaultRounds       = 16
	defaultQueue        = 256
	pipeConcurrency     = 32 // the default where all calls share one connection; over HTTP there is none

	maxUpstreams   = 1000
	maxConcurrency = 10_000
	maxQueue       = 100_000
	maxRounds      = 1000
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
	forward            []item // where the names of up.ForwardHeaders stand
	credential         credential
}

func (d *draft) has(name string) bool { _, has := d.given[name]; return has }

var (
	protocols  = []string{"modern", "legacy"}
	transports = []string{"stdio", "websocket", "http", "sse"}
)

var upstreamMembers = []member[draft]{
	{"command", scalar("the program of a server to start, over stdio"), readCommand},
	{"args", listOf("its arguments", scalar("")), func(l *loader, d *draft, at place) { d.args, _ = l.texts(at) }},
	{"env", mapOf("what else is in its environment than `PATH HOME LANG TMPDIR TZ USER`", "^[^=]+$", scalar("")), readEnv},
	{"required", boolean("the gateway is not ready before it was live once"), func(l *loader, d *draft, at place) { d.up.Required = l.boolean(at) }},
	{"inherit_env", boolean("give it all of the gateway's environment"), func(l *loader, d *draft, at place) { d.up.InheritEnv = l.boolean(at) }},
	{"cwd", scalar("its working directory, relative to the configuration").without("the gateway's"),
		func(l *loader, d *draft, at place) { d.up.Cwd = l.folder(at) }},
	{"url", form("a server to reach: `https://…`, `http://…`, `wss://…`, `ws://…`", "^([Hh][Tt][Tt][Pp]|[Ww][Ss])[Ss]?://[^/]"), readURL},
	{"headers", mapOf("fixed headers of every request to it", tokenPattern, scalar("")), readHeaders},
	{"forward_headers", forwardSchema(), readForwardHeaders},
	{"credential", credentialSchema(), readCredential},
	{"protocol", choice("the server's era", protocols).without("`legacy` for a command and `ws`, `modern` for `http`"),
		func(l *loader, d *draft, at place) { d.protocol, _ = l.word(at, protocols...) }},
	{"transport", choice("how it is reached; needed for `sse`, and where `command` and `url` both stand", transports).without("by the address"),
		func(l *loader, d *draft, at place) { d.transport, _ = l.word(at, transports...) }},
	{"revision", scalar("the one legacy revision to accept").without("any"), readRevision},
	{"prefix", scalar("before its tools' names; `\"\"` for a single upstream").without("`ID__`"), readPrefix},
	{"timeout", period("of a whole call, from arrival to answer").byDefault(defaultTimeout),
		func(l *loader, d *draft, at place) { l.duration(at, time.Millisecond, &d.up.Timeout) }},
	{"input_timeout", period("of a round of a call that waits for a person, in place of `timeout`; for modern servers").byDefault(defaultInputTimeout),
		func(l *loader, d *draft, at place) { l.duration(at, time.Millisecond, &d.up.InputTimeout) }},
	{"rounds", count("how many rounds one call may have; for modern servers", 1, maxRounds).byDefault(defaultRounds),
		func(l *loader, d *draft, at place) { l.number(at, 1, maxRounds, &d.up.Rounds) }},
	{"start_timeout", period("of one start and handshake").byDefault(defaultStartTimeout),
		func(l *loader, d *draft, at place) { l.duration(at, time.Millisecond, &d.up.StartTimeout) }},
	{"reconnect", object("the pause between attempts to connect, at random up to `min` at first and up to `max` in the end", reconnectMembers), readReconnect},
	{"concurrency", count("calls in flight at most, `0` for any number", 0, maxConcurrency).without("`32` over stdio, WebSocket and HTTP+SSE, else `0`"),
		func(l *loader, d *draft, at place) { l.number(at, 0, maxConcurrency, &d.up.Concurrency) }},
	{"queue", count("calls that may wait for one in flight to end; what comes on top is not sent, and says so", 0, maxQueue).byDefault(defaultQueue),
		func(l *loader, d *draft, at place) { l.number(at, 0, maxQueue, &d.up.Queue) }},
	{"poll", period("between listings where the server does not announce its changes, at least `1s`").without("never"),
		func(l *loader, d *draft, at place) { l.duration(at, time.Second, &d.up.Poll) }},
	{"tools", object("which tools are shown and may be called, and how long each may take", toolsMembers),
		func(l *loader, d *draft, at place) { readMembers(l, at, toolsMembers, d) }},
	{"redact", object("where credentials are taken out of what the server says", redactMembers),
		func(l *loader, d *draft, at place) { readMembers(l, at, redactMembers, d) }},
}

// upstreamSchema adds what one member has to do with another.
func upstreamSchema() schema {
	s := object("one MCP server", upstreamMembers)
	s.AnyOf = []schema{having("command"), having("url")}
	command, url, both, transport, protocol := having("command"), having("url"), having("command", "url"), having("transport"), having("protocol")
	remote, child := never("headers", "forward_headers", "credential"), never("args", "env", "cwd", "inherit_env")
	sse := schema{Required: []string{"transport"}, Properties: properties{{"transport", schema{Enum: []string{"sse"}}}}}
	s.AllOf = []schema{
		{If: &schema{Not: &url}, Then: &remote},
		{If: &schema{Not: &command}, Then: &child},
		{If: &both, Then: &transport},
		{If: &sse, Then: &protocol},
	}
	return s
}

var reconnectMembers = []member[Reconnect]{
	{"min", period("the first pause at most").byDefault(defaultReconnectMin),
		func(l *loader, r *Reconnect, at place) { l.duration(at, time.Millisecond, &r.Min) }},
	{"max", period("the longest pause").byDefault(defaultReconnectMax),
		func(l *loader, r *Reconnect, at place) { l.duration(at, time.Millisecond, &r.Max) }},
}

var redactMembers = []member[draft]{
	{"results", schema{Description: "`false` passes the server's own answers as they are; records are redacted always", Type: "boolean", Default: true},
		func(l *loader, d *draft, at place) { d.up.ResultsVerbatim = !l.boolean(at) }},
}

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
			Reconnect:    Reconnect{Min: defaultReconnectMin, Max: defaultReconnectMax},
			InputTimeout: defaultInputTimeout, Rounds: defaultRounds, Queue: defaultQueue,
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
	if at.node.Kind == yaml.SequenceNode {
		l.refuse(at, "must be a single value, not a list: the program alone, what follows it goes into args")
		return
	}
	v, ok := l.text(at)
	if ok && strings.TrimSpace(v.text) == "" {
		l.refuse(at, "is empty, name the program to start")
		return
	}
	if ok && v.commandLine() {
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
		l.limits(d)
	}
	if child {
		l.finishChild(d)
	} else {
		l.finishURL(d)
	}
}

// limits fills in what the engine decides, and refuses what has no effect on it. A default may be repeated anywhere.
func (l *loader) limits(d *draft) {
	pipe := d.up.Engine != ModernHTTP && d.up.Engine != LegacyHTTP
	if pipe && !d.has("concurrency") {
		d.up.Concurrency = pipeConcurrency
	}
	if d.up.Concurrency == 0 && d.up.Queue != defaultQueue && !l.refused(d.at.path+".concurrency") {
		l.refuse(d.given["queue"], "has no effect without a limit on the calls in flight, set concurrency or take this out")
	}
	if d.up.Engine.modern() {
		return
	}
	const text = "has no effect on a legacy upstream, whose calls have one round: take it out"
	if d.up.InputTimeout != defaultInputTimeout {
		l.refuse(d.given["input_timeout"], text)
	}
	if d.up.Rounds != defaultRounds {
		l.refuse(d.given["rounds"], text)
	}
}

func (l *loader) finishChild(d *draft) {
	d.up.Args = l.arguments(d.args)
	d.up.ForwardHeaders = nil
	for _, i := range d.env {
		d.up.Env = append(d.up.Env, EnvVar{Name: i.name, Value: redact.NewSecret(i.value.text)})
		l.assigned(i)
	}
}

func (l *loader) finishURL(d *draft) {
	d.up.Command, d.up.Cwd, d.up.InheritEnv = redact.Secret{}, "", false
	d.up.URL = redact.NewSecret(d.url.text)
	cleartext := unencrypted(d.address)
	for _, i := range d.headers {
		d.up.Headers = append(d.up.Headers, Header{Name: i.name, Value: redact.NewSecret(i.value.text)})
		l.header(i, cleartext)
	}
	l.address(d, cleartext)
	for _, i := range d.forward {
		if slices.ContainsFunc(d.headers, func(h item) bool { return strings.EqualFold(h.name, i.name) }) {
			l.refuse(i.at, "is also in headers, which would send another value: keep one")
		}
	}
	l.finishCredential(d, cleartext)
	l.authorization(d)
}

// authorization refuses a second value of the one Authorization header.
func (l *loader) authorization(d *draft) {
	source := d.credential.source
	if d.credential.query.value.text != "" {
		source = ""
	}
	user := d.address != nil && d.address.User != nil
	i := slices.IndexFunc(d.headers, func(h item) bool { return strings.EqualFold(h.name, "Authorization") })
	switch {
	case i >= 0 && source != "":
		l.refuse(d.headers[i].at, "stands beside credential.%s, which is sent as Authorization: keep one", source)
	case i >= 0 && user:
		l.refuse(d.headers[i].at, "stands beside a user in the url, which is sent as Authorization: keep one")
	case user && source != "":
		l.refuse(d.given["url"], "has a user in it, which is sent as Authorization beside credential.%s: keep one", source)
	}
}

// unencrypted reports whether what is sent to u can be read on the network.
func unencrypted(u *url.URL) bool {
	return u != nil && (u.Scheme == "http" || u.Scheme == "ws") && !loopback(u.Hostname())
}

func (l *loader) cleartext(at place) {
	l.warn(at, "a credential crosses the network unencrypted, use https or wss, or a server on this machine")
}
