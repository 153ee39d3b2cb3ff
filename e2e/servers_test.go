package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// installed is the path of a file in the packages of the lock file.
func installed(t *testing.T, path string) string {
	t.Helper()
	return filepath.Join(peers(t), "node_modules", path)
}

// everything is the command of server-everything over stdio.
func everything(t *testing.T) []string {
	t.Helper()
	return []string{"node", installed(t, "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"}
}

// modernServer starts the server on the official SDK 2.x and gives its URL. It ends with the test.
func modernServer(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("http://127.0.0.1:%d/mcp", nodeServer(t, filepath.Join(peers(t), "modern-server.mjs"), "http").port(t))
}

// modernStdio is the command of the same over stdio.
func modernStdio(t *testing.T, args ...string) []string {
	t.Helper()
	return append([]string{"node", filepath.Join(peers(t), "modern-server.mjs"), "stdio"}, args...)
}

// A listener is a server that takes connections.
type listener struct {
	name   string
	stdin  io.Closer
	out    *transcript
	exited chan struct{}
}

// nodeServer starts a script of others with port 0, as its arguments or PORT tell it.
func nodeServer(t *testing.T, script string, args ...string) *listener {
	t.Helper()
	return startListener(t, append([]string{"node", "--import", "file://" + filepath.ToSlash(filepath.Join(peers(t), "announce.mjs")), script}, args...)...)
}

// startListener starts a server that prints {"listening":PORT} and ends when its stdin does, which it does with the test.
func startListener(t *testing.T, command ...string) *listener {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), runEnv+"="+run.id, "PORT=0")
	l := &listener{name: filepath.Base(command[len(command)-1]), out: newTranscript(), exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = l.out, l.out
	cmd.WaitDelay = 5 * time.Second
	var err error
	if l.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(l.exited)
		// It ends by a signal of its own, so that how it ends says nothing.
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		l.stdin.Close()
		select {
		case <-l.exited:
		case <-time.After(patience):
			t.Errorf("%s did not end with its stdin", l.name)
			_ = cmd.Process.Kill()
			<-l.exited
		}
	})
	return l
}

var announced = regexp.MustCompile(`\{"listening":(\d+)\}`)

// port waits until the server listens. Starting several before asking the first lets them come up together.
func (l *listener) port(t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		output, grown := l.out.read()
		if found := announced.FindStringSubmatch(output); found != nil {
			port, err := strconv.Atoi(found[1])
			if err != nil {
				t.Fatal(err)
			}
			return port
		}
		select {
		case <-grown:
		case <-l.exited:
			t.Fatalf("%s ended before it listened:\n%s", l.name, l.out)
		case <-ctx.Done():
			t.Fatalf("%s never said where it listens:\n%s", l.name, l.out)
		}
	}
}
