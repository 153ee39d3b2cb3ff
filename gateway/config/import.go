package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"mcp-gateway/redact"
)

const maxImport = 16 << 20 // bytes of a client's file; some keep all that they know in it

// An Imported is a configuration made from a client's file.
type Imported struct {
	YAML      []byte     // loads once Variables are set, and holds no credential
	Upstreams int        // that are not switched off
	Variables []Variable // by name
	Notes     []Problem  // what does not work here as it did in the client
}

// A Variable is one of the environment that an imported configuration refers to.
type Variable struct {
	Name string
	For  string // where its value stood and what is known of it, in words; never the value
}

// LoadImport reads the client's file at path, or stdin where that is -, and imports it as Import does.
func LoadImport(path string, stdin io.Reader) (*Imported, error) {
	from, name := stdin, "standard input"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, Problems{{File: path, Text: "cannot be read: " + plainCause(err)}}
		}
		defer f.Close()
		from, name = f, path
	}
	data, err := io.ReadAll(io.LimitReader(from, maxImport+1))
	if err != nil {
		return nil, Problems{{File: name, Text: "cannot be read: " + plainCause(err)}}
	}
	return Import(name, data)
}

// Import makes a configuration from a client's file: mcpServers of Claude Desktop, Claude Code and Cursor, servers and inputs
// of VS Code, JSON with or without comments. Name is the file's path: problems show it, and envFile and the workspace's folder are
// found by it. Every credential, by name or by looks, becomes a reference to a variable. The error is Problems, every
// one there is. Nothing is asked of any server, so that one over HTTP is taken for one with a handshake.
func Import(name string, data []byte) (*Imported, error) {
	i := newImporter(name)
	if i.read(string(data)); len(i.problems) == 0 {
		i.protect()
	}
	i.clean()
	out := &Imported{Notes: i.warnings}
	if len(i.problems) == 0 {
		if out.YAML = i.write(); len(out.YAML) > maxFile {
			i.tooMuch()
		}
	}
	if len(i.problems) > 0 {
		return nil, i.problems
	}
	out.Variables = i.list()
	for _, s := range i.servers {
		if !s.off {
			out.Upstreams++
		}
	}
	return out, nil
}

// An importer holds what one Import gathers.
type importer struct {
	*loader
	workspace string // the project's folder; "" where the file does not say
	inputs    map[string]input
	variables []*variable // the placeholder of each is its index
	byKey     map[string]*variable
	taken     map[string]bool // names of variables
	servers   []*server
}

// A server is one entry of the file on its way to be an upstream. Its strings have placeholders where references stand.
type server struct {
	id      string
	at      place
	remarks []string // above the entry
	off     bool     // written as a comment
	left    bool     // not written at all but for its remarks

	command     string
	args        []string
	env         []setting
	cwd         string
	url         string
	sse, shaped bool // over HTTP+SSE, and only because of how the url ends
	headers     []setting
	bearer      string
	allow, deny []string // nil where not set
}

// A setting is a variable or a header of a server.
type setting struct{ name, value string }

func newImporter(name string) *importer {
	return &importer{
		loader: newLoader(name), workspace: workspaceOf(name), inputs: map[string]input{},
		byKey: map[string]*variable{}, taken: map[string]bool{},
	}
}

// workspaceOf is the folder of the project that a file at name belongs to, "" where it belongs to none.
func workspaceOf(name string) string {
	path, err := filepath.Abs(name)
	if err != nil {
		return ""
	}
	dir := filepath.Dir(path)
	home, _ := os.UserHomeDir()
	switch {
	case filepath.Base(path) == ".mcp.json":
		return dir
	case !slices.Contains([]string{".vscode", ".cursor"}, filepath.Base(dir)) || filepath.Dir(dir) == home:
		return ""
	}
	return filepath.Dir(dir)
}

// read takes in all servers, as they are but for the references of clients.
func (i *importer) read(text string) {
	whole := place{node: &yaml.Node{}}
	if len(text) > maxImport {
		i.refuse(whole, "is larger than %d MiB, that is no configuration", maxImport>>20)
		return
	}
	root, fault, ok := readJSON(text)
	if !ok {
		i.refuse(place{node: root}, "%s", fault)
		return
	}
	for _, at := range i.lists(place{node: root}) {
		i.readServers(at)
	}
	if len(i.problems) == 0 && !slices.ContainsFunc(i.servers, func(s *server) bool { return !s.off && !s.left }) {
		i.refuse(whole, "has no server that is switched on and has a place here: %s", reasons(i.warnings))
	}
	size := 0
	for _, s := range i.servers {
		for _, text := range s.texts() {
			size += len(*text)
		}
	}
	if size > maxFile { // looking for credentials takes time
		i.tooMuch()
	}
}

func (i *importer) tooMuch() {
	i.refuse(place{node: &yaml.Node{}}, "makes a configuration of over %d KiB, which is refused: import it in parts", maxFile>>10)
}

// protect hides what is secret. It comes last, since a name for it must be none that the file has for others.
func (i *importer) protect() {
	for _, s := range i.servers {
		i.hide(s)
	}
	i.spread()
	i.name()
}

func reasons(notes []Problem) string {
	list := make([]string, 0, len(notes))
	for _, n := range notes {
		list = append(list, n.Path+" "+n.Text)
	}
	return strings.Join(list, "; ")
}

// lists finds the objects that name servers, and reads what they ask a person for.
func (i *importer) lists(root place) []place {
	members, ok := i.entries(root)
	if !ok {
		return nil
	}
	var found []place
	for _, e := range members {
		switch e.name {
		case "mcpServers", "servers":
			found = append(found, e.at)
		case "mcp": // settings.json of VS Code
			if e.at.node.Kind == yaml.MappingNode {
				found = append(found, i.lists(e.at)...)
			}
		case "inputs":
			i.readInputs(e.at)
		case "projects": // of Claude Code's own file
			i.warn(e.at, "is left out: import the .mcp.json of each project, only the servers for all of them are taken here")
		}
	}
	if found == nil && len(i.problems) == 0 && root.path == "" {
		i.refuse(root, "names no servers: a client's file has them in mcpServers, one of VS Code in servers")
	}
	return found
}

// readServers reads one list of servers, in file order. A name that is a valid id keeps it.
func (i *importer) readServers(at place) {
	list, ok := i.entries(at)
	if !ok {
		return
	}
	if len(list) == 0 {
		i.refuse(at, "is empty")
	}
	if len(i.servers)+len(list) > maxUpstreams {
		i.refuse(at, "has %d servers, at most %d are served", len(i.servers)+len(list), maxUpstreams)
		return
	}
	taken := map[string]bool{}
	for _, s := range i.servers {
		taken[s.id] = true
	}
	for _, e := range list {
		taken[e.name] = taken[e.name] || upstreamID.MatchString(e.name)
	}
	kept := map[string]bool{}
	for _, s := range i.servers {
		kept[s.id] = true
	}
	for _, e := range list {
		s := &server{id: e.name, at: place{key: e.at.key, node: e.at.node, path: e.named(at).path}}
		if !upstreamID.MatchString(e.name) || kept[e.name] {
			s.id = freeID(e.name, taken)
			if s.at.path == e.at.path {
				s.remarks = append(s.remarks, "Its name was "+quote(e.name)+".")
			}
		}
		taken[s.id], kept[s.id] = true, true
		i.servers = append(i.servers, s)
		i.readServer(s)
	}
}

// freeID makes a valid id of name that is not taken.
func freeID(name string, taken map[string]bool) string {
	const longest = 31
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	id := strings.Join(words, "-")
	switch {
	case id == "":
		id = "server"
	case id[0] < 'a':
		id = "mcp-" + id
	}
	for n := 1; ; n++ {
		suffix := ""
		if n > 1 {
			suffix = "-" + strconv.Itoa(n)
		}
		free := strings.TrimRight(id[:min(len(id), longest-len(suffix))], "-") + suffix
		if !taken[free] {
			return free
		}
	}
}

// remark notes what is otherwise than in the client, for whoever imports and for whoever reads the configuration.
func (i *importer) remark(s *server, at place, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	i.warn(at, "%s", text)
	inside, ok := strings.CutPrefix(at.path, s.at.path+".")
	if !ok {
		inside = s.id
	}
	s.remarks = append(s.remarks, inside+" "+text)
}

// clean takes out of what is said all that was hidden: a message quotes no credential by intention, and this holds where
// a person put one in a wrong place.
func (i *importer) clean() {
	scrubber := redact.NewScrubber()
	for _, v := range i.variables {
		if !redact.Weak(v.hidden.Reveal()) { // a word may well be a server's name too
			scrubber.Learn(redact.Known{Text: v.hidden})
		}
	}
	shown := func(texts []string) {
		for n := range texts {
			texts[n] = redact.Printable(scrubber.String(texts[n]))
		}
	}
	for _, list := range []Problems{i.problems, i.warnings} {
		for n := range list {
			list[n].Path = redact.Printable(scrubber.String(list[n].Path))
			list[n].Text = redact.Printable(scrubber.String(list[n].Text))
		}
		list.sort()
	}
	for _, v := range i.variables {
		shown(v.uses)
	}
	for _, s := range i.servers {
		shown(s.remarks)
	}
}
