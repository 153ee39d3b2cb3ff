package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const readmeFile = "../../README.md"

const readmeHead = "| key | default | meaning |\n| --- | --- | --- |\n"

func TestReadmeIsUpToDate(t *testing.T) {
	data, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), readmeHead)
	i := strings.Index(rest, "\n\n")
	if !found || i < 0 {
		t.Fatal("README has no table of keys")
	}
	golden(t, readmeFile, []byte(before+readmeHead+rows(object("", topMembers), "")+rest[i+1:]))
}

// rows are a table's, one for each member; … stands for upstreams.ID.
func rows(s schema, path string) string {
	text := ""
	for _, p := range s.Properties {
		if p.value.Description == "" {
			continue
		}
		unset := p.value.unset
		if p.value.Default != nil {
			unset = fmt.Sprintf("`%v`", p.value.Default)
		}
		key := path + p.name
		if key == "upstreams" {
			key = "upstreams.ID"
		}
		text += fmt.Sprintf("| `%s` | %s | %s |\n", key, unset, p.value.Description)
		below := path + p.name + "."
		for _, part := range append(slices.Clone(p.value.AnyOf), p.value) {
			text += rows(part, below)
		}
		if each, is := p.value.AdditionalProperties.(*schema); is {
			text += rows(*each, "….")
		}
	}
	return text
}
