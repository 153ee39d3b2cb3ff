package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// peers gives a folder that has the scripts of peers/ and the packages of its lock file. It skips the test where
// there is no Node, but not in CI: a run that tests nothing must not look like one that passed.
func peers(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no Node on this machine, and CI is set: install Node 20 or newer, with npm")
		}
		t.Skip("there is no Node on this machine: install Node 20 or newer, with npm, to test against the official SDKs")
	}
	dir, err := peersOnce()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var peersOnce = sync.OnceValues(func() (string, error) {
	modules, err := installPeers()
	if err != nil {
		return "", err
	}
	// Node looks for packages beside the script, so the scripts are copied next to a link to the cached packages.
	dir := filepath.Join(run.dir, "peers")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	scripts, err := filepath.Glob("peers/*.mjs")
	if err != nil {
		return "", err
	}
	for _, script := range scripts {
		if err := copyFile(dir, script); err != nil {
			return "", err
		}
	}
	return dir, os.Symlink(modules, filepath.Join(dir, "node_modules"))
})

// installPeers gives the node_modules folder for the lock file as it is. It is kept in the user's cache under the lock's
// hash, and appears there in one step, so that test runs side by side cannot see half of it.
func installPeers() (string, error) {
	lock, err := os.ReadFile("peers/package-lock.json")
	if err != nil {
		return "", err
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	base = filepath.Join(base, "mcp-gateway-e2e")
	dir := filepath.Join(base, fmt.Sprintf("%x", sha256.Sum256(lock))[:16])
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(base, "install-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		if err := copyFile(work, filepath.Join("peers", name)); err != nil {
			return "", err
		}
	}
	if err := npmInstall(work); err != nil {
		return "", err
	}
	if err := os.Rename(work, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, found := os.Stat(modules); found != nil {
			return "", err
		}
	}
	return modules, nil
}

// npmInstall tries a few times: registries fail now and then, and npm keeps what it has already fetched.
func npmInstall(dir string) error {
	var failures error
	for range 4 {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		cmd.Dir = dir
		cmd.WaitDelay = 5 * time.Second
		out, err := cmd.CombinedOutput()
		cancel()
		if err == nil {
			return nil
		}
		failures = errors.Join(failures, fmt.Errorf("npm ci: %w\n%s", err, out))
	}
	return failures
}

func copyFile(dir, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o644)
}

// A toolCall is one call that a client makes.
type toolCall struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
	Progress  bool           `json:"progress,omitempty"`
}

// An account is what a client saw: every tool and what each call gave, as its SDK shows them.
type account struct {
	Tools   []map[string]any
	Results []outcome
}

type outcome struct {
	Name     string
	Result   map[string]any
	Error    map[string]any
	Progress int
}

// talk runs one of the clients in peers/ against a URL, or against a command whose environment is env.
func talk(t *testing.T, script string, calls []toolCall, env map[string]string, target ...string) account {
	t.Helper()
	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	environ, err := json.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join(peers(t), script)}, target...)...)
	cmd.Env = append(os.Environ(), runEnv+"="+run.id, "E2E_ENV="+string(environ))
	cmd.Stdin = bytes.NewReader(input)
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, stderr.Bytes())
	}
	var a account
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return a
}
