package child

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A LineTooLongError says that a line of stdout was over the limit and was skipped whole.
type LineTooLongError struct {
	Size  int // of the line, in bytes
	Limit int

	// Head and Tail are the first and the last 512 bytes of it: what they hold of a response's id
	// tells whose answer was lost. Servers write it at either end.
	Head, Tail []byte
}

func (e *LineTooLongError) Error() string {
	return fmt.Sprintf("the server sent a line of %d bytes; the limit is %d", e.Size, e.Limit)
}

// Ends returns Head and Tail.
func (e *LineTooLongError) Ends() (head, tail []byte) { return e.Head, e.Tail }

// Read returns the next line of stdout that may be a JSON-RPC message: one that begins with { or
// [ after white space. It comes without the white space around it, is not empty, is the
// caller's to keep, and need be neither JSON nor UTF-8. Empty lines are skipped; others go to
// Junk. A last line needs no newline.
//
// A line over MaxLine is skipped to its end and reported as a *LineTooLongError, after which
// Read goes on. io.EOF is the end: the server has closed its stdout, or the child was ended.
func (c *Child) Read() ([]byte, error) {
	for {
		line, err := c.lines.next(c.maxLine)
		text := bytes.Trim(line.text, " \t\r\n")
		switch {
		case line.size > c.maxLine:
			return nil, &LineTooLongError{Size: line.size, Limit: c.maxLine, Head: line.head(), Tail: line.end}
		case len(text) == 0 && err != nil:
			return nil, err
		case len(text) == 0:
		case text[0] == '{' || text[0] == '[':
			return text, nil
		default:
			line.text = text
			c.notes.junk(line)
		}
	}
}

// ends is how much of either end of a line that is too long is kept.
const ends = 512

// A line is one line of output without its line end.
type line struct {
	text []byte // at most as much as was asked for
	size int    // of the whole line
	end  []byte // where it is longer than text, its last bytes
}

func (l line) head() []byte { return bytes.Clone(l.text[:min(len(l.text), ends)]) }

// A lineReader cuts a stream into lines, however it is dripped. It holds no more of a line than
// it is asked for, and so bounds what a line without an end can take.
type lineReader struct{ r *bufio.Reader }

func newLineReader(r io.Reader, size int) *lineReader {
	return &lineReader{bufio.NewReaderSize(r, size)}
}

// next returns the next line, with at most limit bytes of its text. An error other than io.EOF
// does not occur: a stream that fails has ended. The last line can come together with it.
func (l *lineReader) next(limit int) (line, error) {
	var got line
	for {
		piece, err := l.r.ReadSlice('\n')
		whole := err == nil
		if whole {
			piece = piece[:len(piece)-1]
		}
		got.add(piece, limit)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			err = io.EOF
		}
		got.trimReturn(limit)
		return got, err
	}
}

// add appends what fits into text, and keeps the last bytes where not all of it fits.
func (l *line) add(piece []byte, limit int) {
	fits := min(len(piece), limit-len(l.text))
	l.text = append(l.text, piece[:fits]...)
	l.size += len(piece)
	if l.size > limit {
		if l.end == nil {
			l.end = bytes.Clone(l.text[max(0, len(l.text)-ends):])
		}
		l.end = append(l.end, piece[fits:]...)
		l.end = append(l.end[:0], l.end[max(0, len(l.end)-ends):]...)
	}
}

// trimReturn takes off the CR of a CRLF.
func (l *line) trimReturn(limit int) {
	last := l.text
	if l.size > limit {
		last = l.end
	}
	if len(last) == 0 || last[len(last)-1] != '\r' {
		return
	}
	l.size--
	switch {
	case l.size < limit:
		l.text = l.text[:len(l.text)-1]
	case l.size == limit:
		l.end = nil
	default:
		l.end = l.end[:len(l.end)-1]
	}
}
