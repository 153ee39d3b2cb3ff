package child

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestAServerIsLoggedAndItsLastWordsAreRedacted(t *testing.T) {
	const secret = "hunter2\nhunter2" // over two lines
	cfg := play("say", "SAY=Server started\n{}\n")
	var out pad
	log := slog.New(slog.NewTextHandler(writer(out.add), nil)).With("upstream", "u")
	started := 0
	s := &Server{Command: cfg.Command, Args: cfg.Args, Env: cfg.Env, Started: func(pid int) { started = pid }}
	if path, err := s.Find(); err != nil || path != cfg.Command {
		t.Errorf("found %q, %v", path, err)
	}
	c, err := s.Start(t.Context(), log, nil)
	if err != nil {
		t.Fatal(err)
	}
	if started == 0 || started != c.PID() {
		t.Errorf("told of process %d, not of %d", started, c.PID())
	}
	expect(t, c, "{}")
	expectEnd(t, c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.text(), `msg="server wrote what is no message to its stdout" upstream=u line="Server started"`) {
		t.Errorf("log: %s", out.text())
	}

	failed := errors.New("it failed")
	c.notes = newNotes(Config{Redact: func(s string) string { return strings.ReplaceAll(s, secret, "[redacted]") }})
	if got := c.LastWords(failed); got != failed {
		t.Errorf("without words: %v", got)
	}
	c.notes.remember("my key is hunter2")
	c.notes.remember("hunter2, bye")
	if got := c.LastWords(failed); !errors.Is(got, failed) || got.Error() != "it failed; its stderr ends with: my key is [redacted], bye" {
		t.Errorf("last words: %v", got)
	}
	c.notes.remember(strings.Repeat("é", 2000) + "z")
	if got := c.LastWords(failed).Error(); len(got) > quoted+100 || !strings.Contains(got, ": …é") || !strings.HasSuffix(got, "éz") {
		t.Errorf("long last words: %d bytes, %.60q", len(got), got)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &Server{Command: "missing-server", Started: func(pid int) { t.Errorf("told of process %d", pid) }}
	if c, err := s.Start(ctx, slog.New(slog.DiscardHandler), nil); err == nil || c != nil {
		t.Errorf("started %v, %v", c, err)
	}
	if path, err := s.Find(); err == nil || !strings.Contains(err.Error(), "no such command in PATH") {
		t.Errorf("found %q, %v", path, err)
	}
}

type writer func(string)

func (w writer) Write(p []byte) (int, error) { w(string(p)); return len(p), nil }
