//go:build unix

package seal

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestStateKeyModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := StateKey(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, stateFile)
	for name, want := range map[string]os.FileMode{dir: 0o700, path: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v (%v), want %v", name, info.Mode().Perm(), err, want)
		}
	}
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o660: false, 0o644: true, 0o602: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		key, err := StateKey(dir)
		if refused != (err != nil) || refused != (key == nil) {
			t.Errorf("mode %04o: %v", mode, err)
		}
		if refused && !strings.Contains(err.Error(), "open to every user") {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}

// Opening a pipe waits for its writer, and nobody would ever come.
func TestStateKeyDoesNotWaitForAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, stateFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := StateKey(dir); key != nil || err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("key %v, error %v", key != nil, err)
	}
}
