package catalog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/policy"
)

// A Tool is one tool as its upstream lists it.
type Tool struct {
	Name   string // the upstream's own
	Public string // with the prefix
	JSON   []byte // the definition, with the public name, as clients may read it
	Params []mcp.HeaderParam
	app    bool              // has a user interface
	sum    [sha256.Size]byte // of JSON
}

func (t *Tool) seal() { t.sum = sha256.Sum256(t.JSON) }

// A listing is all the tools of one upstream, from one session. It is immutable once it is published.
type listing struct {
	id       string // of the upstream
	revision string
	tools    []*Tool // in the server's order
	shown    []*Tool // those of them that the policy lets callers see
	byName   map[string]*Tool
	invalid  int
	leftOut  map[string]error // some of the invalid ones, by name
	attempt  uint64           // that it comes of, counted over all catalogs
	redacted bool             // a tool of it is shown without what is secret
	withheld int              // tools that are left out since a name of theirs holds a secret
	secrets  uint64           // Config.Secrets as it was before the tools were judged
	app      bool             // a tool of it has a user interface, whose calls use the tools' own names
}

func newListing(id string) *listing {
	return &listing{id: id, byName: map[string]*Tool{}, leftOut: map[string]error{}}
}

func (l *listing) add(t *Tool) {
	l.tools = append(l.tools, t)
	l.byName[t.Name] = t
	l.app = l.app || t.app
}

// under is the tool as it is named with prefix.
func (t *Tool) under(prefix string) *Tool {
	public := prefix + t.Name
	if t.Public == public {
		return t
	}
	o, _ := wire.ParseObject(t.JSON) // which the gateway has written
	renamed := new(*t)
	renamed.Public = public
	renamed.JSON = o.Edited(wire.Edit{Name: "name", Value: wire.AppendString(nil, public)})
	renamed.seal()
	return renamed
}

// reuse puts the tools of an earlier listing in the place of those that are just as they were: what is not another tool leads to no
// other page, and to no notice.
func (l *listing) reuse(before *listing) {
	if before == nil {
		return
	}
	for i, t := range l.tools {
		if old := before.byName[t.Name]; old != nil && bytes.Equal(old.JSON, t.JSON) && reflect.DeepEqual(old.Params, t.Params) {
			l.tools[i], l.byName[t.Name] = old, old
		}
	}
}

// sift decides what callers see. The rules know no callers yet: one answer is everybody's.
func (l *listing) sift(p *policy.Policy) {
	for _, t := range l.tools {
		if p.Allows("", l.id, t.Name) {
			l.shown = append(l.shown, t)
		}
	}
}

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
	t.seal()
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
