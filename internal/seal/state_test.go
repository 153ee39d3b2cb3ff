package seal

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestStateKeyIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "mcp-gateway")
	first, err := StateKey(dir)
	if err != nil || len(first) != KeySize {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	second, err := StateKey(dir)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the next start got another key (%v)", err)
	}
	other, err := StateKey(t.TempDir())
	if err != nil || bytes.Equal(first, other) {
		t.Errorf("another directory has the same key (%v)", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		t.Fatal(err)
	}
	if want := base64.StdEncoding.EncodeToString(first) + "\n"; string(text) != want {
		t.Error("the file is not an entry of seal.keys")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v (%v), want the key alone", entries, err)
	}
}

// Replicas on one machine start together: all must open what any of them sealed.
func TestStateKeyOfProcessesThatStartTogether(t *testing.T) {
	for range 20 {
		dir := filepath.Join(t.TempDir(), "state")
		keys := make([][]byte, 8)
		start := make(chan struct{})
		var running sync.WaitGroup
		for i := range keys {
			running.Go(func() {
				<-start
				key, err := StateKey(dir)
				if err != nil {
					t.Error(err)
				}
				keys[i] = key
			})
		}
		close(start)
		running.Wait()
		for _, key := range keys {
			if !bytes.Equal(key, keys[0]) {
				t.Fatal("two starts at once got two keys")
			}
		}
	}
}

// The one that comes second finds a key between its look and its own attempt.
func TestKeepKeyNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	want, err := StateKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	made, err := keepKey(dir, filepath.Join(dir, stateFile), NewKey())
	if made || err != nil {
		t.Errorf("made %v, %v; want false and no error", made, err)
	}
	if got, err := StateKey(dir); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the key was replaced (%v)", err)
	}
}

func TestStateKeyRefuses(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(NewKey())
	file := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"empty", file(""), "does not hold 32 bytes in Base64; delete it"},
		{"short", file(base64.StdEncoding.EncodeToString(make([]byte, 16))), "does not hold 32 bytes"},
		{"cut", file(good[:20]), "does not hold 32 bytes"},
		{"not Base64", file(strings.Repeat("!", 44)), "does not hold 32 bytes"},
		{"large", file(good + strings.Repeat("\n", 2000)), "does not hold 32 bytes"},
		{"more after it", file(good + "\n" + good), "does not hold 32 bytes"},
		{"a directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "is not a regular file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, stateFile)
			tt.make(t, path)
			before, _ := os.ReadFile(path)
			key, err := StateKey(dir)
			if key != nil || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Fatalf("key %v, error %v; want no key, and %q about %s", key != nil, err, tt.want, path)
			}
			if len(before) > 4 && strings.Contains(err.Error(), string(before[:5])) {
				t.Errorf("the error quotes the file: %v", err)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestStateKeyWhereNothingCanBeKept(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // what lies in the working directory is not the gateway's
	here, err := StateKey(".")
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": "there is none", filepath.Join(blocked, "state"): "not a directory"} {
		key, err := StateKey(dir)
		if len(key) != KeySize || bytes.Equal(key, here) {
			t.Errorf("%q: a key of %d bytes, not a new one", dir, len(key))
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "end with this process") {
			t.Errorf("%q: error %v; want a warning that says %q", dir, err, want)
		}
	}
}
