package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"
)

//go:generate go test -run TestSchemaIsUpToDate|TestReadmeIsUpToDate -update

var update = flag.Bool("update", false, "write the files that are made from the tables of members")

const schemaFile = "mcp-gateway.schema.json" // in the folder of the examples

// MarshalJSON writes an object whose members keep their order. A description says what counts without the member where
// that is no constant.
func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	for i, member := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(member.name) + ":")
		if member.value.unset != "" {
			member.value.Description += "; by default " + member.value.unset
		}
		if err := to.Encode(member.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// made is the file of the schema.
func made(t testing.TB) []byte {
	t.Helper()
	root := object("A configuration of mcp-gateway. Any string may hold ${env:NAME} and ${file:PATH}.", topMembers)
	root.Required = []string{"upstreams"}
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	if err := to.Encode(struct {
		Dialect string `json:"$schema"`
		Title   string `json:"title"`
		schema
	}{"https://json-schema.org/draft/2020-12/schema", "mcp-gateway", root}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSchemaIsUpToDate(t *testing.T) {
	golden(t, filepath.Join(examples, schemaFile), made(t))
}

func golden(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the tables make it, run go generate ./gateway/config (-want +got):\n%s", path, diff)
	}
}

// resolved is the schema as a validator understands it.
func resolved(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(made(t), &s); err != nil {
		t.Fatal(err)
	}
	known(t, reflect.ValueOf(&s), "")
	r, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// known fails on a keyword that JSON Schema does not have.
func known(t testing.TB, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if s, is := v.Interface().(*jsonschema.Schema); is && s != nil && len(s.Extra) > 0 {
			t.Errorf("%s has unknown keywords: %v", path, s.Extra)
		}
		if !v.IsNil() {
			known(t, v.Elem(), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				known(t, v.Field(i), path+"/"+v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			known(t, v.Index(i), path)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			known(t, v.MapIndex(k), path+"/"+k.String())
		}
	}
}

func TestSchemaAcceptsWhatLoads(t *testing.T) {
	s := resolved(t)
	files, err := filepath.Glob("testdata/*.good.yaml")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	more, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	if err != nil || len(more) < 2 {
		t.Fatalf("%d examples, %v", len(more), err)
	}
	for _, path := range append(files, more...) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(tree(t, data)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if first, _, _ := strings.Cut(string(data), "\n"); strings.HasPrefix(path, examples) && first != "# yaml-language-server: $schema="+schemaFile {
			t.Errorf("%s does not name the schema for editors", path)
		}
	}
	t.Setenv("CONFIG_TEST_VALUE", "legacy")
	const remote = "upstreams: {a: {url: 'https://h.example/', "
	for _, text := range []string{
		fullYAML(t),
		"hosts: []\norigins: []\nseal: {}\nupstreams: {a: {command: 5, args: [], env: {A: 1.5, B: true}, cwd: 1, prefix: 7, reconnect: {}, tools: {}, redact: {}}}",
		"start_grace: -0s\nkeepalive: +1m0.5s\nupstreams: {a: {command: a, timeout: .5s, start_timeout: 1.s, revision: 2025-06-18, rounds: '016'}}",
		"upstreams: {a: {command: a, protocol: '${env:CONFIG_TEST_VALUE}', tools: {allow: [5, '\\n'], deny: [], timeouts: {5: 1m}}}}",
		"upstreams: {a: {url: 'HTTPS://h.example/', headers: {X: 5, '3': a}, forward_headers: [1, {name: 2}]}}",
		"upstreams: {a: {url: 'Wss://h.example', credential: {bearer: 123456789, query: 1}}}",
		remote + "headers: {}, forward_headers: [], credential: {command: 5}}}",
		remote + "credential: {oauth2: {token_url: 'HTTPS://h.example', client_id: 1, client_secret: 123456789, scopes: [1], resource: 'urn:a'}}}}",
		"seal: {keys: [\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBka\\nGxwdHh8=\\n\"]}\nupstreams: {a: {command: a}}",
	} {
		if _, _, err := Parse("f", []byte(text)); err != nil {
			t.Errorf("%s does not load: %v", text, err)
		}
		if err := s.Validate(tree(t, []byte(text))); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What is wrong with these is beyond a schema: the bytes, what a reference stands for, what two values have to do with
// each other.
var beyondSchema = []string{
	"alias.bad.yaml", "flow.bad.yaml", "tag.bad.yaml", "yaml.bad.yaml", // no plain tree
	"admin-form.bad.yaml", "admin-missing.bad.yaml", "label.bad.yaml", "open.bad.yaml", "prefix.bad.yaml", "references.bad.yaml",
}

func TestSchemaRefuses(t *testing.T) {
	s := resolved(t)
	files, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		value := tree(t, data)
		beyond := slices.Contains(beyondSchema, filepath.Base(path))
		if refused := value == nil || s.Validate(value) != nil; refused == (beyond && value != nil) {
			t.Errorf("%s: refused is %t", path, refused)
		}
	}
	// One rule each.
	for _, text := range []string{
		"{}", "upstreams: {}", "upstreams: {a: {}}", "upstreams: {A: {command: a}}", "upstreams: {a: {command: a}}\nlisten: []",
		"upstreams: {a: {command: a, headers: {}}}", "upstreams: {a: {command: a, forward_headers: [X]}}",
		"upstreams: {a: {command: a, credential: {bearer: a}}}", "upstreams: {a: {url: 'http://a', args: []}}",
		"upstreams: {a: {url: 'http://a', command: a}}", "upstreams: {a: {url: 'http://a', transport: sse}}",
		"upstreams: {a: {url: 'ftp://a'}}", "upstreams: {a: {command: a, protocol: new}}", "upstreams: {a: {command: a, timeout: 5}}",
		"upstreams: {a: {command: a, timeout: 5 minutes}}", "upstreams: {a: {command: a, rounds: 0}}", "upstreams: {a: {command: a, rounds: 1001}}",
		"upstreams: {a: {command: a, rounds: many}}", "upstreams: {a: {command: a, inherit_env: 'true'}}",
		"upstreams: {a: {command: a, tools: {timeouts: {}}}}", "upstreams: {a: {url: 'http://a', credential: {}}}",
		"upstreams: {a: {url: 'http://a', credential: {bearer: a, command: a}}}", "upstreams: {a: {url: 'http://a', credential: {command: []}}}",
		"upstreams: {a: {url: 'http://a', credential: {oauth2: {client_id: a, client_secret: a}}}}",
		"upstreams: {a: {url: 'http://a', credential: {oauth2: {token_url: 'https://a'}}}}",
		"upstreams: {a: {url: 'http://a', credential: {oauth2: {token_url: 'https://a', client_secret: a}}}}",
		"upstreams: {a: {url: 'http://a', forward_headers: [{required: true}]}}", "upstreams: {a: {url: 'http://a', headers: {'a b': c}}}",
		"upstreams: {a: {command: a}}\ncallers: all", "upstreams: {a: {command: a}}\ncallers: {}", "upstreams: {a: {command: a}}\ncallers: {keys: {a: b}}",
		"upstreams: {a: {command: a}}\nseal: {keys: [a]}", "upstreams: {a: {command: a}}\npath: mcp",
	} {
		if s.Validate(tree(t, []byte(text))) == nil {
			t.Errorf("%q passes", text)
		}
	}
}

// tree is data as JSON has it, scalars by their YAML type; nil where data is no plain tree.
func tree(t *testing.T, data []byte) any {
	t.Helper()
	l := newLoader("")
	root, ok := l.tree(data)
	if !ok || len(l.problems) > 0 {
		return nil
	}
	var plain func(n *yaml.Node) any
	plain = func(n *yaml.Node) any {
		switch n.Kind {
		case yaml.MappingNode:
			m := map[string]any{}
			for i := 0; i+1 < len(n.Content); i += 2 {
				m[n.Content[i].Value] = plain(n.Content[i+1])
			}
			return m
		case yaml.SequenceNode:
			list := []any{}
			for _, item := range n.Content {
				list = append(list, plain(item))
			}
			return list
		}
		switch n.Tag {
		case "!!null":
			return nil
		case "!!bool":
			return strings.EqualFold(n.Value, "true")
		case "!!int", "!!float":
			var number float64
			if err := n.Load(&number); err != nil {
				t.Fatal(err)
			}
			return number
		}
		return n.Value
	}
	return plain(root.node)
}

// Each default that the schema names is the parser's: to write it out changes nothing.
func TestDefaultsOfTheSchema(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	written := 0
	var write func(s schema, indent string) string
	write = func(s schema, indent string) string {
		text := ""
		for _, p := range s.Properties {
			if p.value.Default != nil {
				written++
				text += fmt.Sprintf("%s%s: %v\n", indent, p.name, p.value.Default)
			} else if inner := write(p.value, indent+"  "); inner != "" {
				text += indent + p.name + ":\n" + inner
			}
		}
		return text
	}
	top, upstream := write(object("", topMembers), ""), write(object("", upstreamMembers), "    ")
	if written < 18 {
		t.Errorf("%d defaults are written out, want all", written)
	}
	for _, server := range []string{"command: a", "command: a\n    protocol: modern"} {
		bare, _, err := Parse("f", []byte("upstreams:\n  a:\n    "+server+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		full, _, err := Parse("f", []byte(top+"upstreams:\n  a:\n    "+server+"\n"+upstream))
		if err != nil {
			t.Fatal(err)
		}
		bare.Hash, bare.Read = full.Hash, full.Read // of the text
		if !reflect.DeepEqual(bare, full) {
			t.Errorf("%s:\n%+v with defaults written out\n%+v", server, full, bare)
		}
	}
}

// What the parser takes, an editor does not mark.
func FuzzSchemaAcceptsWhatLoads(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	s := resolved(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := Parse("testdata/fuzz.yaml", data); err != nil {
			return
		}
		if err := s.Validate(tree(t, data)); err != nil {
			t.Errorf("%q loads, but %v", data, err)
		}
	})
}
