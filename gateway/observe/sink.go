package observe

import (
	"io"
	"sync"
	"sync/atomic"
)

// What a Sink holds while its writer is slow.
const (
	sinkLines = 4096
	sinkBytes = 8 << 20
	sinkPiece = 32 << 10 // of them, from which on they are written without the next
)

// A Sink is an io.Writer in front of a slow one. A line that finds it full is dropped and counted.
type Sink struct {
	lines   chan []byte
	done    chan struct{}
	dropped atomic.Uint64
	held    atomic.Int64 // bytes in lines

	mu     sync.RWMutex // guards closed against a Write beside a Close
	closed bool
}

// NewSink starts the one goroutine that writes to w. It ends with Close.
func NewSink(w io.Writer) *Sink {
	s := &Sink{lines: make(chan []byte, sinkLines), done: make(chan struct{})}
	go s.pass(w)
	return s
}

// pass writes what is taken, the lines that have come meanwhile in one piece, until the end.
func (s *Sink) pass(w io.Writer) {
	defer close(s.done)
	piece := make([]byte, 0, sinkPiece)
	for line := range s.lines {
		piece = append(piece[:0], line...)
		for len(s.lines) > 0 && len(piece) < sinkPiece {
			piece = append(piece, <-s.lines...)
		}
		// There is nowhere left to report a log that cannot be written.
		_, _ = w.Write(piece)
		s.held.Add(-int64(len(piece)))
		if cap(piece) > 2*sinkPiece {
			piece = make([]byte, 0, sinkPiece)
		}
	}
}

// Write takes a copy of line and returns at once. It never fails.
func (s *Sink) Write(line []byte) (int, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	size := int64(len(line))
	if s.closed || s.held.Add(size) > sinkBytes {
		s.drop(size)
		return len(line), nil
	}
	select {
	case s.lines <- append([]byte(nil), line...):
	default:
		s.drop(size)
	}
	return len(line), nil
}

func (s *Sink) drop(size int64) {
	s.dropped.Add(1)
	if !s.closed {
		s.held.Add(-size)
	}
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
		close(s.lines)
	}
	return s.done
}
