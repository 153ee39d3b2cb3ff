package config

import (
	"encoding/base64"
	"net/textproto"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"mcp-gateway/redact"
)

// A raw is a server as the file has it, before it is known what its references stand for.
type raw struct {
	given                       map[string]place
	kind, command, cwd, address string
	urlAt, envFile              place
	args                        []string
	env, headers                []setting
}

// ourBusiness are members that a client keeps for itself, or that are read elsewhere: leaving them out changes nothing.
var ourBusiness = []string{
	"type", "transport", "command", "args", "env", "cwd", "url", "serverUrl", "httpUrl", "headers", "envFile", "disabled", "enabled",
	"autoApprove", "alwaysAllow", "trust", "description", "name", "title", "icon", "iconUrl", "gallery", "version", "dev", "metadata", "note", "_comment", "//", "$schema",
	"disabledTools", "excludeTools", "enabledTools", "includeTools", "tools",
}

// elsewhere says what takes the place of members that have their like in a configuration.
var elsewhere = map[string]string{
	"timeout":          "timeout, with a unit, such as 30s",
	"startupTimeout":   "start_timeout, with a unit, such as 30s",
	"oauth":            "credential.oauth2 with a refresh_token, since nobody signs in for the gateway",
	"auth":             "credential.oauth2 with a refresh_token, since nobody signs in for the gateway",
	"authProviderType": "credential.oauth2 or credential.command",
	"headersHelper":    "credential.command, a program that prints a token",
}

func (i *importer) readServer(s *server) {
	r := &raw{}
	if !i.readMembers(s, r) {
		return
	}
	off := r.given["disabled"].node != nil && r.given["disabled"].node.Value == "true" || r.given["enabled"].node != nil && r.given["enabled"].node.Value == "false"
	if off {
		s.off = true
		i.remark(s, s.at, "is switched off in the client, so it is a comment here")
	}
	i.filters(s, r)
	remote := r.address != "" && (r.command == "" || r.kind != "" && r.kind != "stdio" && r.kind != "local")
	switch {
	case remote:
		i.remote(s, r)
	case r.command == "":
		i.leave(s, s.at, "has neither command nor url, so there is nothing to start or to reach")
	case !i.unwrap(s, r):
		i.child(s, r)
	}
	i.unread(s, r)
}

// leave says why a server has no place in a configuration.
func (i *importer) leave(s *server, at place, format string, args ...any) {
	s.left = true
	at.path = s.at.path
	i.remark(s, at, "is left out: it "+format, args...)
}

// readMembers reads what a server may have in any client. It reports false where that is of the wrong kind.
func (i *importer) readMembers(s *server, r *raw) bool {
	before := len(i.problems)
	list, ok := i.entries(s.at)
	if !ok {
		return false
	}
	r.given = make(map[string]place, len(list))
	for _, e := range list {
		if e.at.node.Tag == "!!null" {
			continue
		}
		r.given[e.name] = e.at
		switch e.name {
		case "type", "transport":
			r.kind, _ = i.scalar(e.at)
		case "command":
			r.command, _ = i.scalar(e.at)
		case "args":
			r.args = i.scalars(e.at)
		case "env":
			r.env = i.settings(s, e.at)
		case "cwd":
			r.cwd, _ = i.scalar(e.at)
		case "url", "serverUrl", "httpUrl":
			r.address, _ = i.scalar(e.at)
			r.urlAt = e.at
		case "headers":
			r.headers = i.settings(s, e.at)
		case "envFile":
			r.envFile = e.at
		}
	}
	return len(i.problems) == before
}

// scalar reads a string, or a number or a switch as it is written.
func (i *importer) scalar(at place) (string, bool) {
	if !i.is(at, yaml.ScalarNode) {
		return "", false
	}
	switch text := at.node.Value; {
	case strings.ContainsRune(text, 0):
		i.refuse(at, "has a NUL character, take it out")
	case strings.ContainsFunc(text, isPlaceholder):
		i.refuse(at, "has a character of Unicode's last plane, which is for private use: take it out")
	default:
		return text, true
	}
	return "", false
}

func (i *importer) scalars(at place) []string {
	places, _ := i.items(at)
	list := make([]string, 0, len(places))
	for _, p := range places {
		text, _ := i.scalar(p)
		list = append(list, text)
	}
	return list
}

// settings reads the variables or headers of a server. Null is one that is not set.
func (i *importer) settings(s *server, at place) []setting {
	list, _ := i.entries(at)
	var settings []setting
	for _, e := range list {
		if e.at.node.Tag == "!!null" {
			continue
		}
		if text, ok := i.scalar(e.at); ok {
			settings = append(settings, setting{e.name, text})
		}
	}
	return settings
}

// unread says which members of a server count for nothing here.
func (i *importer) unread(s *server, r *raw) {
	var names []string
	for name, at := range r.given {
		if text, has := elsewhere[name]; has {
			i.remark(s, at, "is not taken over; here it is %s", text)
		} else if !slices.Contains(ourBusiness, name) {
			if len(name) > 40 || shapedPart(name) || strings.ContainsAny(name, "=: ") {
				name = "a name that is not shown"
			}
			names = append(names, name)
		}
	}
	if slices.Sort(names); len(names) > 0 {
		i.remark(s, s.at, "is taken over but for what the gateway has no setting for: %s", strings.Join(slices.Compact(names), ", "))
	}
}

// filters takes over which tools may be used: to show more than the client did would be no import.
func (i *importer) filters(s *server, r *raw) {
	for _, name := range []string{"disabledTools", "excludeTools"} {
		if at, has := r.given[name]; has {
			s.deny = append(s.deny, i.patternsOf(at)...)
		}
	}
	for _, name := range []string{"enabledTools", "includeTools", "tools"} {
		if at, has := r.given[name]; has && at.node.Kind == yaml.SequenceNode {
			s.allow = append(append([]string{}, s.allow...), i.patternsOf(at)...)
		}
	}
	if slices.Equal(s.allow, []string{"*"}) {
		s.allow = nil
	}
}

func (i *importer) patternsOf(at place) []string {
	return slices.DeleteFunc(i.scalars(at), func(text string) bool { return text == "" || len(text) > maxPattern })
}

// child takes over a server to start.
func (i *importer) child(s *server, r *raw) {
	if at, has := r.given["headers"]; has {
		i.remark(s, at, "is left out, a command is sent no headers")
	}
	s.command = i.resolveClient(s, r.command, "the command", nil)
	if (value{text: s.command}).commandLine() {
		if strings.ContainsAny(s.command, `"'`) {
			i.leave(s, r.given["command"], "is a line of a shell, write it as command and args")
			return
		}
		words := strings.Fields(s.command)
		s.command, r.args = words[0], append(words[1:], r.args...)
		i.remark(s, r.given["command"], "was a line of words, which are now command and args")
	}
	if strings.TrimSpace(s.command) == "" {
		i.leave(s, s.at, "has an empty command")
		return
	}
	own := func(name string) (string, bool) {
		at := slices.IndexFunc(r.env, func(e setting) bool { return e.name == name })
		if at < 0 || strings.Contains(r.env[at].value, "${"+name) || strings.Contains(r.env[at].value, "${env:"+name) {
			return "", false
		}
		return "${" + name + "}", true // for the program or its shell, which has the variable
	}
	for _, text := range r.args {
		s.args = append(s.args, i.resolveClient(s, text, "an argument", own))
	}
	i.variablesOf(s, r)
	i.folderFor(s, r)
}

func (i *importer) variablesOf(s *server, r *raw) {
	for _, e := range r.env {
		if e.name == "" || strings.ContainsAny(e.name, "=\x00") || len(e.name) > 256 {
			i.remark(s, r.given["env"], "had a member that is no variable's name: left out")
			continue
		}
		s.env = append(s.env, setting{e.name, i.resolveClient(s, e.value, "the variable "+e.name, nil)})
	}
	if r.envFile.node != nil {
		i.readEnvFile(s, r.envFile)
	}
}

// folderFor takes over where a child starts. A client starts it in the project's folder, and paths may count on that.
func (i *importer) folderFor(s *server, r *raw) {
	relative := func(text string) bool {
		return strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || strings.HasPrefix(text, `.\`)
	}
	s.cwd = i.resolveClient(s, r.cwd, "cwd", nil)
	switch rest, home := strings.CutPrefix(s.cwd, "~"); {
	case s.cwd == "":
		if i.workspace != "" && (relative(s.command) || slices.ContainsFunc(s.args, relative)) {
			s.cwd = i.workspace
		} else if relative(s.command) || slices.ContainsFunc(s.args, relative) {
			i.remark(s, s.at, "has a path that counts on the folder in which the client starts it: set cwd")
		}
	case home && (rest == "" || rest[0] == '/'):
		s.cwd = i.home(s, "cwd") + rest
	case filepath.IsAbs(s.cwd) || strings.HasPrefix(strings.Map(one, s.cwd), "1"):
	case i.workspace != "":
		s.cwd = filepath.Join(i.workspace, s.cwd)
	default:
		i.remark(s, r.given["cwd"], "was relative to the project's folder, and is now relative to this file")
	}
}

// remote takes over a server to reach. Those of today speak a revision with a handshake, since the client does.
func (i *importer) remote(s *server, r *raw) {
	for _, name := range []string{"args", "env", "cwd", "envFile"} {
		if at, has := r.given[name]; has {
			i.remark(s, at, "is left out, it is for a command")
		}
	}
	s.url = i.resolveClient(s, r.address, "the url", nil)
	switch kind := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(r.kind)); kind {
	case "sse":
		s.sse = true
	case "", "http", "streamablehttp", "ws", "websocket", "remote":
	default:
		i.leave(s, r.urlAt, "has a type that the gateway does not know: write stdio, http, sse or ws")
		return
	}
	for _, h := range r.headers {
		i.header(s, r, h.name, i.resolveClient(s, h.value, "the header "+h.name, nil))
	}
	i.address(s, r)
}

// address checks the url as it will be checked in the configuration, and moves a user in it into a header.
func (i *importer) address(s *server, r *raw) {
	if before, _, has := strings.Cut(s.url, "#"); has {
		s.url = before
	}
	begin := strings.Index(s.url, "://")
	if begin < 0 && !strings.ContainsFunc(s.url, isPlaceholder) || begin == 0 {
		i.leave(s, r.urlAt, "has a url without http:// or https://")
		return
	}
	if begin > 0 {
		rest := s.url[begin+3:]
		end := segment(rest, "/?")
		if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
			i.userinfo(s, rest[:at], r)
			s.url = s.url[:begin+3] + rest[at+1:]
		}
	}
	if first := []rune(s.url + " ")[0]; isPlaceholder(first) {
		s.shaped = s.sse
		return
	}
	l, d := newLoader(""), &draft{}
	readURL(l, d, place{node: &yaml.Node{Kind: yaml.ScalarNode, Value: strings.ReplaceAll(strings.Map(one, s.url), "${", "$${")}})
	if len(l.problems) > 0 {
		i.leave(s, r.urlAt, "has a url that %s", l.problems[0].Text)
		return
	}
	if !s.sse && r.kind == "" && strings.HasSuffix(strings.TrimRight(d.address.Path, "/"), "/sse") {
		s.sse, s.shaped = true, true
	}
	if d.address.Scheme == "ws" || d.address.Scheme == "wss" {
		s.sse, s.shaped = false, false
	}
}

// userinfo makes the header that clients send for a user and password in a url.
func (i *importer) userinfo(s *server, userinfo string, r *raw) {
	if s.bearer != "" || slices.ContainsFunc(s.headers, func(h setting) bool { return strings.EqualFold(h.name, "Authorization") }) {
		i.remark(s, r.urlAt, "had a user in it beside an Authorization header: the header is kept")
		return
	}
	plain, err := url.PathUnescape(userinfo)
	if err != nil {
		plain = userinfo
	}
	if !strings.Contains(plain, ":") {
		plain += ":"
	}
	text := base64.StdEncoding.EncodeToString([]byte(plain))
	if strings.ContainsFunc(plain, isPlaceholder) {
		text = plain
	}
	i.remark(s, r.urlAt, "had a user in it, which is now an Authorization header: Basic and the Base64 of USER:PASSWORD")
	placeholder := i.refer(s, "basic "+s.id, "the url", func(v *variable) {
		v.wanted, v.hidden, v.hints = s.id+"_BASIC", redact.NewSecret(text), []string{"the Base64 of USER:PASSWORD"}
	})
	s.headers = append(s.headers, setting{"Authorization", "Basic " + placeholder})
}

// header takes over one header, unless it is the gateway's own.
func (i *importer) header(s *server, r *raw, name, text string) {
	at, has := r.given["headers"]
	if !has {
		at = s.at
	}
	at.path = join(at.path, name)
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	reason, refused := reserved[canonical]
	if strings.HasPrefix(canonical, "Mcp-") {
		reason, refused = protocolHeader, true
	}
	text = strings.Trim(text, " \t")
	begin := scheme.FindString(text)
	switch token := text[len(begin):]; {
	case !validHeaderName(name):
		at.path = strings.TrimSuffix(at.path, "."+name)
		i.remark(s, at, "had a member that is no header's name: left out")
	case refused:
		i.remark(s, at, "is left out, it %s", reason)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		i.remark(s, at, "is left out, it has control characters")
	case text == "" && redact.CredentialName(name):
		i.remark(s, at, "is left out, it is an empty credential")
	case slices.ContainsFunc(s.headers, func(h setting) bool { return strings.EqualFold(h.name, name) }) || canonical == "Authorization" && s.bearer != "":
		i.remark(s, at, "is left out, it is there twice")
	case canonical == "Authorization" && strings.HasPrefix(strings.ToLower(begin), "bearer") && bearerToken(token):
		s.bearer = token
	default:
		s.headers = append(s.headers, setting{name, text})
	}
}

func validHeaderName(name string) bool { return token(name) && len(name) <= 256 }

// bearerToken reports whether text is all that a bearer may have.
func bearerToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f && !isPlaceholder(r) })
}
