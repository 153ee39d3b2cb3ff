package observe

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
	line := []byte(strings.Repeat("kept ", 200) + "\n")
	kept := (sinkBytes - len("first\n")) / len(line)
	for range kept + 3 {
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
	if got := strings.Count(w.String(), "kept \n"); got != kept {
		t.Errorf("%d lines written, want %d", got, kept)
	}
	if _, err := s.Write(line); err != nil || s.Dropped() != 4 {
		t.Errorf("a line after Close: %v, %d dropped", err, s.Dropped())
	}
}

// pieces is a writer that keeps what comes in one piece.
type pieces []string

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, string(b))
	return len(b), nil
}

func TestLinesOfOneMomentAreWrittenInOnePiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w pieces
		s := NewSink(&w)
		for _, line := range []string{"one\n", "two\n", "three\n"} {
			if _, err := s.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(2 * sinkPause)
		synctest.Wait()
		if len(w) != 1 || w[0] != "one\ntwo\nthree\n" {
			t.Errorf("%q", w)
		}
		if _, err := s.Write([]byte("last\n")); err != nil {
			t.Fatal(err)
		}
		<-s.Close() // which waits for no other line
		if len(w) != 2 || w[1] != "last\n" {
			t.Errorf("%q", w)
		}
	})
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
