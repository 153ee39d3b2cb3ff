package child

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"syscall"

	"mcp-gateway/internal/process"
)

// A Server is a child as a configuration has it, for the engines of all revisions.
type Server struct {
	Command    string // a path, or a name to look for in the PATH of the environment
	Args       []string
	Env        []string // NAME=value, beside a few variables of the gateway's own
	InheritEnv bool     // beside all of them
	Dir        string   // where it runs; empty is the gateway's own directory

	// Started is told of each process that was started, before it is sent anything. Nil tells nobody.
	Started func(pid int)

	// Set by tests whose child cannot be ended.
	Grace Grace
	Kill  func(group int, signal syscall.Signal) error
}

// Start starts the server, and logs what it writes beside the protocol, redacted by scrub. ctx bounds the start.
func (s *Server) Start(ctx context.Context, log *slog.Logger, scrub func(string) string) (*Child, error) {
	c, err := Start(ctx, Config{
		Command: s.Command, Args: s.Args, Dir: s.Dir,
		Env:    Environ(s.InheritEnv, s.Env),
		Redact: scrub,
		Stderr: func(line string) { log.Info("server's stderr", "line", line) },
		Junk:   func(line string) { log.Warn("server wrote what is no message to its stdout", "line", line) },
		Grace:  s.Grace, Kill: s.Kill,
	})
	if err == nil && s.Started != nil {
		s.Started(c.PID())
	}
	return c, err
}

// Find is the path of the program that Start would start.
func (s *Server) Find() (string, error) {
	return process.Find(process.Config{Command: s.Command, Dir: s.Dir, Env: Environ(s.InheritEnv, s.Env)})
}

// quoted bounds what an error shows of the server's last words.
const quoted = 1 << 10

// LastWords adds to an error the end of the server's stderr, redacted, in one line. After Close nothing is missing of it.
func (c *Child) LastWords(err error) error {
	tail := strings.Join(strings.FieldsFunc(c.Tail(), func(r rune) bool { return r == '\n' || r == '\r' }), " | ")
	if tail == "" {
		return err
	}
	if len(tail) > quoted {
		tail = "…" + strings.ToValidUTF8(tail[len(tail)-quoted:], "")
	}
	return fmt.Errorf("%w; its stderr ends with: %s", err, tail)
}
