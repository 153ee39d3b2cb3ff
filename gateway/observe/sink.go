package observe

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// sinkBytes is what a Sink holds while its writer is slow.
	sinkBytes = 8 << 20
	// sinkRoom is what its buffers keep for the next lines.
	sinkRoom = 64 << 10
	// sinkPause is how long a line waits for others to be written with: one write each would cost more than to make them.
	sinkPause = 5 * time.Millisecond
)

// A Sink is an io.Writer in front of a slow one. A line that finds it full is dropped and counted.
type Sink struct {
	some    chan struct{} // has a token where lines wait
	closing chan struct{} // is closed by Close
	done    chan struct{}
	dropped atomic.Uint64

	mu     sync.Mutex // guards the rest
	lines  []byte     // that wait
	held   int        // bytes of these, and of those that are being written
	closed bool
}

// NewSink starts the one goroutine that writes to w. It ends with Close.
func NewSink(w io.Writer) *Sink {
	s := &Sink{some: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{})}
	go s.pass(w)
	return s
}

// pass writes lines, those that have come meanwhile in one piece, until the end.
func (s *Sink) pass(w io.Writer) {
	defer close(s.done)
	var piece []byte
	for range s.some {
		s.pause()
		if piece = s.take(piece); len(piece) > 0 {
			// There is nowhere left to report a log that cannot be written.
			_, _ = w.Write(piece)
			s.written(len(piece))
		}
	}
}

func (s *Sink) pause() {
	timer := time.NewTimer(sinkPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closing:
	}
}

// take gives all lines that wait, and has the next ones use the room of piece.
func (s *Sink) take(piece []byte) []byte {
	if cap(piece) > sinkRoom {
		piece = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = piece[:0]
	return lines
}

func (s *Sink) written(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= n
}

// Write takes a copy of line and returns at once. It never fails.
func (s *Sink) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.held+len(line) > sinkBytes {
		s.dropped.Add(1)
		return len(line), nil
	}
	s.lines = append(s.lines, line...)
	s.held += len(line)
	select {
	case s.some <- struct{}{}:
	default:
	}
	return len(line), nil
}

// Dropped is how many lines were not written.
func (s *Sink) Dropped() uint64 { return s.dropped.Load() }

// Close takes no more lines and returns a channel that is closed when those taken are written, which a
// stuck writer can keep from happening.
func (s *Sink) Close() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.closing)
		close(s.some)
	}
	return s.done
}
