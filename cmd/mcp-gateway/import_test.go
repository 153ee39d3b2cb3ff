package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const clientFile = `{"mcpServers": {"GitHub": {"command": "npx", "env": {"GITHUB_TOKEN": "planted-token-1"}}}}`

// imported runs the subcommand with these arguments, on stdin.
func imported(stdin string, args ...string) (stdout, stderr string, err error) {
	var out, said bytes.Buffer
	root := rootCommand()
	root.SetArgs(append([]string{"import"}, args...))
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&said)
	err = root.Execute()
	return out.String(), said.String(), err
}

func TestImportPrintsAConfiguration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(clientFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, "-"} {
		stdout, stderr, err := imported(clientFile, name)
		if err != nil || !strings.Contains(stdout, "GITHUB_TOKEN: ${env:GITHUB_TOKEN}\n") || !strings.HasPrefix(stdout, "# Imported from") {
			t.Errorf("%s: %v\n%s", name, err, stdout)
		}
		if !strings.Contains(stderr, "\n  GITHUB_TOKEN  the variable GITHUB_TOKEN of github\n") || !strings.HasSuffix(stderr, "mcp-gateway check -c FILE\n") {
			t.Errorf("%s said\n%s", name, stderr)
		}
		if strings.Contains(stdout+stderr, "planted") {
			t.Error("a secret is printed")
		}
	}
}

func TestImportWritesAFileOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	stdout, stderr, err := imported(clientFile, "-", "-o", path)
	if err != nil || stdout != "" || !strings.Contains(stderr, path+": written, 1 upstream\n") || !strings.HasSuffix(stderr, "check -c "+path+"\n") {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	first, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(first), "  github:\n") {
		t.Fatalf("%v %s", err, first)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	other := strings.Replace(clientFile, "GitHub", "other", 1)
	if _, stderr, err = imported(other, "-", "-o", path); err == nil || !strings.Contains(err.Error(), "is there already; choose another name, or overwrite it with --force") || stderr != "" {
		t.Errorf("%v\n%s", err, stderr)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, first) {
		t.Errorf("it was overwritten: %v\n%s", err, again)
	}
	if _, _, err = imported(other, "-", "-o", path, "--force"); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(path); err != nil || !strings.Contains(string(again), "  other:\n") || strings.Contains(string(again), "github:") {
		t.Errorf("it was not overwritten: %v\n%s", err, again)
	}
}

func TestImportSaysWhere(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "gateway.yaml")
	stdout, stderr, err := imported("{\n  \"mcpServers\": oops\n}", "-", "-o", target)
	if err != errReported || stdout != "" || !strings.HasPrefix(stderr, "standard input:2:17: a value is missing here") {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Errorf("a file was made of what cannot be read: %v", err)
	}
	if _, stderr, err = imported("", filepath.Join(t.TempDir(), "absent.json")); err != errReported || !strings.Contains(stderr, "absent.json: cannot be read: no such file") {
		t.Errorf("%v\n%s", err, stderr)
	}
	if _, stderr, err = imported("", t.TempDir()); err != errReported || !strings.Contains(stderr, "cannot be read: is a directory") {
		t.Errorf("%v\n%s", err, stderr)
	}
}
