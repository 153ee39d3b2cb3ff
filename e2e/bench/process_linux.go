package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startBound = time.Minute      // from the start of a process until it serves
	stopBound  = 20 * time.Second // from SIGTERM until it is killed
	tailBytes  = 4 << 10          // of what a process wrote to standard error
)

// A process is one that the benchmark started. It ends with the benchmark, whatever becomes of that.
type process struct {
	name    string
	address string // host:port
	admin   string // host:port of a gateway's admin listener
	family  bool   // its children do its work, and what they use counts

	cmd    *exec.Cmd
	errors fmt.Stringer // the last of its standard error
	exited chan struct{}
	exit   error // once exited is closed
}

// role is this program again, as one of the processes that are measured.
func role(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(self(), args...)
	cmd.Env = append(os.Environ(), roleEnv+"="+name)
	return cmd
}

// self is the path of this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// start starts cmd and waits until it has written "ready ADDRESS" on a line of its standard output.
func start(ctx context.Context, name string, cmd *exec.Cmd) (*process, error) {
	return launch(ctx, name, cmd, regexp.MustCompile(`^ready (\S+)$`))
}

// launch starts cmd and waits for a line of its standard output that says where it serves. Where cmd has a file for its
// standard error it writes to that itself: no pipe to the benchmark stands in its way.
func launch(ctx context.Context, name string, cmd *exec.Cmd, serves *regexp.Regexp) (*process, error) {
	p := &process{name: name, cmd: cmd, exited: make(chan struct{})}
	out := &lines{serves: serves, found: make(chan string, 1)}
	cmd.Stdout = out
	if file, ok := cmd.Stderr.(*os.File); ok {
		p.errors = fileTail(file.Name())
	} else {
		kept := &tail{}
		p.errors, cmd.Stderr = kept, kept
	}
	// A group of its own: the terminal's Ctrl-C is for the benchmark, which then ends its processes in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		defer close(p.exited)
		p.exit = cmd.Wait()
	}()
	bound := time.NewTimer(startBound)
	defer bound.Stop()
	var err error
	select {
	case p.address = <-out.found:
		return p, nil
	case <-p.exited:
		return nil, p.problem("ended before it served", p.exit)
	case <-bound.C:
		err = p.problem(fmt.Sprintf("does not serve after %v", startBound), nil)
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, p.stop())
}

// problem is an error about the process, with the last that it wrote to standard error.
func (p *process) problem(what string, cause error) error {
	text := p.name + " " + what
	if cause != nil {
		text += ": " + cause.Error()
	}
	if last := p.errors.String(); last != "" {
		text += "; the last that it wrote:\n" + last
	}
	return errors.New(text)
}

// alive is nil while the process runs, and says how it ended after that.
func (p *process) alive() error {
	select {
	case <-p.exited:
		return p.problem("has ended by itself", p.exit)
	default:
		return nil
	}
}

// signal sends sig to the process alone.
func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("sending %v to %s: %w", sig, p.name, err)
	}
	return nil
}

// stop ends the process by SIGTERM, and by SIGKILL after a bound, and returns when it has ended. Its error says how it ended
// where that was neither in order nor by the signal.
func (p *process) stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	bound := time.NewTimer(stopBound)
	defer bound.Stop()
	select {
	case <-p.exited:
	case <-bound.C:
		_ = p.cmd.Process.Kill()
		<-p.exited
		return p.problem(fmt.Sprintf("did not end within %v of SIGTERM and was killed", stopBound), nil)
	}
	if p.exit == nil {
		return nil
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGTERM {
		return nil
	}
	return p.problem("ended badly", p.exit)
}

// buildGateway builds the gateway into dir as the image does, and gives the path of the binary.
func buildGateway(ctx context.Context, dir string) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "mcp-gateway")
	cmd := exec.CommandContext(ctx, "go", "build", "-race=false", "-trimpath", "-buildvcs=false", "-o", path, "./cmd/mcp-gateway")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the gateway: %w\n%s", err, out)
	}
	return path, nil
}

// moduleRoot is the folder of the module that the working directory is in.
func moduleRoot(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOMOD")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking go for the module: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if filepath.Base(file) != "go.mod" {
		return "", errors.New("the working directory is in no module: run it from the gateway's checkout")
	}
	return filepath.Dir(file), nil
}

var gatewayServes = regexp.MustCompile(`serves MCP at http://([^/\s]+)/`)

// startGateway writes a configuration into dir and starts the gateway with it, its access log in dir/log, and waits until
// it serves. The configuration has no address: those of both listeners, the folder for state and pprof are set here.
func startGateway(ctx context.Context, binary, dir, config string) (*process, error) {
	admin, err := freeAddress()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	// The process has its own copy of the descriptor.
	defer log.Close()
	path := filepath.Join(dir, configFile)
	if err := os.WriteFile(path, []byte(gatewayHead(admin)+config), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--log-format", "json", "-c", path)
	cmd.Dir, cmd.Stderr = dir, log
	p, err := launch(ctx, "mcp-gateway", cmd, gatewayServes)
	if err != nil {
		return nil, err
	}
	p.admin = admin
	return p, nil
}

// configFile is the name of a gateway's configuration.
const configFile = "gateway.yaml"

// gatewayHead is what each configuration begins with.
func gatewayHead(admin string) string {
	return fmt.Sprintf("admin: %s\npprof: true\nstate_dir: state\n", admin)
}

// freeAddress is one on loopback that nobody listens on at the moment.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// lines looks for the one line of a process that says where it serves, and drops what comes after it.
type lines struct {
	serves *regexp.Regexp
	found  chan string
	rest   []byte
	done   bool
}

func (l *lines) Write(p []byte) (int, error) {
	written := len(p)
	if l.done {
		return written, nil
	}
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			break
		}
		l.rest = rest
		if match := l.serves.FindSubmatch(line); match != nil {
			l.found <- string(match[1])
			l.done, l.rest = true, nil
			break
		}
	}
	if len(l.rest) > tailBytes {
		l.rest = nil
	}
	return written, nil
}

// A tail keeps the last that was written to it.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if excess := len(t.text) - tailBytes; excess > 0 {
		t.text = append(t.text[:0], t.text[excess:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// A fileTail is the path of a file that a process writes to.
type fileTail string

func (f fileTail) String() string {
	text, err := os.ReadFile(string(f))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text[max(0, len(text)-tailBytes):]))
}
