package config

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"mcp-gateway/redact"
)

// The defaults of the top level.
const (
	defaultListen          = "127.0.0.1:8080"
	defaultPath            = "/mcp"
	defaultStartGrace      = 3 * time.Second
	defaultShutdownTimeout = 15 * time.Second
	defaultStreamAfter     = 10 * time.Second
	defaultKeepalive       = 15 * time.Second
)

var logLevels = []string{"debug", "info", "warn", "error"}

var topMembers = []member[Config]{
	{"listen", scalar("address, host:port; `--listen` wins. Off loopback it needs `callers`, or `insecure: true`").byDefault(defaultListen), readListen},
	{"path", form("the one path", "^/").byDefault(defaultPath), readPath},
	{"hosts", listOf("Host headers that are served", scalar("")).without("loopback names on a loopback `listen`, else any"), readHosts},
	{"origins", listOf("browser origins that are served, with CORS", scalar("")).without("none"), readOrigins},
	{"insecure", boolean("serve off loopback without callers"), func(l *loader, c *Config, at place) { c.Insecure = l.boolean(at) }},
	{"callers", callersSchema(), readCallers},
	{"start_grace", period("how long serving waits for the first listings").byDefault(defaultStartGrace),
		func(l *loader, c *Config, at place) { l.duration(at, 0, &c.StartGrace) }},
	{"shutdown_delay", period("how long new calls are still taken after SIGTERM").byDefault(time.Duration(0)),
		func(l *loader, c *Config, at place) { l.duration(at, 0, &c.ShutdownDelay) }},
	{"shutdown_timeout", period("how long running calls may take to finish after that").byDefault(defaultShutdownTimeout),
		func(l *loader, c *Config, at place) { l.duration(at, 0, &c.ShutdownTimeout) }},
	{"stream_after", period("how long an answer may stay silent before it becomes a stream, so that nothing in between cuts it off").byDefault(defaultStreamAfter),
		func(l *loader, c *Config, at place) { l.duration(at, time.Millisecond, &c.StreamAfter) }},
	{"keepalive", period("between comments on a silent stream").byDefault(defaultKeepalive),
		func(l *loader, c *Config, at place) { l.duration(at, time.Millisecond, &c.Keepalive) }},
	{"watch", boolean("reload by itself when this file, or one that it refers to, has changed"),
		func(l *loader, c *Config, at place) { c.Watch = l.boolean(at) }},
	{"log_level", choice("the least that is logged; `--log-level` wins", logLevels).byDefault("info"),
		func(l *loader, c *Config, at place) { c.LogLevel, _ = l.word(at, logLevels...) }},
	{"admin", scalar("address, host:port, for whoever runs the gateway: `/healthz`, `/readyz` and `/metrics`, on loopback or with the key also " +
		"`/status`, `/-/reload` and `/-/upstreams/ID/restart`").without("none"), readAdmin},
	{"admin_key", form("lets in to all of `admin`, as Bearer; stored as its hash, make one with `mcp-gateway key NAME`", "^sha256:[0-9a-fA-F]{64}$").
		without("only loopback"), readAdminKey},
	{"pprof", boolean("serve `/debug/pprof` at `admin`"), func(l *loader, c *Config, at place) { c.Pprof = l.boolean(at) }},
	{"seal", object("what sessions, cursors and rounds are sealed with", sealMembers),
		func(l *loader, c *Config, at place) { readMembers(l, at, sealMembers, c) }},
	{"state_dir", scalar("where the gateway keeps what must outlive it; relative to the configuration").
		without("`$STATE_DIRECTORY`, else `$XDG_STATE_HOME/mcp-gateway`, else `~/.local/state/mcp-gateway`"),
		func(l *loader, c *Config, at place) { c.StateDir = l.folder(at) }},
	{"upstreams", mapOf("the MCP servers by id, `[a-z][a-z0-9-]{0,30}`; lists show them in this order", upstreamID.String(), upstreamSchema()).filled(), readUpstreams},
}

// top reads the whole configuration and checks what spans its members.
func (l *loader) top(c *Config, root place) {
	c.Listen, c.Path = defaultListen, defaultPath
	c.StartGrace, c.ShutdownTimeout = defaultStartGrace, defaultShutdownTimeout
	c.StreamAfter, c.Keepalive, c.LogLevel = defaultStreamAfter, defaultKeepalive, "info"
	given, ok := readMembers(l, root, topMembers, c)
	if !ok {
		return
	}
	if _, has := given["upstreams"]; !has && !l.meant("", "upstreams") {
		l.refuse(place{node: root.node, path: "upstreams"}, "is missing, name at least one upstream")
	}
	listen := given["listen"] // not there only for the default, which nothing is wrong with
	for _, o := range l.overrides {
		if o.Listen == "" {
			continue
		}
		c.Listen, listen = o.Listen, place{node: &yaml.Node{}, file: "--listen"}
		if err := checkListen(o.Listen); err != nil {
			l.refuse(listen, "%q %v", o.Listen, err)
			return
		}
	}
	if c.Callers.None() && !c.Insecure && !l.refused("callers") && !Loopback(c.Listen) {
		l.refuse(listen, "serves other machines, and no callers are named: whoever reaches the port may use every tool. "+
			"Add callers, or listen on 127.0.0.1, or say insecure: true")
	}
	if c.StateDir == "" {
		c.StateDir = defaultStateDir()
	}
	l.admin(c, given)
	l.labels(c, given)
}

// admin checks what concerns the second listener.
func (l *loader) admin(c *Config, given map[string]place) {
	at, has := given["admin"]
	for _, name := range []string{"admin_key", "pprof"} {
		if p, set := given[name]; set && !has && (name != "pprof" || c.Pprof) {
			l.refuse(p, "is for the listener of admin, which is not set: set admin as well, or take this out")
		}
	}
	_, port, _ := net.SplitHostPort(c.Listen)
	if _, other, err := net.SplitHostPort(c.Admin); has && err == nil && other == port && port != "0" {
		l.refuse(at, "has the port of listen, %s; take another, which no client can reach", port)
	}
}

// meant reports whether an unknown member of the object at path was taken for name, so that it need not be called missing too.
func (l *loader) meant(path, name string) bool {
	for _, p := range l.problems {
		inside, ok := strings.CutPrefix(p.Path, path)
		if ok && (path == "" || inside == "" || inside[0] == '.') && strings.HasSuffix(p.Text, "did you mean "+name+"?") {
			return true
		}
	}
	return false
}

// refused reports whether path, or something below it, has a problem.
func (l *loader) refused(path string) bool {
	for _, p := range l.problems {
		if p.Path == path || strings.HasPrefix(p.Path, path+".") || strings.HasPrefix(p.Path, path+"[") {
			return true
		}
	}
	return false
}

// labels refuses a caller name, an upstream id or a prefix that holds a credential: they appear wherever the gateway
// speaks of them, and are never redacted.
func (l *loader) labels(c *Config, given map[string]place) {
	known := redact.NewScrubber()
	known.Learn(l.credentials()...)
	const text = "%s holds one of the credentials of this file, choose another"
	for _, name := range c.Callers.Names() {
		if known.Holds(name) {
			l.refuse(given["callers"], text, "a caller's name")
		}
	}
	for _, u := range c.Upstreams {
		if known.Holds(u.ID) {
			l.refuse(given["upstreams"], text, "an upstream's id")
		} else if known.Holds(u.Prefix) {
			l.refuse(given["upstreams"], text, "a prefix")
		}
	}
}

// folder reads a path to a folder, relative to the configuration's own.
func (l *loader) folder(at place) string {
	v, ok := l.text(at)
	switch {
	case !ok:
		return ""
	case v.text == "":
		l.refuse(at, "is empty, name a folder or take it out")
		return ""
	case v.text == "~" || strings.HasPrefix(v.text, "~/"):
		l.refuse(at, "~ is not expanded, write ${env:HOME} for it")
		return ""
	case filepath.IsAbs(v.text):
		return filepath.Clean(v.text)
	}
	return filepath.Join(l.references.dir, v.text)
}

// defaultStateDir is where systemd or the XDG base directory specification want state, "" where nothing says so.
func defaultStateDir() string {
	if dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mcp-gateway")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "mcp-gateway")
	}
	return ""
}
