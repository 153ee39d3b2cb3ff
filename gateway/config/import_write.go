package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mcp-gateway/redact"
)

const textWidth = 118 // of a comment, its indent left out

// write makes the configuration. A server that is switched off is a comment that takes one # a line away to be one.
func (i *importer) write() []byte {
	var b strings.Builder
	head := "Imported from " + quote(filepath.Base(i.file)) + "."
	if slices.ContainsFunc(i.servers, func(s *server) bool { return s.command != "" && !s.left }) {
		head += " A server that the gateway starts has PATH, HOME, LANG, TMPDIR, TZ and USER of its environment and what env says; " +
			"inherit_env: true gives it all."
	}
	if slices.ContainsFunc(i.servers, func(s *server) bool { return s.url != "" && !s.left }) {
		head += " A server over HTTP is taken for one with a handshake, as the client that it was made for: `mcp-gateway inspect URL` tells what it speaks."
	}
	comment(&b, "", head)
	b.WriteString("upstreams:\n")
	for n, s := range i.servers {
		if n > 0 {
			b.WriteString("\n")
		}
		for _, remark := range s.remarks {
			comment(&b, "  ", remark)
		}
		if !s.left {
			i.entry(&b, s)
		}
	}
	return []byte(b.String())
}

// comment writes text as lines of a comment.
func comment(b *strings.Builder, indent, text string) {
	line := indent + "#"
	length := 0
	for _, word := range strings.Fields(redact.Printable(text)) {
		if length > 0 && length+1+len(word) > textWidth {
			b.WriteString(line + "\n")
			line, length = indent+"#", 0
		}
		line += " " + word
		length += 1 + len(word)
	}
	b.WriteString(line + "\n")
}

// entry writes one upstream.
func (i *importer) entry(b *strings.Builder, s *server) {
	e := &entryWriter{importer: i, indent: "  "}
	e.open(s.id)
	e.pair("command", s.command, "")
	e.list("args", s.args)
	e.settings("env", s.env)
	e.pair("cwd", s.cwd, "")
	e.pair("url", s.url, "")
	if s.url != "" && !strings.HasPrefix(strings.ToLower(s.url), "ws") {
		e.pair("protocol", "legacy", "take this out for a server of revision 2026-07-28")
	}
	if s.sse {
		why := ""
		if s.shaped {
			why = "as the url ends in /sse: take this out if it speaks Streamable HTTP there"
		}
		e.pair("transport", "sse", why)
	}
	e.settings("headers", s.headers)
	if s.bearer != "" {
		e.open("credential")
		e.pair("bearer", s.bearer, "")
		e.shut()
	}
	if s.allow != nil || s.deny != nil {
		e.open("tools")
		if s.allow != nil {
			e.list("allow", s.allow)
		}
		if s.deny != nil {
			e.list("deny", s.deny)
		}
		e.shut()
	}
	for line := range strings.Lines(e.String()) {
		if s.off {
			line = "  #" + line[2:]
		}
		b.WriteString(line)
	}
}

// An entryWriter writes members of one upstream as block YAML.
type entryWriter struct {
	strings.Builder
	importer *importer
	indent   string
}

func (e *entryWriter) open(name string) {
	fmt.Fprintf(e, "%s%s:\n", e.indent, scalarYAML(name))
	e.indent += "  "
}

func (e *entryWriter) shut() { e.indent = e.indent[2:] }

// pair writes nothing for what is not there.
func (e *entryWriter) pair(name, text, why string) {
	if text == "" {
		return
	}
	if why != "" {
		why = " # " + why
	}
	fmt.Fprintf(e, "%s%s: %s%s\n", e.indent, scalarYAML(name), scalarYAML(e.importer.rendered(text)), why)
}

func (e *entryWriter) settings(name string, list []setting) {
	if len(list) == 0 {
		return
	}
	e.open(name)
	for _, s := range list {
		fmt.Fprintf(e, "%s%s: %s\n", e.indent, scalarYAML(s.name), scalarYAML(e.importer.rendered(s.value)))
	}
	e.shut()
}

// list writes texts in one line where that is short. In brackets all are quoted, since a reference has braces.
func (e *entryWriter) list(name string, texts []string) {
	if texts == nil {
		return
	}
	quoted := make([]string, len(texts))
	length := 0
	for n, text := range texts {
		quoted[n] = quotedYAML(e.importer.rendered(text))
		length += len(quoted[n]) + 2
	}
	if length <= textWidth-len(name) {
		fmt.Fprintf(e, "%s%s: [%s]\n", e.indent, name, strings.Join(quoted, ", "))
		return
	}
	fmt.Fprintf(e, "%s%s:\n", e.indent, name)
	for _, text := range quoted {
		fmt.Fprintf(e, "%s  - %s\n", e.indent, text)
	}
}

// rendered writes text with references for its placeholders. A $ before one would be taken for the beginning of an escape.
func (i *importer) rendered(text string) string {
	var b strings.Builder
	for text = strings.ReplaceAll(text, "${", "$${"); text != ""; {
		n := strings.IndexFunc(text, isPlaceholder)
		if n < 0 {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:n])
		r, size := rune(0), 0
		for _, r = range text[n:] {
			size = len(string(r))
			break
		}
		v := i.variables[r-placeholders]
		v.used = true
		b.WriteString("${env:" + v.name + "}")
		text = text[n+size:]
	}
	return b.String()
}

// plainYAML are texts that YAML takes for nothing else than a string without quotes.
var plainYAML = regexp.MustCompile(`^[A-Za-z/$_][A-Za-z0-9/$_.@{}:+=~%?*&()-]*$`)

// scalarYAML writes text so that YAML, whoever reads it, takes it for this very string.
func scalarYAML(text string) string {
	if !plainYAML.MatchString(text) || strings.HasSuffix(text, ":") {
		return quotedYAML(text)
	}
	switch strings.ToLower(text) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return quotedYAML(text)
	}
	return text
}

// quotedYAML writes text in double quotes, with no character in it that only looks like another or does not show.
func quotedYAML(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || unicode.IsPrint(r) && r != '\uFEFF':
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
