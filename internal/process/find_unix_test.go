//go:build unix

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFailedStartSaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("plain", "#!/bin/sh\n", 0o644)
	lost := write("lost", "#!/no/such/interpreter\n", 0o755)
	empty := write("empty", "\x00\x01", 0o755)
	for _, test := range []struct {
		name string
		cfg  Config
		want string
		is   error
	}{
		{"none", Config{}, "none was given", nil},
		{"not in PATH", Config{Command: "no-such", Env: []string{"PATH=/bin:" + dir}},
			`start "no-such": no such command in PATH (searched /bin:` + dir + `); install it, or give its full path`, fs.ErrNotExist},
		{"no PATH", Config{Command: "sh"}, "has no PATH", fs.ErrNotExist},
		{"relative PATH", Config{Command: "find_unix_test.go", Env: []string{"PATH=.:"}}, "no such command in PATH", fs.ErrNotExist},
		{"no such file", Config{Command: dir + "/nothing"}, "there is no such file", fs.ErrNotExist},
		{"relative to the directory", Config{Command: "./nothing", Dir: dir}, "there is no such file", fs.ErrNotExist},
		{"no interpreter", Config{Command: lost}, "the interpreter", fs.ErrNotExist},
		{"no interpreter, relative", Config{Command: "./lost", Dir: dir}, "the interpreter", fs.ErrNotExist},
		{"no program", Config{Command: empty}, "no program for this system", nil},
		{"not executable", Config{Command: dir + "/plain"}, "permission denied", fs.ErrPermission},
		{"not executable in PATH", Config{Command: "plain", Env: []string{"PATH=" + dir}}, "permission denied: " + dir + "/plain", fs.ErrPermission},
		{"a directory", Config{Command: dir}, "permission denied", fs.ErrPermission},
		{"no directory", Config{Command: "/bin/sh", Dir: dir + "/nothing"}, `working directory "` + dir + `/nothing" does not exist`, fs.ErrNotExist},
		{"directory is a file", Config{Command: "/bin/sh", Dir: lost}, "is not a directory", nil},
		{"NUL", Config{Command: "/bin/sh", Args: []string{"a\x00"}}, "NUL", nil},
		{"too long", Config{Command: "/bin/sh", Args: []string{strings.Repeat("x", 8<<20)}}, "too long", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Start(t.Context(), test.cfg)
			if err == nil || !strings.Contains(err.Error(), test.want) || !errors.Is(err, test.is) && test.is != nil {
				t.Errorf("Start: %v\nwant %q, %v", err, test.want, test.is)
			}
		})
	}
}

func TestTheCommandIsFoundInItsOwnPATH(t *testing.T) {
	dir := t.TempDir()
	other := t.TempDir()
	if err := os.Mkdir(filepath.Join(other, "only-here"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/echo", filepath.Join(dir, "only-here")); err != nil {
		t.Fatal(err)
	}
	_, out := start(t, Config{Command: "only-here", Args: []string{"found"}, Env: []string{"PATH=/nowhere", "PATH=" + other + ":" + dir}})
	expect(t, out, "found")
}
