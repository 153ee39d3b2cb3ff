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
	data, err := os.ReadFile(filepath.Join(examples, "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"EVERYTHING_API_KEY", "DOCS_TOKEN"} {
		t.Setenv(name, "planted-value-1")
	}
	t.Setenv("MCP_GATEWAY_SEAL_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	// The settings that are off take the place of their like that is on.
	text := strings.Replace(string(data), "\ncallers: none\n", "\n", 1)
	text = regexp.MustCompile(`(?m)^( *)#(  [a-z]|[A-Za-z]|    [a-z])`).ReplaceAllString(text, "$1$2")
	if _, warned, err := Parse("full.yaml", []byte(text)); err != nil || len(warned) > 0 {
		t.Fatalf("with everything on: %v\n%v", Problems(warned), err)
	}
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	root := doc.Content[0]
	upstream := append(memberNames(at(root, "upstreams", "everything")), memberNames(at(root, "upstreams", "docs"))...)
	for _, section := range []struct {
		path        string
		known, here []string
	}{
		{"", names(topMembers), memberNames(root)},
		{"callers", names(callersMembers), memberNames(at(root, "callers"))},
		{"seal", names(sealMembers), memberNames(at(root, "seal"))},
		{"upstreams.*", names(upstreamMembers), upstream},
		{"reconnect", names(reconnectMembers), memberNames(at(root, "upstreams", "everything", "reconnect"))},
		{"tools", names(toolsMembers), memberNames(at(root, "upstreams", "everything", "tools"))},
		{"credential", names(credentialMembers), memberNames(at(root, "upstreams", "docs", "credential"))},
	} {
		for _, name := range section.known {
			if !slices.Contains(section.here, name) {
				t.Errorf("full.yaml lacks %s %s", section.path, name)
			}
		}
	}
}

func at(n *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		i := slices.Index(memberNames(n), name)
		if i < 0 {
			return &yaml.Node{}
		}
		n = n.Content[2*i+1]
	}
	return n
}

func memberNames(n *yaml.Node) []string {
	var list []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		list = append(list, n.Content[i].Value)
	}
	return list
}
