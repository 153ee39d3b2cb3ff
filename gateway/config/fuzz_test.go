package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcp-gateway/gateway/config"
)

// Whatever the bytes, there is either a configuration or a problem, each problem has words, and none shows the secret.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
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
	f.Add([]byte("upstreams: {a: {command: \"${env:CONFIG_TEST_BEARER}\"}}"))
	f.Setenv("CONFIG_TEST_BEARER", "planted-environment-secret")
	f.Fuzz(func(t *testing.T, data []byte) {
		c, warned, err := config.Parse("testdata/fuzz.yaml", data)
		if (c == nil) != (err != nil) {
			t.Fatalf("config %v beside error %v", c, err)
		}
		said := ""
		for _, p := range warned {
			said += p.String() + "\n"
		}
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			said += err.Error()
		}
		if strings.Contains(said, "planted-environment-secret") {
			t.Fatalf("a secret is in %s", said)
		}
	})
}
