package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"mcp-gateway/internal/process"
	"mcp-gateway/redact"
)

// maxOutput bounds what a command may print.
const maxOutput = 64 << 10

// A command is a source of tokens: a program that prints one, or `{"access_token": …, "expires_in": seconds}`.
type command struct {
	words []redact.Secret
	left  *process.Process // of the run before, which could not be ended; nil is none
}

// close tries again to end what a run has left.
func (c *command) close() error {
	if c.left == nil {
		return nil
	}
	if err := c.left.Close(); err != nil {
		return fmt.Errorf("running credential.command: a run before has not ended: %w", err)
	}
	c.left = nil
	return nil
}

// fetch runs the program once, in a process group and an environment of its own as a child's, and ends the group whole. What it writes is
// never shown.
func (c *command) fetch(ctx context.Context, _ bool) (fetched, error) {
	if err := c.close(); err != nil { // no run beside another
		return fetched{}, err
	}
	cfg := process.Config{
		Command: c.words[0].Reveal(), Env: process.Environ(false, nil),
		Grace: process.Grace{Stdin: 500 * time.Millisecond, Term: time.Second},
	}
	for _, word := range c.words[1:] {
		cfg.Args = append(cfg.Args, word.Reveal())
	}
	p, err := process.Start(ctx, cfg)
	if err != nil {
		return fetched{}, fmt.Errorf("running credential.command: %w", err)
	}
	out, stderr, err := c.run(ctx, p)
	if err != nil {
		return fetched{}, err
	}
	if state := p.State(); !state.Success() {
		return fetched{}, fmt.Errorf("running credential.command: it failed (%s) with %d bytes of output and %d on stderr, which are not shown: run it by hand",
			state, len(out), stderr)
	}
	return printed(out)
}

// run waits for the leader's end and then ends what it has left behind, and gives what was written to stdout, and how much
// to stderr.
func (c *command) run(ctx context.Context, p *process.Process) (out []byte, stderr int64, err error) {
	_ = p.Stdin.Close() // there is nobody to ask
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reading sync.WaitGroup
	reading.Go(func() {
		defer p.Stdout.Close()
		out, _ = io.ReadAll(io.LimitReader(p.Stdout, maxOutput+1)) // what was read counts, however it ended
		if len(out) > maxOutput {
			cancel()
		}
	})
	reading.Go(func() {
		defer p.Stderr.Close()
		stderr, _ = io.Copy(io.Discard, p.Stderr)
	})
	ran := true
	select {
	case <-p.Exited():
	case <-ctx.Done():
		ran = false
	}
	closed := p.Close()
	reading.Wait()
	switch {
	case closed != nil:
		c.left = p
		return nil, 0, fmt.Errorf("running credential.command: %w", closed)
	case len(out) > maxOutput:
		return nil, 0, errors.New("running credential.command: it printed over 64 KiB, which is no token")
	case !ran:
		return nil, 0, fmt.Errorf("running credential.command: it gave no token within %v", fetchWait)
	}
	return out, stderr, nil
}

// printed reads what a command printed.
func printed(out []byte) (fetched, error) {
	text := strings.TrimSpace(string(out))
	if text == "" {
		return fetched{}, errors.New("running credential.command: it succeeded but printed nothing; it has to print a token, or JSON with access_token")
	}
	if text[0] != '{' {
		return fetched{text: text}, nil
	}
	var object struct {
		AccessToken string      `json:"access_token"`
		ExpiresIn   json.Number `json:"expires_in"`
	}
	if err := json.Unmarshal([]byte(text), &object); err != nil { // it quotes the text
		return fetched{}, fmt.Errorf("running credential.command: the %d bytes that it printed are no JSON object with access_token, a string, and expires_in, a number", len(out))
	}
	if object.AccessToken == "" {
		return fetched{}, errors.New("running credential.command: the JSON that it printed has no access_token")
	}
	got := fetched{text: object.AccessToken}
	if seconds, err := object.ExpiresIn.Float64(); err == nil && seconds > 0 {
		got.lives = time.Duration(min(seconds, math.MaxInt32) * float64(time.Second))
	}
	return got, nil
}
