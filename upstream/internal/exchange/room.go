package exchange

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// A Room is what one large message is made in. Its memory is used again once nobody reads it any more: the exchange, and whoever sends,
// which may go on after the response.
type Room struct {
	data    []byte
	readers atomic.Int32
}

// NewRoom gives an empty slice for a message of up to size bytes and the Room that it is in, which must be given to Do with the message:
// nil where one is not worth while.
func NewRoom(size int) ([]byte, *Room) {
	data, again := buffer(size)
	if !again {
		return data, nil
	}
	r := &Room{data: data}
	r.readers.Store(1)
	return data, r
}

func (r *Room) release() {
	if r != nil && r.readers.Add(-1) == 0 {
		pool.Put(&r.data)
	}
}

// sending gives message, which is in r if that is one, to be sent once.
func (r *Room) sending(message []byte) io.ReadCloser {
	if r == nil {
		// A plain bytes.Reader is what net/http writes together with the headers, in one piece. It is kept from sending it a
		// second time by the missing GetBody.
		return io.NopCloser(bytes.NewReader(message))
	}
	r.readers.Add(1)
	return &sending{room: r, left: message}
}

// A sending may be closed while it is read.
type sending struct {
	room   *Room
	mu     sync.Mutex // guards the rest
	left   []byte
	closed bool
}

func (s *sending) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, http.ErrBodyReadAfterClose
	case len(s.left) == 0:
		return 0, io.EOF
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// WriteTo writes all in one piece.
func (s *sending) WriteTo(w io.Writer) (int64, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	s.room.readers.Add(1)
	defer s.room.release()
	left := s.left
	s.left = nil
	s.mu.Unlock()
	n, err := w.Write(left)
	return int64(n), err
}

func (s *sending) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.room.release()
	}
	return nil
}
