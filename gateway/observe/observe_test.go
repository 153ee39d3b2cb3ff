package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mcp-gateway/internal/leakcheck"
	"mcp-gateway/redact"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// stuck is a writer that takes nothing until it is released.
type stuck struct {
	began, release chan struct{}
	bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	select {
	case s.began <- struct{}{}:
	default:
	}
	<-s.release
	return s.Buffer.Write(p)
}

func TestStuckWriterKeepsNobodyWaiting(t *testing.T) {
	w := &stuck{began: make(chan struct{}, 1), release: make(chan struct{})}
	s := NewSink(w)
	if _, err := s.Write([]byte("first\n")); err != nil {
		t.Fatal(err)
	}
	<-w.began
	line := []byte("kept\n")
	for range sinkLines + 3 {
		if n, err := s.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := s.Dropped(); got != 3 {
		t.Errorf("%d lines dropped, want 3", got)
	}
	copy(line, "XXXX") // the sink has its own copy
	close(w.release)
	<-s.Close()
	<-s.Close()
	if got := strings.Count(w.String(), "kept\n"); got != sinkLines {
		t.Errorf("%d lines written, want %d", got, sinkLines)
	}
	if _, err := s.Write(line); err != nil || s.Dropped() != 4 {
		t.Errorf("a line after Close: %v, %d dropped", err, s.Dropped())
	}
}

func TestRecord(t *testing.T) {
	var out bytes.Buffer
	o := New(NewLogger(&out, true, slog.LevelInfo, redact.NewScrubber(redact.NewSecret("s3cr3t-t0ken"))))
	o.Record(Record{Method: "tools/call", Name: "a__t", Outcome: "ok"})
	if out.Len() != 0 {
		t.Errorf("a success is logged at info: %s", out.String())
	}
	o.Record(Record{
		Request: "r-1", Caller: "alice", Method: "tools/call", Name: "a__t", Upstream: "a", Target: "t", Outcome: "not-sent", Cause: "unreachable",
		Code: -32603, HTTPStatus: 502, Duration: time.Second, Err: errors.New("dial with s3cr3t-t0ken\nforged=line"),
	})
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("%q: %v", out.String(), err)
	}
	for key, want := range map[string]any{
		"level": "WARN", "request": "r-1", "caller": "alice", "method": "tools/call", "name": "a__t", "upstream": "a", "target": "t",
		"outcome": "not-sent", "cause": "unreachable", "code": -32603.0, "httpStatus": 502.0,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if strings.Contains(out.String(), "s3cr3t") {
		t.Errorf("a secret in %s", out.String())
	}
}

func TestStuckWriterHoldsBoundedMemory(t *testing.T) {
	w := &stuck{began: make(chan struct{}, 1), release: make(chan struct{})}
	s := NewSink(w)
	line := make([]byte, sinkBytes/4)
	for range 8 {
		if _, err := s.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Dropped(); got != 4 {
		t.Errorf("%d of eight lines dropped, want 4", got)
	}
	close(w.release)
	<-s.Close()
}
