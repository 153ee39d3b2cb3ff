package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// moduleRoot is the module's folder: tests run in their package's folder.
const moduleRoot = ".."

// binary builds the program once and gives its path.
func binary(t *testing.T) string {
	t.Helper()
	watchSources(t)
	path, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildOnce = sync.OnceValues(func() (string, error) {
	path := filepath.Join(run.dir, "mcp-gateway")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/mcp-gateway")...)
	cmd.Dir = moduleRoot
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", &buildError{string(out), err}
	}
	return path, nil
})

type buildError struct {
	output string
	err    error
}

func (e *buildError) Error() string {
	return "building ./cmd/mcp-gateway: " + e.err.Error() + "\n" + e.output
}
func (e *buildError) Unwrap() error { return e.err }

// watchSources looks at every file that the binary is made of. Go caches a passed test by the files that it looked
// at while it ran, and this package imports none of them: without this a pass would outlive what it tested. It must be
// called by a test, since go test does not record what TestMain looks at before it runs the tests.
func watchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(moduleRoot, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			switch name := entry.Name(); {
			case name == "node_modules", name != moduleRoot && name[0] == '.':
				return fs.SkipDir
			}
			return nil
		}
		_, err = os.Stat(path)
		return err
	})
	if err != nil {
		t.Fatal("looking at the module's sources:", err)
	}
}
