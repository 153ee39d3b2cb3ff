package config

import (
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
	defaultKeepalive       = 15 * time.Second
)

var topMembers = []member[Config]{
	{"listen", readListen},
	{"path", readPath},
	{"hosts", readHosts},
	{"origins", readOrigins},
	{"insecure", func(l *loader, c *Config, at place) { c.Insecure = l.boolean(at) }},
	{"callers", readCallers},
	{"upstreams", readUpstreams},
	{"start_grace", func(l *loader, c *Config, at place) { l.duration(at, 0, &c.StartGrace) }},
	{"shutdown_delay", func(l *loader, c *Config, at place) { l.duration(at, 0, &c.ShutdownDelay) }},
	{"shutdown_timeout", func(l *loader, c *Config, at place) { l.duration(at, 0, &c.ShutdownTimeout) }},
	{"keepalive", func(l *loader, c *Config, at place) { l.duration(at, time.Millisecond, &c.Keepalive) }},
	{"seal", func(l *loader, c *Config, at place) { readMembers(l, at, sealMembers, c) }},
	{"state_dir", func(l *loader, c *Config, at place) { c.StateDir = l.folder(at) }},
}

// top reads the whole configuration and checks what spans its members.
func (l *loader) top(c *Config, root place) {
	c.Listen, c.Path = defaultListen, defaultPath
	c.StartGrace, c.ShutdownTimeout, c.Keepalive = defaultStartGrace, defaultShutdownTimeout, defaultKeepalive
	given, ok := readMembers(l, root, topMembers, c)
	if !ok {
		return
	}
	if _, has := given["upstreams"]; !has && !l.meant("upstreams") {
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
	l.labels(c, given)
}

// meant reports whether an unknown member was taken for name, so that it need not be called missing too.
func (l *loader) meant(name string) bool {
	for _, p := range l.problems {
		if strings.HasSuffix(p.Text, "did you mean "+name+"?") {
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
	known := redact.NewScrubber(l.secrets...)
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
