package process

import (
	"errors"
	"io"
	"os"
	"time"
)

// pipes are the three standard streams of a command, both ends of each.
type pipes struct {
	child  [3]*os.File // stdin, stdout, stderr as the command has them
	parent [3]*os.File // the other ends
}

func (s *pipes) open() error {
	for i := range s.child {
		r, w, err := os.Pipe()
		if err != nil {
			s.closeChild()
			s.closeParent()
			return err
		}
		if i == 0 {
			s.child[i], s.parent[i] = r, w
		} else {
			s.child[i], s.parent[i] = w, r
		}
	}
	return nil
}

func (s *pipes) closeChild()  { closeAll(s.child[:]) }
func (s *pipes) closeParent() { closeAll(s.parent[:]) }

// closeAll skips the nil ones: (*os.File).Close refuses them without harm.
func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

const (
	// restWait is how long in all is waited for more once the group has ended. All of the group wrote
	// before that, so only one that left the group and kept the pipe can still be heard.
	restWait = time.Second

	// restMost is how much is still read then. No pipe holds more without privileges (pipe(7)).
	restMost = 1 << 20
)

// An Output is the reading end of stdout or stderr. It ends (io.EOF) when nobody has the other
// end open, and soon after the process group was ended even where one that left the group still
// has it and goes on writing. One goroutine reads; Close may be called beside it.
type Output struct {
	file *os.File
	rest int  // how much may still be read
	last bool // the group has ended
}

// Read gives io.EOF also after Close.
func (o *Output) Read(p []byte) (int, error) {
	if !o.last {
		n, err := o.file.Read(p)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, end(err)
		}
		// One deadline for all that follows: who writes now and then must not move it.
		o.last = true
		if o.file.SetReadDeadline(time.Now().Add(restWait)) == nil {
			o.rest = restMost
		}
	}
	if o.rest == 0 {
		return 0, io.EOF
	}
	n, err := o.file.Read(p[:min(len(p), o.rest)])
	o.rest -= n
	if err != nil {
		o.rest = 0
	}
	return n, end(err)
}

func end(err error) error {
	if errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return io.EOF
	}
	return err
}

// Close lets the other end fail its writes, and a Read that waits return.
func (o *Output) Close() error { return o.file.Close() }

// drain interrupts the Read that waits, which then takes only what is there. Where pipes have no
// deadlines (Windows) it does nothing, and reading goes on to the true end.
func (o *Output) drain() { _ = o.file.SetReadDeadline(time.Unix(1, 0)) }
