package observe

import (
	"bytes"
	"strings"
	"testing"
)

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
