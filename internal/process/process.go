// Package process starts commands in process groups of their own and ends them whole, with the
// grandchildren that launchers such as npx leave behind. What leaves its group (setsid) is not
// ended, and only reaped once it ends by itself. Start and (*Process).Close are the two
// halves; what differs by operating system is in the group_*.go files, and says there what it
// cannot do.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// A Config says what to start. Only Command is needed.
type Config struct {
	Command string   // a path, or a name that is looked for in the PATH of Env
	Args    []string // without the command itself
	Env     []string // the complete environment, NAME=value; nothing is added to it
	Dir     string   // where it runs; empty is the gateway's own directory

	Grace Grace

	// Kill signals a process group by its id. Nil is the system's; a test that needs a process
	// that cannot be ended puts its own here.
	Kill func(group int, signal syscall.Signal) error
}

// Grace is how long Close waits for the group to be gone after each of its steps.
// A step that is not set takes two seconds.
type Grace struct {
	Stdin time.Duration // after stdin was closed
	Term  time.Duration // after SIGTERM
	Kill  time.Duration // after SIGKILL
}

func (g Grace) orDefault() Grace {
	or := func(d time.Duration) time.Duration {
		if d <= 0 {
			return 2 * time.Second
		}
		return d
	}
	return Grace{or(g.Stdin), or(g.Term), or(g.Kill)}
}

// A Process is one started command, the leader, and the process group that it leads. Close is
// owed, also where the leader has ended by itself: until then it stays a zombie, so that its pid
// goes on naming the group.
type Process struct {
	Stdin  *os.File // closed by Close
	Stdout *Output  // closed by whoever reads it
	Stderr *Output  // likewise

	command string // for errors: its last path element, never its arguments
	grace   Grace
	kill    func(group int, signal syscall.Signal) error
	leader  leader
	exited  chan struct{}

	mu      sync.Mutex // guards closing
	closing *attempt   // the running or last attempt to end the group

	state *os.ProcessState // written before a successful attempt is done
}

// An attempt is one run of the stop sequence, shared by all who call Close meanwhile.
type attempt struct {
	done chan struct{}
	err  error // valid once done is closed
}

// A HeldError says that a process outlived SIGKILL, as one does that hangs in the kernel.
type HeldError struct {
	PID     int    // the leader's, which is also the group's id
	Left    []int  // the processes of the group that are still there
	Command string // its last path element
}

func (e *HeldError) Error() string {
	if len(e.Left) == 1 && e.Left[0] == e.PID {
		return fmt.Sprintf("process %d (%s) could not be ended: it is still there after SIGKILL", e.PID, e.Command)
	}
	return fmt.Sprintf("process group %d (%s) could not be ended: still there after SIGKILL: pids %v", e.PID, e.Command, e.Left)
}

// Start starts a command with a pipe on each of its three standard streams. A ctx that is done
// before the start prevents it; afterwards it has no effect. The error says in words what was
// missing, and wraps the system's (errors.Is fs.ErrNotExist, fs.ErrPermission). A failed start
// leaves no descriptor open.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	path, err := find(cfg)
	if err != nil {
		return nil, err
	}
	var streams pipes
	if err := streams.open(); err != nil {
		return nil, fmt.Errorf("start %q: make its pipes: %w", cfg.Command, err)
	}
	attr := &os.ProcAttr{
		Dir:   cfg.Dir,
		Env:   append([]string{}, cfg.Env...), // nil would hand over the gateway's whole environment
		Files: streams.child[:],
		Sys:   groupAttr(),
	}
	argv := append([]string{cfg.Command}, cfg.Args...)
	started, err := onThread(ctx, func() (*os.Process, error) { return os.StartProcess(path, argv, attr) })
	streams.closeChild()
	if err != nil {
		streams.closeParent()
		return nil, explain(cfg, path, err)
	}
	p := &Process{
		Stdin:   streams.parent[0],
		Stdout:  &Output{file: streams.parent[1]},
		Stderr:  &Output{file: streams.parent[2]},
		command: filepath.Base(cfg.Command),
		grace:   cfg.Grace.orDefault(),
		kill:    cfg.Kill,
		leader:  leader{Process: started},
		exited:  make(chan struct{}),
	}
	if p.kill == nil {
		p.kill = p.leader.signalGroup
	}
	watch(p.PID())
	go p.awaitLeader()
	return p, nil
}

func (p *Process) awaitLeader() {
	defer close(p.exited)
	p.leader.await()
}

// PID is the leader's, and the id of its group. It stays known after the end.
func (p *Process) PID() int { return p.leader.Pid }

// Exited is closed once the leader has ended; others of its group may still run.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// State says how the leader ended. It is nil until Close has returned without an error.
func (p *Process) State() *os.ProcessState {
	p.mu.Lock()
	a := p.closing
	p.mu.Unlock()
	if a == nil {
		return nil
	}
	select {
	case <-a.done:
		return p.state
	default:
		return nil
	}
}

// Close ends the whole group and returns when nothing of it is left: it closes stdin, then sends
// SIGTERM, then SIGKILL, and after each waits its Grace for the group to be gone. Calls at the
// same time share one attempt. After it Stdout and Stderr give what was already written to them
// and then end. What outlives SIGKILL is reported as a *HeldError, and only then does a later
// call try again, with SIGKILL alone.
func (p *Process) Close() error {
	p.mu.Lock()
	last := p.closing
	if last != nil {
		select {
		case <-last.done:
			if last.err == nil {
				p.mu.Unlock()
				return nil
			}
		default:
			p.mu.Unlock()
			<-last.done
			return last.err
		}
	}
	a := &attempt{done: make(chan struct{})}
	p.closing = a
	p.mu.Unlock()

	a.err = p.end(last != nil)
	close(a.done)
	return a.err
}

// end runs the stop sequence, or only the last step of it.
func (p *Process) end(again bool) error {
	if !again {
		p.Stdin.Close()
		defer p.Stdout.drain()
		defer p.Stderr.drain()
		if !p.gone(p.grace.Stdin) {
			p.signal(syscall.SIGTERM)
			p.gone(p.grace.Term)
		}
	}
	// Also where all seem gone: one that was just being forked while /proc was read is not missed
	// by the kernel. The leader is still a zombie, so the id cannot name another group by now.
	killErr := p.signal(syscall.SIGKILL)
	if !p.gone(p.grace.Kill) {
		held := &HeldError{PID: p.PID(), Left: p.left(), Command: p.command}
		if killErr != nil {
			return fmt.Errorf("%w (SIGKILL: %w)", held, killErr)
		}
		return held
	}
	state, err := p.leader.reap()
	if err != nil {
		return fmt.Errorf("wait for process %d (%s): %w", p.PID(), p.command, err)
	}
	unwatch(p.PID())
	p.state = state
	return nil
}

// signal sends to the group. That there is nobody to send it to is no error.
func (p *Process) signal(signal syscall.Signal) error {
	err := p.kill(p.PID(), signal)
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// gone waits at most d for the leader to have ended and the group to be empty but for it.
func (p *Process) gone(d time.Duration) bool {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	select {
	case <-p.exited:
	case <-deadline.C:
		return false
	}
	// Nothing tells of the end of a grandchild, so the group is looked at again and again.
	for pause := time.Millisecond; len(members(p.PID())) > 0; pause = min(2*pause, 100*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-deadline.C:
			return len(members(p.PID())) == 0
		}
	}
	return true
}

// left lists who of the group still runs.
func (p *Process) left() []int {
	var left []int
	select {
	case <-p.exited:
	default:
		left = append(left, p.PID())
	}
	return append(left, members(p.PID())...)
}
