package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing that is wrong with a configuration, or worth a warning, and where it stands.
type Problem struct {
	File      string
	Line, Col int    // from 1; 0 where the file as a whole is meant
	Path      string // of the member, such as upstreams.files.timeout; "" for the file as a whole
	Text      string // what is wrong, what to do
}

// String returns `file:line:col: path: text`, without what is not known.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Col)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Problems is every problem of a configuration, by position. As an error it has one line for each.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Refused is the error of a configuration that cannot be used: its problems, and what was read to find them. Where that changes, the
// configuration may be another.
type Refused struct {
	Problems
	Read Reading
}

// Unwrap gives the Problems.
func (r *Refused) Unwrap() error { return r.Problems }

func (p Problems) sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}
