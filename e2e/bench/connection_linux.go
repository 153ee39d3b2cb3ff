package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// callBound is how long one call may take before the run fails.
const callBound = 30 * time.Second

// A connection sends one request at a time and reads its answer, with little work of its own: what it costs is not taken
// from what is measured, but it runs on the same cores.
type connection struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte // with the last id
	ids     []int  // where the id stands in it
	closing bool   // the server will close it
}

func dial(address string, request template) (*connection, error) {
	conn, err := net.DialTimeout("tcp", address, callBound)
	if err != nil {
		return nil, err
	}
	c := &connection{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	c.request, c.ids = request.with(firstID)
	return c, nil
}

// An answerHead is what is read of an answer's head.
type answerHead struct {
	status  int
	length  int // of the body; -1 where it is chunked
	kind    []byte
	closing bool
}

// call sends the request with that id and passes the body of its answer to take as it arrives.
func (c *connection) call(i id, take func(part []byte) error) error {
	var digits [idDigits]byte
	strconv.AppendInt(digits[:0], int64(i), 10)
	for _, at := range c.ids {
		copy(c.request[at:], digits[:])
	}
	if err := c.conn.SetDeadline(time.Now().Add(callBound)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	head, err := c.head()
	if err != nil {
		return fmt.Errorf("reading the head of the answer: %w", err)
	}
	c.closing = head.closing
	if head.status != 200 {
		var text []byte
		_ = c.body(head, func(part []byte) error { text = append(text, part...); return nil })
		return fmt.Errorf("the answer is HTTP %d %.300s", head.status, text)
	}
	return c.body(head, take)
}

func (c *connection) head() (answerHead, error) {
	h := answerHead{length: -2}
	line, err := headLine(c.in)
	if err != nil {
		return h, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return h, fmt.Errorf("%.80q is no status line of HTTP/1.1", line)
	}
	if h.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return h, err
	}
	for {
		line, err := headLine(c.in)
		if err != nil {
			return h, err
		}
		if len(line) == 0 {
			break
		}
		// What has another first letter is none of these.
		switch line[0] | 0x20 {
		case 'c':
			if value, is := header(line, "content-length"); is {
				if h.length, err = strconv.Atoi(string(value)); err != nil {
					return h, err
				}
			} else if value, is := header(line, "connection"); is {
				h.closing = bytes.EqualFold(value, []byte("close"))
			} else if value, is := header(line, "content-type"); is {
				h.kind = bytes.Clone(value)
			}
		case 't':
			if value, is := header(line, "transfer-encoding"); is && string(value) == "chunked" {
				h.length = -1
			}
		}
	}
	if h.length == -2 {
		return h, errors.New("the answer has neither a length nor chunks")
	}
	return h, nil
}

func (c *connection) body(h answerHead, take func(part []byte) error) error {
	if h.length >= 0 {
		return c.pass(h.length, take)
	}
	for {
		line, err := headLine(c.in)
		if err != nil {
			return fmt.Errorf("reading the size of a chunk: %w", err)
		}
		size, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return fmt.Errorf("the size of a chunk: %w", err)
		}
		if err := c.pass(int(size), take); err != nil {
			return err
		}
		if line, err = headLine(c.in); err != nil || len(line) > 0 {
			return fmt.Errorf("%.80q stands after a chunk: %w", line, err)
		}
		if size == 0 {
			return nil
		}
	}
}

// pass gives take the next n bytes as they arrive.
func (c *connection) pass(n int, take func(part []byte) error) error {
	for n > 0 {
		if _, err := c.in.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("%d bytes of the answer are missing: %w", n, err)
		}
		part, _ := c.in.Peek(min(n, c.in.Buffered()))
		if err := take(part); err != nil {
			return err
		}
		_, _ = c.in.Discard(len(part))
		n -= len(part)
	}
	return nil
}
