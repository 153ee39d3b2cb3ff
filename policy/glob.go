package policy

import (
	"strings"
	"unicode/utf8"
)

// A glob is a pattern without two stars in a row: `*` stands for any run of characters, none included, `?` for exactly
// one character, and everything else for itself, case and all. Any string is a pattern. Matching takes at most
// len(pattern) × len(name) steps, whatever the pattern.
type glob string

func compile(patterns []string) []glob {
	globs := make([]glob, 0, len(patterns))
	for _, p := range patterns {
		for strings.Contains(p, "**") {
			p = strings.ReplaceAll(p, "**", "*")
		}
		globs = append(globs, glob(p))
	}
	return globs
}

// match reports whether name is one that g stands for.
func (g glob) match(name string) bool { return g.walk(name, false) }

// covers reports whether every name that other stands for is one of g's: a star of other is found only in a star of g.
func (g glob) covers(other glob) bool { return g.walk(string(other), true) }

// walk matches g with a name, or with a pattern in which a star is no single character. It goes back only to the last star: what an
// earlier star took can stay as it is, since the later one makes up for any difference.
func (g glob) walk(name string, pattern bool) bool {
	at, star, resume := 0, -1, 0
	for i := 0; i < len(name); {
		if at < len(g) {
			if g[at] == '*' {
				star, resume = at, i
				at++
				continue
			}
			if g[at] == '?' && !(pattern && name[i] == '*') {
				_, size := utf8.DecodeRuneInString(name[i:])
				at++
				i += size
				continue
			}
			if g[at] == name[i] {
				at++
				i++
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, size := utf8.DecodeRuneInString(name[resume:])
		resume += size
		at, i = star+1, resume
	}
	for at < len(g) && g[at] == '*' {
		at++
	}
	return at == len(g)
}

func matchAny(globs []glob, name string) bool {
	for _, g := range globs {
		if g.match(name) {
			return true
		}
	}
	return false
}

// Match reports whether name matches the glob pattern. It allocates nothing.
func Match(pattern, name string) bool { return glob(pattern).match(name) }
