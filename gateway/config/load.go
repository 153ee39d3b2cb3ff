package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"

	"mcp-gateway/redact"
)

const (
	maxFile     = 1 << 20 // bytes of a configuration
	maxProblems = 200     // listed; a file with more was never meant to be one
)

// An Override is a setting of the command line. It counts in place of the file's and keeps the same rules.
type Override struct {
	Listen string // "" keeps the file's
}

// Load reads the configuration file at path and parses it as Parse does.
func Load(path string, overrides ...Override) (*Config, []Problem, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	return Parse(path, data, overrides...)
}

func unreadable(path string, err error) *Refused {
	return &Refused{Problems{{File: path, Text: "cannot be read: " + plainCause(err)}}, Read(path)}
}

// Parse reads a configuration, YAML or JSON. Name is the file's path: problems show it, and `${file:}`, cwd and
// state_dir are relative to its folder. It returns the warnings, also beside an error. The error is *Refused, with
// every problem there is, and then there is no Config.
func Parse(name string, data []byte, overrides ...Override) (*Config, []Problem, error) {
	l := newLoader(name)
	l.overrides = overrides
	sum := sha256.Sum256(data)
	c := &Config{Hash: hex.EncodeToString(sum[:6])}
	if root, ok := l.tree(data); ok {
		l.top(c, root)
	}
	// What a message quotes never is a credential by intention; this holds where a person put one in a wrong place.
	scrubber := redact.NewScrubber()
	scrubber.Learn(l.known...)
	for _, list := range []Problems{l.problems, l.warnings} {
		for i := range list {
			list[i].Path = redact.Printable(scrubber.String(list[i].Path))
			list[i].Text = redact.Printable(scrubber.String(list[i].Text))
		}
		list.sort()
	}
	if len(l.problems) > 0 {
		return nil, l.warnings, &Refused{l.problems, l.references.reading(name, sum)}
	}
	l.ambient(c)
	c.secrets = l.gathered(c)
	c.Read = l.watched(c, sum)
	return c, l.warnings, nil
}

// A loader holds what one Parse gathers.
type loader struct {
	file               string
	overrides          []Override
	problems, warnings Problems
	references         references
	known              []redact.Known
}

func newLoader(name string) *loader {
	return &loader{file: name, references: newReferences(name)}
}

// A place is a value in the file and the member it belongs to.
type place struct {
	key  *yaml.Node // nil in a sequence and at the root
	node *yaml.Node
	path string
	file string // "" is the configuration itself
}

// position is where a person looks for the problem: at the value, or at the name of one that spans lines.
func (p place) position() (line, col int) {
	n := p.node
	if p.key != nil && n.Kind != yaml.ScalarNode {
		n = p.key
	}
	return n.Line, n.Column
}

func (l *loader) refuse(at place, format string, args ...any) {
	l.problems = l.add(l.problems, at, format, args)
}

func (l *loader) warn(at place, format string, args ...any) {
	l.warnings = l.add(l.warnings, at, format, args)
}

func (l *loader) add(list Problems, at place, format string, args []any) Problems {
	if len(list) >= maxProblems {
		return list
	}
	line, col := at.position()
	file := cmp.Or(at.file, l.file)
	return append(list, Problem{File: file, Line: line, Col: col, Path: at.path, Text: fmt.Sprintf(format, args...)})
}

// plainCause is err without the path, which the caller names in its own way.
func plainCause(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return strings.TrimSpace(err.Error())
}
