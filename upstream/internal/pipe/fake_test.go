package pipe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"

	"mcp-gateway/internal/leakcheck"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// A server is the other end of a pipe, in memory.
type server struct {
	t      *testing.T
	heard  chan string // what the pipe wrote
	says   chan any    // a frame, or the error that Read gives
	closed chan struct{}
	once   sync.Once

	mu     sync.Mutex
	write  func(frame []byte) (int, error) // nil: it reads everything
	closes int
	hang   chan struct{} // Close waits for it, if it is not nil
}

func (s *server) Read() ([]byte, error) {
	select {
	case said := <-s.says: // what was written before the end is read
		return parts(said)
	default:
	}
	select {
	case said := <-s.says:
		return parts(said)
	case <-s.closed:
		return nil, io.EOF
	}
}

func parts(said any) ([]byte, error) {
	if err, ok := said.(error); ok {
		return nil, err
	}
	return []byte(said.(string)), nil
}

func (s *server) Write(frame []byte) (int, error) {
	if bytes.ContainsAny(frame, "\r\n") {
		s.t.Errorf("a frame with a line end: %q", frame)
	}
	s.mu.Lock()
	write := s.write
	s.mu.Unlock()
	if write != nil {
		return write(frame)
	}
	select {
	case s.heard <- string(frame):
		return len(frame) + 1, nil
	case <-s.closed:
		return 0, os.ErrClosed
	}
}

func (s *server) Close() error {
	s.mu.Lock()
	s.closes++
	hang := s.hang
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	s.once.Do(func() { close(s.closed) })
	return nil
}

// deaf makes the server stop reading in the middle of the next frame, until it is closed.
func (s *server) deaf() {
	s.onWrite(func([]byte) (int, error) {
		<-s.closed
		return 3, os.ErrClosed
	})
}

func (s *server) onWrite(write func([]byte) (int, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write = write
}

// hear gives what the pipe writes next, and fails where it is not that.
func (s *server) hear(want string) {
	s.t.Helper()
	if got := <-s.heard; got != want {
		s.t.Fatalf("the server heard %s\nwant %s", got, want)
	}
}

func (s *server) silent() {
	s.t.Helper()
	synctest.Wait()
	select {
	case got := <-s.heard:
		s.t.Fatalf("the server heard %s", got)
	default:
	}
}

// inBubble runs a test with a pipe to a server. Nothing of it may be left.
func inBubble(t *testing.T, change func(*Config), test func(t *testing.T, p *Pipe, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t, heard: make(chan string, 1000), says: make(chan any, 1000), closed: make(chan struct{})}
		cfg := Config{Log: slog.New(slog.DiscardHandler)}
		if change != nil {
			change(&cfg)
		}
		p := New(s, cfg)
		test(t, p, s)
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// A result is what a call came to.
type result struct {
	message *wire.Message
	err     error
}

// call begins a call and gives the channel of its result.
func call(ctx context.Context, p *Pipe, method, params string) <-chan result {
	done := make(chan result, 1)
	go func() {
		m, err := p.Call(ctx, method, []byte(params), nil, nil)
		done <- result{m, err}
	}()
	synctest.Wait()
	return done
}

func wantResult(t *testing.T, r result, want string) {
	t.Helper()
	if r.err != nil || string(r.message.Result.Raw()) != want {
		t.Fatalf("result %+v, error %v, want %s", r.message, r.err, want)
	}
}

func wantError(t *testing.T, err error, outcome upstream.Outcome, cause upstream.Cause) {
	t.Helper()
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok || e.Outcome != outcome || e.Cause != cause {
		t.Fatalf("error %v, want %s (%s)", err, outcome, cause)
	}
}
