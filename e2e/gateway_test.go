package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that should come at once; machines under load are slow.
const patience = 60 * time.Second

// A gateway is one running binary.
type gateway struct {
	URL    string // of the MCP endpoint
	file   string // of the configuration; "" without one
	cmd    *exec.Cmd
	out    *transcript
	exited chan struct{}
	code   int // once exited is closed
}

// serve starts a gateway with that configuration, or without one where it is empty, and waits until it has said where it
// serves. The gateway is stopped at the end of the test and must then exit with 0.
func serve(t *testing.T, config string, args ...string) *gateway {
	t.Helper()
	g := start(t, config, args...)
	t.Cleanup(func() { g.stop(t) })
	return g
}

// start is serve for a gateway that the test ends in its own way.
func start(t *testing.T, config string, args ...string) *gateway {
	t.Helper()
	arguments := []string{"serve", "--listen", "127.0.0.1:0", "--log-format", "json"}
	file := ""
	if config != "" {
		file = writeConfig(t, config)
		arguments = append(arguments, "-c", file)
	}
	g := &gateway{
		file:   file,
		cmd:    exec.Command(binary(t), append(arguments, args...)...),
		out:    newTranscript(),
		exited: make(chan struct{}),
	}
	g.cmd.Env = environment(t)
	g.cmd.Dir = t.TempDir()
	g.cmd.Stdout, g.cmd.Stderr = g.out, g.out
	// A process that inherited the output must not keep the test waiting: it is reported as left over instead.
	g.cmd.WaitDelay = 5 * time.Second
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(g.exited)
		if err := g.cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) {
			fmt.Fprintln(g.out, "e2e: a process kept the output open")
		}
		g.code = g.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = g.cmd.Process.Kill()
		<-g.exited
		if t.Failed() {
			t.Logf("the gateway wrote:\n%s", g.out)
		}
	})
	g.URL = g.address(t, config)
	return g
}

// environment is the test's own, with a state folder of the test and the run's mark.
func environment(t *testing.T) []string {
	t.Helper()
	return append(os.Environ(), runEnv+"="+run.id, "XDG_STATE_HOME="+t.TempDir(), "E2E_GATEWAY_ONLY=1")
}

func writeConfig(t *testing.T, config string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	served = regexp.MustCompile(`http://127\.0\.0\.1:[1-9]\d*/mcp\b`)
	dialed = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// address reads the URL that the gateway prints. The URLs of its upstreams, which it may print too, stand in the configuration.
func (g *gateway) address(t *testing.T, config string) string {
	t.Helper()
	upstreams := dialed.FindAllString(config, -1)
	var url string
	g.await(t, "the URL it serves", func(output string) bool {
		for _, candidate := range served.FindAllString(output, -1) {
			own := true
			for _, u := range upstreams {
				own = own && !strings.HasPrefix(candidate, "http://"+u+"/")
			}
			if own {
				url = candidate
				return true
			}
		}
		return false
	})
	return url
}

// await waits until the output so far satisfies found.
func (g *gateway) await(t *testing.T, what string, found func(output string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		output, grown := g.out.read()
		if found(output) {
			return
		}
		select {
		case <-grown:
		case <-g.exited:
			if output, _ := g.out.read(); !found(output) {
				t.Fatalf("the gateway ended with %d before it wrote %s:\n%s", g.code, what, output)
			}
			return
		case <-ctx.Done():
			t.Fatalf("the gateway never wrote %s:\n%s", what, output)
		}
	}
}

// signal sends sig to the gateway alone.
func (g *gateway) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := g.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// write replaces the configuration's file in one step, so that no half of it is ever read.
func (g *gateway) write(t *testing.T, config string) {
	t.Helper()
	next := g.file + ".next"
	if err := os.WriteFile(next, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, g.file); err != nil {
		t.Fatal(err)
	}
}

// reload gives the gateway another configuration, and waits until it has said what came of it: whether it serves that now.
func (g *gateway) reload(t *testing.T, config string) bool {
	t.Helper()
	g.write(t, config)
	before := len(g.out.String())
	g.signal(t, syscall.SIGHUP)
	done := false
	g.await(t, "what came of the reload", func(output string) bool {
		done = strings.Contains(output[before:], `"msg":"reloaded"`)
		return done || strings.Contains(output[before:], `"msg":"not reloaded`)
	})
	return done
}

// wait gives the exit code once the gateway has ended by itself.
func (g *gateway) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-g.exited:
	case <-time.After(patience):
		t.Errorf("the gateway did not end")
		_ = g.cmd.Process.Kill()
		<-g.exited
	}
	return g.code
}

// stop ends the gateway, which may have ended before, and holds it to exit code 0.
func (g *gateway) stop(t *testing.T) {
	t.Helper()
	g.signal(t, syscall.SIGTERM)
	if code := g.wait(t); code != 0 {
		t.Errorf("the gateway ended with %d, not 0", code)
	}
}

// A command that has ended.
type ended struct {
	code   int
	output string
}

// command runs the binary to its end in the module's folder.
func command(t *testing.T, env []string, args ...string) ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), args...)
	cmd.Dir = moduleRoot
	cmd.Env = append(environment(t), env...)
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return ended{cmd.ProcessState.ExitCode(), string(out)}
}

// A transcript keeps what a program writes and says when there is more.
type transcript struct {
	mu    sync.Mutex // guards the fields below
	text  bytes.Buffer
	grown chan struct{}
}

func newTranscript() *transcript { return &transcript{grown: make(chan struct{})} }

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.grown)
	o.grown = make(chan struct{})
	return o.text.Write(p)
}

func (o *transcript) read() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.grown
}

func (o *transcript) String() string {
	text, _ := o.read()
	return text
}
