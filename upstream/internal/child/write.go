package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// ErrStdinFailed is what a Write gets after an earlier one has failed. Nothing of it was sent.
var ErrStdinFailed = errors.New("the server's stdin has failed")

// patience is how long a server may leave a write that has begun where it is. What is queued behind it waits as long. It is as
// long as a call takes by default: a server that reads nothing while it computes must not lose the call that it runs.
const patience = 5 * time.Minute

// pipeful is what is written at once of a long frame, so that it is seen whether a slow server goes on reading. It is what a pipe
// holds by default (pipe(7)).
const pipeful = 64 << 10

// keptLine is the largest buffer that is kept from one Write to the next.
const keptLine = 64 << 10

// Write sends one frame and its newline, and returns how many bytes of the two reached the pipe:
// 0 means that nothing of the frame has left the gateway. The frame must not hold a line end.
// Writes follow one another whole. One that has begun ends only when it is through or when the
// child is being ended, so there is no context to bound it; Close releases it. A server that
// reads nothing of it for 30 seconds is ended by the stop sequence, since no call could reach it.
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
	n, err = send(c.process.Stdin, c.line, c.stuck, c.patience)
	if cap(c.line) > keptLine {
		c.line = nil
	}
	switch {
	case errors.Is(err, os.ErrClosed) && c.gaveUp.Load():
		c.broken = fmt.Errorf("the server has not read its stdin for %v and is being ended", c.patience)
		return n, fmt.Errorf("write to the server: %w", c.broken)
	case errors.Is(err, os.ErrClosed):
		return n, errClosed
	case err != nil:
		c.broken = cause(err)
		return n, fmt.Errorf("write to the server: %w", c.broken)
	}
	return n, nil
}

// send writes a line, and lets stuck fire where the writing does not go on for as long as wait.
func send(w io.Writer, line []byte, stuck *time.Timer, wait time.Duration) (n int, err error) {
	defer stuck.Stop()
	for n < len(line) && err == nil {
		stuck.Reset(wait)
		var more int
		more, err = w.Write(line[n:min(n+pipeful, len(line))])
		n += more
	}
	return n, err
}

// idle gives a timer that does not run.
func idle() *time.Timer {
	t := time.NewTimer(patience)
	t.Stop()
	return t
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
