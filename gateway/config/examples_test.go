package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const examples = "../../configs"

// A fresh machine has none of the variables and files that the examples speak of.
func TestExamplesLoad(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, path := range files {
		_, warned, err := Load(path)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if len(warned) > 0 {
			t.Errorf("%v", Problems(warned))
		}
	}
}

// With every setting switched on, full.yaml still loads, and it has each name that a table of the parser has.
func TestFullNamesEveryMember(t *testing.T) {
	text := fullYAML(t)
	if _, warned, err := Parse("full.yaml", []byte(text)); err != nil || len(warned) > 0 {
		t.Fatalf("with everything on: %v\n%v", Problems(warned), err)
	}
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	met := 0
	var walk func(s schema, here []*yaml.Node, path string)
	walk = func(s schema, here []*yaml.Node, path string) {
		for _, p := range s.Properties {
			met++
			values := valuesOf(here, p.name)
			if len(values) == 0 {
				t.Errorf("full.yaml lacks %s%s", path, p.name)
				continue
			}
			for _, part := range append(slices.Clone(p.value.AnyOf), p.value) {
				walk(part, values, path+p.name+".")
			}
		}
		if s.Items != nil {
			for _, part := range s.Items.AnyOf {
				walk(part, valuesOf(here, ""), path+"[].")
			}
		}
		if each, is := s.AdditionalProperties.(*schema); is {
			walk(*each, valuesOf(here, ""), path+"*.")
		}
	}
	walk(object("", topMembers), []*yaml.Node{doc.Content[0]}, "")
	if met < 50 {
		t.Errorf("the walk met %d members, it does not reach them all", met)
	}
}

// fullYAML is full.yaml with every setting switched on, and an environment that it can refer to.
func fullYAML(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(examples, "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"EVERYTHING_API_KEY", "DOCS_TOKEN", "SEARCH_CLIENT_SECRET", "SEARCH_REFRESH_TOKEN"} {
		t.Setenv(name, "planted-value-1")
	}
	t.Setenv("MCP_GATEWAY_SEAL_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	// The settings that are off take the place of their like that is on.
	text := strings.Replace(string(data), "\ncallers: none\n", "\n", 1)
	return regexp.MustCompile(`(?m)^( *)#(|  +)([A-Za-z])`).ReplaceAllString(text, "$1$2$3")
}

// valuesOf are the values of the members called name, or of all members and items, of all of here.
func valuesOf(here []*yaml.Node, name string) []*yaml.Node {
	var list []*yaml.Node
	for _, n := range here {
		if n.Kind == yaml.SequenceNode && name == "" {
			list = append(list, n.Content...)
		}
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if name == "" || n.Content[i].Value == name {
				list = append(list, n.Content[i+1])
			}
		}
	}
	return list
}
