//go:build unix

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcp-gateway/internal/leakcheck"
)

// A test that needs a command starts the test binary again; PLAY names which part it plays.
func TestMain(m *testing.M) {
	if part := os.Getenv("PLAY"); part != "" {
		if os.Getenv("GATE") != "" {
			io.ReadAll(os.NewFile(3, "gate")) // until the launcher has said who this is
		}
		parts[part]()
		os.Exit(0)
	}
	leakcheck.Main(m)
}

var parts = map[string]func(){
	// echo answers each line with the same, and ends with its stdin.
	"echo": func() { io.Copy(os.Stdout, os.Stdin) },

	// environ prints its environment and directory.
	"environ": func() {
		dir, _ := os.Getwd()
		fmt.Println(strings.Join(os.Environ(), "\n"))
		fmt.Println("cwd " + dir)
	},

	// stubborn says ready, ignores SIGTERM and the end of its stdin.
	"stubborn": func() {
		stay("ready")
	},

	// polite ends on SIGTERM only, and says so.
	"polite": func() {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("ready")
		<-asked
		fmt.Println("asked to end")
	},

	// launcher starts the part that NEXT names, prints its pid and waits for it; with LEAVE set it
	// ends at once and leaves it alone.
	"launcher": func() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PLAY="+os.Getenv("NEXT"), "GATE=3")
		wait, open, err := os.Pipe()
		if err != nil {
			panic(err)
		}
		cmd.ExtraFiles = []*os.File{wait}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if os.Getenv("APART") != "" {
			cmd.SysProcAttr = apart()
		}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		fmt.Println("pid", cmd.Process.Pid)
		open.Close()
		if os.Getenv("LEAVE") == "" {
			cmd.Wait()
		}
	},

	// gateway starts the part that CHILD names as the gateway does, prints its pid and what it said, and stays.
	"gateway": func() {
		p, err := Start(context.Background(), play(os.Getenv("CHILD"), "NEXT="+os.Getenv("NEXT"), "FILE="+os.Getenv("FILE")))
		if err != nil {
			panic(err)
		}
		said, _ := bufio.NewReader(p.Stdout).ReadString('\n')
		stay(fmt.Sprintf("pid %d\n%s", p.PID(), said))
	},

	// keeper leaves the group but not its child, which ends and is never waited for; it prints the child's pid.
	"keeper": func() {
		child := exec.Command("/bin/true")
		if err := child.Start(); err != nil {
			panic(err)
		}
		if _, err := syscall.Setsid(); err != nil {
			panic(err)
		}
		stay(fmt.Sprint("pid ", child.Process.Pid))
	},

	// witness writes the file FILE once its stdin has ended.
	"witness": func() {
		io.Copy(io.Discard, os.Stdin)
		if err := os.WriteFile(os.Getenv("FILE"), []byte("stdin ended"), 0o600); err != nil {
			panic(err)
		}
	},

	// chatter writes as long as somebody reads.
	"chatter": func() {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGTERM)
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	},

	// trickler writes a little again and again, as long as somebody reads.
	"trickler": func() {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGTERM)
		for range time.Tick(10 * time.Millisecond) {
			if _, err := os.Stdout.WriteString("."); err != nil {
				return
			}
		}
	},

	"brief": func() {},
}

// stay ignores SIGTERM and goes on until it is killed.
func stay(ready string) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	fmt.Println(ready)
	select {}
}

// play says how to start a part. Under the race detector a program otherwise takes a second to end.
func play(part string, env ...string) Config {
	return Config{
		Command: os.Args[0],
		Env:     append([]string{"PLAY=" + part, "GORACE=atexit_sleep_ms=0"}, env...),
		Grace:   Grace{Stdin: 50 * time.Millisecond, Term: 50 * time.Millisecond, Kill: 5 * time.Second},
	}
}

// start starts a command whose outputs are closed, and whose end is checked, with the test.
func start(t *testing.T, cfg Config) (*Process, *bufio.Reader) {
	t.Helper()
	p, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		p.Stdout.Close()
		p.Stderr.Close()
	})
	return p, bufio.NewReader(p.Stdout)
}

// expect reads one line.
func expect(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil || strings.TrimSuffix(line, "\n") != want {
		t.Fatalf("read %q, %v; want %q", line, err, want)
	}
}

// expectPID reads a line that gives a pid.
func expectPID(t *testing.T, r *bufio.Reader) (pid int) {
	t.Helper()
	line, err := r.ReadString('\n')
	if _, scanErr := fmt.Sscanf(line, "pid %d", &pid); scanErr != nil {
		t.Fatalf("read %q, %v; want a pid", line, err)
	}
	return pid
}

// apart has a command leave the process group, and its session too.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func expectGone(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there (signal 0: %v)", pid, err)
	}
}
