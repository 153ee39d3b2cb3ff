package catalog

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// A Tool is one tool as its upstream lists it.
type Tool struct {
	Name   string // the upstream's own
	Public string // with the prefix
	JSON   []byte // the definition, with the public name
	Params []mcp.HeaderParam
	app    bool // has a user interface
}

// A listing is all the tools of one upstream, from one session.
type listing struct {
	revision string
	tools    []*Tool // in the server's order
	byName   map[string]*Tool
	invalid  int
	leftOut  map[string]error // some of the invalid ones, by name
	size     int              // bytes of all definitions
	app      bool             // a tool of it has a user interface, whose calls use the tools' own names
}

func newListing() *listing { return &listing{byName: map[string]*Tool{}, leftOut: map[string]error{}} }

// maxLeftOut bounds how many of the tools that cannot be offered are named in the log.
const maxLeftOut = 100

func (l *listing) leaveOut(name string, err error) {
	l.invalid++
	if len(l.leftOut) < maxLeftOut {
		l.leftOut[name] = err
	}
}

// readTool reads a definition. The tool is never nil, so that an error can name it.
func readTool(raw []byte, s *source) (*Tool, error) {
	t := &Tool{}
	o, err := wire.ParseObject(raw)
	if err != nil {
		return t, errors.New("the definition is not an object")
	}
	name, ok := o.String("name")
	if !ok || name == "" || !o.Unique("name", "inputSchema", "execution", "_meta") {
		return t, errors.New("the definition has no name, or repeats a member")
	}
	t.Name, t.Public = name, s.Prefix+name
	if len(name) > maxName || strings.ContainsFunc(name, unwritable) {
		return t, errors.New("its name is too long, or has characters that a call could not name it by")
	}
	if requiresTask(o) {
		return t, errors.New("it can only be called as a task, which the gateway does not offer")
	}
	public := wire.AppendString(nil, t.Public)
	edits := []wire.Edit{{Name: "name", Value: public}}
	if schema, ok := o.Value("inputSchema"); ok {
		t.Params, err = mcp.HeaderParams(schema)
		if err != nil && s.OverHTTP {
			return t, fmt.Errorf("its input schema is invalid: %w", err)
		}
		if err != nil {
			stripped, ok := mcp.WithoutHeaderKeyword(schema)
			if !ok {
				return t, errors.New("its input schema nests too deep to be mended")
			}
			edits = append(edits, wire.Edit{Name: "inputSchema", Value: stripped})
		}
	}
	if meta, ok := o.Object("_meta"); ok {
		if ui, ok := meta.Object("ui"); ok {
			t.app = ui.Has("resourceUri")
		}
	}
	if own, _ := o.Value("name"); s.Prefix == "" && string(own) == string(public) {
		edits = edits[1:]
	}
	t.JSON = o.Edited(edits...)
	return t, nil
}

// maxName bounds a tool's name, in bytes; the specification has 128 characters.
const maxName = 1 << 10

// unwritable are the control characters, which a call is refused with, and what stands for a lone surrogate.
func unwritable(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }

func requiresTask(o wire.Object) bool {
	execution, ok := o.Object("execution")
	if !ok {
		return false
	}
	support, _ := execution.String("taskSupport")
	return support == "required"
}
