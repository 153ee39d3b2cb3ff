package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"mcp-gateway/internal/leakcheck"
	"mcp-gateway/internal/process"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// A session is a server that does nothing but live and die.
type session struct {
	done chan struct{}
	err  error

	mu     sync.Mutex
	closes int
	refuse []error       // the first results of Close
	slow   time.Duration // of Close
}

func newSession() *session { return &session{done: make(chan struct{})} }

func (s *session) Done() <-chan struct{} { return s.done }
func (s *session) Err() error            { return s.err }

func (s *session) Close() error {
	<-time.After(s.slow) // in a synctest bubble
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closes++
	if len(s.refuse) > 0 {
		err := s.refuse[0]
		s.refuse = s.refuse[1:]
		return err
	}
	return nil
}

func (s *session) closed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closes
}

func (s *session) die(why string) {
	s.err = errors.New(why)
	close(s.done)
}

// A dialer plays one step of its script at each attempt, the last one for ever.
type dialer struct {
	mu     sync.Mutex
	script []func(ctx context.Context) (*session, error)
	at     []time.Time // of the attempts
	now    int         // attempts that run
	most   int
}

func (d *dialer) dial(ctx context.Context) (*session, Info, error) {
	d.mu.Lock()
	step := d.script[min(len(d.at), len(d.script)-1)]
	d.at = append(d.at, time.Now())
	d.now++
	d.most = max(d.most, d.now)
	d.mu.Unlock()
	s, err := step(ctx)
	d.mu.Lock()
	d.now--
	d.mu.Unlock()
	discover, _ := wire.ParseObject([]byte(`{"capabilities":{}}`))
	return s, Info{Revision: "2025-11-25", Discover: discover}, err
}

func (d *dialer) attempts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.at)
}

func works(s *session) func(context.Context) (*session, error) {
	return func(context.Context) (*session, error) { return s, nil }
}

func fails(err error) func(context.Context) (*session, error) {
	return func(context.Context) (*session, error) { return nil, err }
}

func hangs(ctx context.Context) (*session, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func dies(after time.Duration) func(context.Context) (*session, error) {
	return func(context.Context) (*session, error) {
		s := newSession()
		time.AfterFunc(after, func() { s.die("crashed") })
		return s, nil
	}
}

var errHeld = fmt.Errorf("end the server: %w", &process.HeldError{PID: 7, Command: "server"})

type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.buf.Bytes(), []byte(what))
}

// start gives a link with pauses as long as their ceiling: 1 s, 2 s, 4 s … 30 s.
func start(t *testing.T, d *dialer, change func(*Config[*session])) (*Link[*session], *logged) {
	t.Helper()
	out := new(logged)
	cfg := Config[*session]{
		ID: "u", Dial: d.dial, StartTimeout: 2 * time.Minute, Min: 500 * time.Millisecond, Max: 30 * time.Second,
		Log: slog.New(slog.NewTextHandler(out, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	l := New(cfg)
	l.pause.Rand = func(n int64) int64 { return n - 1 }
	l.Start()
	return l, out
}

func wantState(t *testing.T, l *Link[*session], want upstream.State) upstream.Status {
	t.Helper()
	status, _ := l.Status()
	if status.State != want {
		t.Fatalf("state %q (%v), want %q", status.State, status.Err, want)
	}
	return status
}

func wantCause(t *testing.T, err error, want upstream.Cause) {
	t.Helper()
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok || e.Outcome != upstream.NotSent || e.Cause != want {
		t.Fatalf("error %v, want not-sent (%s)", err, want)
	}
}

func closeLink(t *testing.T, l *Link[*session]) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	wantState(t, l, upstream.Closed)
}
