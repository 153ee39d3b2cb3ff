package config

import (
	"strings"
	"time"
)

const maxPattern = 256 // characters of a glob

var toolsMembers = []member[draft]{
	{"allow", listOf("globs (`*`, `?`) on the server's own names of the tools that pass", glob).without("all"),
		func(l *loader, d *draft, at place) {
			d.up.Tools.Allow = l.patterns(at)
			if d.up.Tools.Allow != nil && len(d.up.Tools.Allow) == 0 && !l.refused(at.path) {
				l.warn(at, "is empty, so no tool is shown; take it out to show all")
			}
		}},
	{"deny", listOf("globs of those that do not; they win", glob).without("none"),
		func(l *loader, d *draft, at place) { d.up.Tools.Deny = l.patterns(at) }},
	{"timeouts", mapOf("`timeout` by glob, such as `{\"build_*\": 30m}`; the first that matches counts", "", period("")).filled().without("`timeout` for all"),
		readToolTimeouts},
}

var glob = scalar("").like(`[\s\S]`)

// patterns reads a list of globs; never nil, since a list that is there but unusable must not let all pass.
func (l *loader) patterns(at place) []string {
	list, _ := l.texts(at)
	globs := make([]string, 0, len(list))
	for _, i := range list {
		if l.pattern(i.at, i.value.text) {
			globs = append(globs, i.value.text)
		}
	}
	return globs
}

func (l *loader) pattern(at place, text string) bool {
	switch {
	case text == "":
		l.refuse(at, "is empty, it would match no tool")
	case len(text) > maxPattern:
		l.refuse(at, "has over %d characters, no tool's name is that long", maxPattern)
	default:
		return true
	}
	return false
}

// readToolTimeouts keeps file order, in which the first that matches counts.
func readToolTimeouts(l *loader, d *draft, at place) {
	list, ok := l.entries(at)
	if ok && len(list) == 0 && !l.refused(at.path) {
		l.refuse(at, "is empty, name a tool or take it out")
	}
	all := 0 // the line of one that matches every tool
	for _, e := range list {
		if !l.pattern(e.named(at), e.name) {
			continue
		}
		if all > 0 {
			l.refuse(e.named(at), "is never reached, what stands on line %d matches every tool: move this up", all)
			continue
		}
		t := ToolTimeout{Pattern: e.name}
		l.duration(e.at, time.Millisecond, &t.Timeout)
		d.up.ToolTimeouts = append(d.up.ToolTimeouts, t)
		if strings.Trim(e.name, "*") == "" {
			all = e.at.key.Line
		}
	}
}
