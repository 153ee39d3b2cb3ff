// Command schemas turns the OpenAPI document of a Kubernetes version into JSON schemas as kubeconform reads them, one
// for each kind that can be applied:
//
//	go run .ci/schemas.go SWAGGER FOLDER
//
// They are strict: an object that has fields has no others.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run .ci/schemas.go SWAGGER FOLDER")
		os.Exit(2)
	}
	written, err := schemas(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "making schemas:", err)
		os.Exit(1)
	}
	fmt.Printf("%d schemas\n", written)
}

func schemas(swagger, folder string) (int, error) {
	text, err := os.ReadFile(swagger)
	if err != nil {
		return 0, err
	}
	var document struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return 0, fmt.Errorf("%s: %w", swagger, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	for name, definition := range document.Definitions {
		if _, open := definition["additionalProperties"]; definition["properties"] != nil && !open {
			definition["additionalProperties"] = false
		}
		// What the document calls a string may also be written as a number.
		if definition["format"] == "int-or-string" || strings.HasSuffix(name, ".api.resource.Quantity") {
			definition["type"] = []string{"string", "number"}
		}
	}
	written := 0
	for name, definition := range document.Definitions {
		kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
		for _, kind := range kinds {
			file, fields := applied(kind.(map[string]any))
			needed := map[string]any{}
			gather(name, document.Definitions, needed)
			schema, err := json.Marshal(map[string]any{
				"$schema": "http://json-schema.org/draft-07/schema#", "definitions": needed, "required": []string{"apiVersion", "kind"},
				"allOf": []any{map[string]any{"$ref": "#/definitions/" + name}, map[string]any{"properties": fields}},
			})
			if err != nil {
				return written, err
			}
			if err := os.WriteFile(filepath.Join(folder, file), schema, 0o644); err != nil {
				return written, err
			}
			written++
		}
	}
	return written, nil
}

// applied is how kubeconform asks for a kind, and the two fields that name it in a manifest.
func applied(kind map[string]any) (file string, fields map[string]any) {
	name, version := kind["kind"].(string), kind["version"].(string)
	file = strings.ToLower(name)
	if group := kind["group"].(string); group != "" {
		short, _, _ := strings.Cut(group, ".")
		file += "-" + strings.ToLower(short)
		version = group + "/" + version
	}
	file += "-" + strings.ToLower(kind["version"].(string)) + ".json"
	return file, map[string]any{"apiVersion": map[string]any{"const": version}, "kind": map[string]any{"const": name}}
}

// gather puts into needed the definition called name and all that it refers to.
func gather(name string, all map[string]map[string]any, needed map[string]any) {
	if _, has := needed[name]; has {
		return
	}
	needed[name] = all[name]
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if ref, is := value["$ref"].(string); is {
				gather(strings.TrimPrefix(ref, "#/definitions/"), all, needed)
			}
			for _, v := range value {
				walk(v)
			}
		case []any:
			for _, v := range value {
				walk(v)
			}
		}
	}
	walk(all[name])
}
