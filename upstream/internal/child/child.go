// Package child is one MCP server over stdio: a child process whose lines are frames. Start
// starts it, Read and Write carry the frames, Close ends it with all that it started. What a
// frame means is for the packages above; what is done to the process is in internal/process.
package child

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mcp-gateway/internal/process"
)

// Grace is how long Close waits after each step of the stop sequence: stdin closed, SIGTERM,
// SIGKILL. A step that is not set takes two seconds.
type Grace = process.Grace

// A HeldError says that the child, or one that it started, outlived SIGKILL.
type HeldError = process.HeldError

// Environ returns the environment for a child: the named variables of the gateway's own (PATH,
// HOME, LANG, TMPDIR, TZ, USER; on Windows what a process needs there), or with inherit all of
// it, and the NAME=value pairs of set, which win.
func Environ(inherit bool, set []string) []string { return process.Environ(inherit, set) }

// A Config says what to start and where its words go. Only Command is needed.
type Config struct {
	Command string   // a path, or a name that is looked for in the PATH of Env
	Args    []string // without the command itself
	Env     []string // the complete environment, NAME=value; nothing is added to it
	Dir     string   // where it runs; empty is the gateway's own directory

	MaxLine int // the longest line that Read takes, in bytes; 0 is 32 MiB

	// Redact is applied to each line for Stderr, Junk and Tail before it is cut to its length, so
	// that no cut leaves half a secret. It must not block. Nil changes nothing.
	Redact func(line string) string

	// Stderr takes the lines of stderr, Junk the lines of stdout that cannot be a message; each at
	// most 8 KiB and then the mark of the cut, without the line end, as valid UTF-8. Both are called from one
	// goroutine. Each gets 100 lines at once and then 20 a second, in all 256 KiB at once and then 16 KiB a second; those
	// beyond, and those that come while they are slow, are dropped, and a line of its own tells now and then how many. The
	// child never waits; Close waits for a call that runs. Nil drops the lines.
	Stderr func(line string)
	Junk   func(line string)

	Grace Grace

	// Kill signals the child's process group by its id. Nil is the system's; a test that needs a
	// child that cannot be ended puts its own here.
	Kill func(group int, signal syscall.Signal) error
}

// A Child is a running MCP server. One goroutine calls Read; everything else may be called from
// any. Close is owed, whatever happens to the child.
//
// A child whose leader ends by itself, or that stops reading in the middle of a frame, is ended
// whole at once, by the stop sequence, so that no grandchild keeps its pipes open: Read then gives
// what was still written, and io.EOF. What one that left the group writes afterwards is heard for
// a second at most. Calls
// that wait for an answer are best failed after Close has returned, since it alone tells a lost
// child from a held one.
type Child struct {
	process *process.Process
	maxLine int
	lines   *lineReader // stdout; for Read
	notes   *notes

	writing sync.Mutex // held by the Write that runs; guards broken and line
	broken  error      // why stdin failed
	line    []byte     // the frame and its newline

	patience time.Duration // how long a write may be stuck
	stuck    *time.Timer   // runs while a write waits
	gaveUp   atomic.Bool   // stuck has fired

	stderr chan struct{} // closed when stderr has ended
	leader chan struct{} // closed when the end of the leader, or of its reading, was dealt with
}

// Start starts the child. ctx bounds the start, not the child's life. An error says in words
// what was missing, and nothing is left of a failed start.
func Start(ctx context.Context, cfg Config) (*Child, error) {
	p, err := process.Start(ctx, process.Config{
		Command: cfg.Command, Args: cfg.Args, Env: cfg.Env, Dir: cfg.Dir, Grace: cfg.Grace, Kill: cfg.Kill,
	})
	if err != nil {
		return nil, err
	}
	c := &Child{
		process: p,
		maxLine: cfg.MaxLine,
		lines:   newLineReader(p.Stdout, 64<<10),
		notes:   newNotes(cfg),
		stderr:  make(chan struct{}),
		leader:  make(chan struct{}),

		patience: patience,
		stuck:    idle(),
	}
	if c.maxLine <= 0 {
		c.maxLine = 32 << 20
	}
	go c.notes.deliver()
	go c.readStderr(p.Stderr)
	go c.endWithLeader()
	return c, nil
}

// PID is the process id of the leader. It stays known after the end.
func (c *Child) PID() int { return c.process.PID() }

// Exited is closed once the leader has ended. What it wrote may still be there to be read.
func (c *Child) Exited() <-chan struct{} { return c.process.Exited() }

// Exit says how the leader ended, as in "exit status 1" or "signal: killed". It is empty until
// the end of the whole child is confirmed.
func (c *Child) Exit() string {
	if state := c.process.State(); state != nil {
		return state.String()
	}
	return ""
}

// Tail returns the last lines of stderr, at most 4 KiB, oldest first, redacted. After Close
// nothing is missing at its end.
func (c *Child) Tail() string { return c.notes.tail() }

// Close ends the child and everything in its process group by the stop sequence, and returns
// when it is gone and no goroutine of the child is left. Calls at the same time share one
// attempt; after a success Close does nothing. A child that outlives SIGKILL is reported as a
// *HeldError, Read and Write end all the same, and a later Close tries once more to kill it.
// Close drops what has not been read.
func (c *Child) Close() error {
	err := c.process.Close()
	<-c.stderr
	c.process.Stdout.Close()
	c.notes.close()
	if err == nil {
		<-c.leader
	}
	return err
}

// endWithLeader ends the rest of the group once the leader has ended, or no longer reads. Its error
// is not lost: the owner's Close tries again.
func (c *Child) endWithLeader() {
	defer close(c.leader)
	select {
	case <-c.process.Exited():
	case <-c.stuck.C:
		c.gaveUp.Store(true)
	}
	_ = c.process.Close()
}

func (c *Child) readStderr(stderr *process.Output) {
	defer close(c.stderr)
	defer stderr.Close()
	lines := newLineReader(stderr, 4<<10)
	for {
		line, err := lines.next(noteWindow)
		if line.size > 0 || err == nil {
			c.notes.stderr(line)
		}
		if err != nil {
			return
		}
	}
}
