package gateway

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"mcp-gateway/gateway/config"
	"mcp-gateway/internal/wire"
	"mcp-gateway/redact"
)

// An entry is one upstream of a configuration in the making. What is empty is not set.
type entry struct {
	id                                 string
	url, protocol, transport, revision string
	keyEnv                             string // the environment variable with the bearer
	command                            string
	args, env                          []string // env are names
}

// urlEntries are all ways to reach a server at target, whichever scheme it is written with.
func urlEntries(target, keyEnv string) []entry {
	http, ws := target, target
	if scheme, rest, _ := strings.Cut(target, ":"); strings.HasPrefix(scheme, "ws") {
		http = "http" + strings.TrimPrefix(scheme, "ws") + ":" + rest
	} else {
		ws = "ws" + strings.TrimPrefix(scheme, "http") + ":" + rest
	}
	e := entry{id: idOfURL(target), keyEnv: keyEnv, url: http}
	legacy, sse, socket := e, e, e
	legacy.protocol = "legacy"
	sse.protocol, sse.transport = "legacy", "sse"
	socket.url = ws
	return []entry{e, legacy, sse, socket}
}

func commandEntry(command, env []string) entry {
	return entry{id: idOfCommand(command), command: command[0], args: command[1:], env: env}
}

// rank orders the entries that fit, the best first.
func (e *entry) rank() int {
	switch {
	case e.protocol == "modern", e.command == "" && e.protocol == "" && strings.HasPrefix(e.url, "http"):
		return 0
	case e.transport == "sse":
		return 2
	case strings.HasPrefix(e.url, "ws"):
		return 3
	}
	return 1
}

// json is a configuration with this entry alone, for attempts that may take so long.
func (e *entry) json(timeout time.Duration) []byte {
	set := func(o wire.Object, name, text string) wire.Object {
		if text == "" {
			return o
		}
		return o.With(wire.Edit{Name: name, Value: wire.AppendString(nil, literal(text))})
	}
	o := set(set(set(set(wire.Object{}, "url", e.url), "protocol", e.protocol), "transport", e.transport), "revision", e.revision)
	o = set(set(o, "command", e.command), "start_timeout", timeout.String())
	if e.keyEnv != "" {
		o = o.With(wire.Edit{Name: "credential", Value: append(wire.AppendString([]byte(`{"bearer":`), "${env:"+e.keyEnv+"}"), '}')})
	}
	if len(e.args) > 0 {
		list := []byte("[")
		for n, arg := range e.args {
			if n > 0 {
				list = append(list, ',')
			}
			list = wire.AppendString(list, literal(arg))
		}
		o = o.With(wire.Edit{Name: "args", Value: append(list, ']')})
	}
	if len(e.env) > 0 {
		env := wire.Object{}
		for _, name := range e.env {
			env = env.With(wire.Edit{Name: name, Value: wire.AppendString(nil, "${env:"+name+"}")})
		}
		o = o.With(wire.Edit{Name: "env", Value: env.Raw()})
	}
	upstreams := wire.Object{}.With(wire.Edit{Name: e.id, Value: o.Raw()})
	return wire.Object{}.With(wire.Edit{Name: "upstreams", Value: upstreams.Raw()}).Raw()
}

// yaml is the entry for a person to copy. What it must not repeat is replaced, and the note says so.
func (e *entry) yaml(opts InspectOptions) (text, note string) {
	cfg, _, err := config.Parse("inspect", e.json(opts.Timeout))
	if err != nil {
		return "", "" // it was tried, so that it can be read
	}
	d := newDialer(cfg, nil)
	hidden := false
	clean := func(s string) string {
		shown := d.parts.scrubber.String(s)
		hidden = hidden || shown != s
		return scalar(literal(shown))
	}
	var b strings.Builder
	b.WriteString("upstreams:\n  " + e.id + ":\n")
	line := func(name, value string) { b.WriteString("    " + name + ": " + value + "\n") }
	if e.command != "" {
		line("command", clean(e.command))
	}
	if len(e.args) > 0 {
		args := make([]string, len(e.args))
		for n, arg := range e.args {
			args[n] = clean(arg)
		}
		line("args", "["+strings.Join(args, ", ")+"]")
	}
	if len(e.env) > 0 {
		b.WriteString("    env:\n")
		for _, name := range e.env {
			b.WriteString("      " + scalar(name) + ": ${env:" + name + "}\n")
		}
	}
	if e.url != "" {
		line("url", clean(e.url))
	}
	for _, member := range [][2]string{{"protocol", e.protocol}, {"transport", e.transport}} {
		if member[1] != "" {
			line(member[0], member[1])
		}
	}
	if e.keyEnv != "" {
		b.WriteString("    credential:\n      bearer: ${env:" + e.keyEnv + "}\n")
	}
	if hidden {
		note = redact.Mask + " stands for a secret that is not repeated here: write ${env:NAME} in its place, and set NAME"
	}
	return b.String(), note
}

// plain are the scalars of YAML that need no quotes, also within brackets, and are no numbers.
var plain = regexp.MustCompile(`^[A-Za-z/.-][A-Za-z0-9_./@=&?%~+-]*(:[A-Za-z0-9_./@=&?%~+-]+)*$`)

// scalar is text as YAML has it. A JSON string is one of YAML's.
func scalar(text string) string {
	switch strings.ToLower(text) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n", "-", "--", "---", ".", ".nan", ".inf", "-.inf":
	default:
		if plain.MatchString(text) && (text[0] != '-' && text[0] != '.' || len(text) > 1 && (text[1] == '-' || text[1] == '/' || text[1] >= 'A')) {
			return text
		}
	}
	return string(wire.AppendString(nil, text))
}

// idOfURL is an upstream's id after the host: the first part of it that says something.
func idOfURL(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return "server"
	}
	for part := range strings.SplitSeq(u.Hostname(), ".") {
		if id := idOf(part); id != "" && !slices.Contains([]string{"www", "mcp", "api", "localhost"}, id) {
			return id
		}
	}
	return "server"
}

// idOfCommand is an upstream's id after the program: of one that starts others, the package or file that it is given.
func idOfCommand(command []string) string {
	name := base(command[0])
	if slices.Contains([]string{"npx", "uvx", "node", "python", "python3", "uv", "bunx", "bun", "deno", "docker", "podman", "sh", "bash", "go", "env"}, name) {
		for _, arg := range command[1:] {
			if !strings.HasPrefix(arg, "-") && !slices.Contains([]string{"run", "exec", "tool", "x"}, arg) {
				name = base(meaningful(arg))
				break
			}
		}
	}
	name = strings.ReplaceAll(name, "_", "-")
	for _, noise := range []string{"server-", "mcp-server-", "mcp-"} {
		name = strings.TrimPrefix(name, noise)
	}
	for _, noise := range []string{"-mcp-server", "-server", "-mcp"} {
		name = strings.TrimSuffix(name, noise)
	}
	if id := idOf(name); id != "" {
		return id
	}
	return "server"
}

// meaningful is the part of a file's path that names what it is: of …/server-everything/dist/index.js, the folder.
func meaningful(file string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	for slices.Contains([]string{"index", "main", "server", "cli", "app", "dist", "build", "src", "bin", "lib", "out"}, base(file)) && strings.Contains(file, "/") {
		file = path.Dir(file)
	}
	return file
}

// base is a program's, package's or image's name without path, version and extension.
func base(name string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	return strings.ToLower(strings.TrimSuffix(name, path.Ext(name)))
}

// idOf makes text an id: small letters, digits and dashes, from a letter on. It is "" where no letter is left.
func idOf(text string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, strings.ToLower(text))
	id = strings.TrimLeft(id, "-0123456789")
	return strings.TrimRight(id[:min(len(id), 31)], "-")
}
