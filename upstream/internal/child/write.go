package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// ErrStdinFailed is what a Write gets after an earlier one has failed. Nothing of it was sent.
var ErrStdinFailed = errors.New("the server's stdin has failed")

// keptLine is the largest buffer that is kept from one Write to the next.
const keptLine = 64 << 10

// Write sends one frame and its newline, and returns how many bytes of the two reached the pipe:
// 0 means that nothing of the frame has left the gateway. The frame must not hold a line end.
// Writes follow one another whole. One that has begun ends only when it is through or when the
// child is being ended, so there is no context to bound it; Close releases it.
//
// After a failure the pipe may end in half a line. No later Write adds to that (ErrStdinFailed),
// and the owner is to end the child with Close. A Write that Close interrupts, or that comes
// later, gets an error that is os.ErrClosed.
func (c *Child) Write(frame []byte) (n int, err error) {
	if bytes.IndexByte(frame, '\n') >= 0 || bytes.IndexByte(frame, '\r') >= 0 {
		return 0, errors.New("write to the server: a frame with a line end in it would be read as two")
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.broken != nil {
		return 0, fmt.Errorf("write to the server: %w: %w", ErrStdinFailed, c.broken)
	}
	c.line = append(append(c.line[:0], frame...), '\n')
	n, err = c.process.Stdin.Write(c.line)
	if cap(c.line) > keptLine {
		c.line = nil
	}
	switch {
	case errors.Is(err, os.ErrClosed):
		return n, errClosed
	case err != nil:
		c.broken = cause(err)
		return n, fmt.Errorf("write to the server: %w", c.broken)
	}
	return n, nil
}

var errClosed = fmt.Errorf("write to the server: it is being ended: %w", os.ErrClosed)

// cause takes off the name of the pipe, which says nothing to a person.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
