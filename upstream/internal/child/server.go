package child

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
)

// A Server is a child as a configuration has it, for the engines of all revisions.
type Server struct {
	Command    string // a path, or a name to look for in the PATH of the environment
	Args       []string
	Env        []string // NAME=value, beside a few variables of the gateway's own
	InheritEnv bool     // beside all of them
	Dir        string   // where it runs; empty is the gateway's own directory

	// Set by tests whose child cannot be ended.
	Grace Grace
	Kill  func(group int, signal syscall.Signal) error
}

// Start starts the server, and logs what it writes beside the protocol, redacted by scrub. ctx bounds the start.
func (s *Server) Start(ctx context.Context, log *slog.Logger, scrub func(string) string) (*Child, error) {
	return Start(ctx, Config{
		Command: s.Command, Args: s.Args, Dir: s.Dir,
		Env:    Environ(s.InheritEnv, s.Env),
		Redact: scrub,
		Stderr: func(line string) { log.Info("server's stderr", "line", line) },
		Junk:   func(line string) { log.Warn("server wrote what is no message to its stdout", "line", line) },
		Grace:  s.Grace, Kill: s.Kill,
	})
}

// quoted bounds what an error shows of the server's last words.
const quoted = 1 << 10

// LastWords adds to an error the end of the server's stderr, redacted, in one line. After Close nothing is missing of it.
func (c *Child) LastWords(err error) error {
	tail := c.notes.redact(c.Tail()) // once more as a whole: a secret may have line ends
	tail = strings.Join(strings.FieldsFunc(tail, func(r rune) bool { return r == '\n' || r == '\r' }), " | ")
	if tail == "" {
		return err
	}
	if len(tail) > quoted {
		tail = "…" + strings.ToValidUTF8(tail[len(tail)-quoted:], "")
	}
	return fmt.Errorf("%w; its stderr ends with: %s", err, tail)
}
