package config

import (
	"path"
	"slices"
	"strings"

	"mcp-gateway/redact"
)

// A wrapped is what the arguments of mcp-remote say.
type wrapped struct {
	url, transport string
	headers        []setting
	deny           []string
}

// unwrap takes mcp-remote out of the way of a server over HTTP that is sent a credential, and reports whether it did. Without
// one mcp-remote may have signed in through a browser, which the gateway does not do: that stays a command.
func (i *importer) unwrap(s *server, r *raw) bool {
	args, is := mcpRemote(r.command, r.args)
	if !is {
		return false
	}
	w, understood := parseRemote(args)
	secret := slices.ContainsFunc(w.headers, func(h setting) bool { return redact.CredentialName(h.name) })
	if !understood || !secret {
		i.remark(s, s.at, "stays a command: mcp-remote may sign in by itself. With a token of its own it can be url and credential")
		return false
	}
	own := func(name string) (string, bool) {
		at := slices.IndexFunc(r.env, func(e setting) bool { return e.name == name })
		if at < 0 {
			return "", false
		}
		return i.resolveClient(s, r.env[at].value, "a header", nil), true
	}
	i.remark(s, s.at, "was mcp-remote: the gateway reaches a server over HTTP by itself")
	s.url = i.resolveClient(s, w.url, "the url", own)
	s.sse = strings.HasPrefix(w.transport, "sse")
	for _, h := range w.headers {
		i.header(s, r, h.name, i.resolveClient(s, h.value, "the header "+h.name, own))
	}
	s.deny = append(s.deny, w.deny...)
	i.address(s, r)
	return true
}

// mcpRemote returns what follows the name of mcp-remote in a command that runs it.
func mcpRemote(command string, args []string) ([]string, bool) {
	words := append([]string{command}, args...)
	for n, word := range words {
		base := strings.TrimSuffix(path.Base(strings.ReplaceAll(word, `\`, "/")), ".cmd")
		switch {
		case base == "mcp-remote" || strings.HasPrefix(base, "mcp-remote@"):
			return words[n+1:], true
		case strings.HasPrefix(word, "-") || word == "/c" || slices.Contains([]string{"npx", "bunx", "pnpx", "pnpm", "yarn", "dlx", "cmd", "cmd.exe", "x", "bun"}, base):
		default:
			return nil, false
		}
	}
	return nil, false
}

// parseRemote reports false where an argument has no like in a configuration.
func parseRemote(args []string) (wrapped, bool) {
	var w wrapped
	for n := 0; n < len(args); n++ {
		arg, next := args[n], ""
		if n+1 < len(args) {
			next = args[n+1]
		}
		switch arg {
		case "--header":
			name, text, is := strings.Cut(next, ":")
			if !is {
				return w, false
			}
			w.headers = append(w.headers, setting{strings.TrimSpace(name), strings.TrimSpace(text)})
			n++
		case "--transport":
			w.transport = next
			n++
		case "--ignore-tool":
			if next == "" || len(next) > maxPattern {
				return w, false
			}
			w.deny = append(w.deny, next)
			n++
		case "--host": // of the page that a browser comes back to
			n++
		case "--allow-http", "--debug", "--silent", "--enable-proxy", "--keep-alive":
		default:
			port := strings.Trim(arg, "0123456789") == "" && w.url != ""
			if !port && (strings.HasPrefix(arg, "-") || w.url != "") {
				return w, false
			}
			if !port {
				w.url = arg
			}
		}
	}
	return w, w.url != ""
}
