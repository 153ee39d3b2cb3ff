package main

import (
	"bytes"
	"fmt"
	"strconv"
	"sync/atomic"
)

// An id is that of one request, always idDigits long, so that requests and answers differ in these digits alone.
type id int64

const idDigits = 10

var lastID atomic.Int64

// firstID has digits that no payload has in this order.
const firstID = 7_305_918_264

// nextID is one that no request of this process has had.
func nextID() id { return id(firstID + lastID.Add(1)) }

func (i id) String() string { return strconv.FormatInt(int64(i), 10) }

// hole stands for the id in what a template is made of.
const hole = "{{id}}"

// A template is a text in which an id occurs any number of times: the pieces before, between and after it.
type template struct{ pieces [][]byte }

// newTemplate cuts text at each occurrence of what stands for the id.
func newTemplate(text []byte, mark string) template { return template{bytes.Split(text, []byte(mark))} }

// with is the text with that id, and where the id stands in it.
func (t template) with(i id) (text []byte, at []int) {
	for n, piece := range t.pieces {
		if n > 0 {
			at = append(at, len(text))
			text = append(text, i.String()...)
		}
		text = append(text, piece...)
	}
	return text, at
}

// A comparison holds what arrives, in parts, against a template with one id.
type comparison struct {
	pieces [][]byte
	id     [idDigits]byte
	piece  int // the one that is being compared
	at     int // in the piece, or in the id before it
	inID   bool
	passed int
}

func (c *comparison) begin(t template, i id) {
	*c = comparison{pieces: t.pieces}
	strconv.AppendInt(c.id[:0], int64(i), 10)
}

// feed compares the next part of what has arrived.
func (c *comparison) feed(part []byte) error {
	for len(part) > 0 {
		want := c.id[:]
		if !c.inID {
			if c.piece == len(c.pieces) {
				return fmt.Errorf("the answer goes on after its %d bytes: %.80q", c.passed, part)
			}
			want = c.pieces[c.piece]
		}
		want = want[c.at:]
		n := min(len(want), len(part))
		if !bytes.Equal(want[:n], part[:n]) {
			return fmt.Errorf("byte %d of the answer and on is %.80q where %.80q is due", c.passed, part, want)
		}
		c.at += n
		c.passed += n
		part = part[n:]
		c.advance()
	}
	return nil
}

// advance goes on to the next piece where one has been compared whole.
func (c *comparison) advance() {
	for {
		switch {
		case c.inID && c.at == idDigits:
			c.inID, c.at = false, 0
		case !c.inID && c.piece < len(c.pieces) && c.at == len(c.pieces[c.piece]):
			c.piece++
			c.at, c.inID = 0, c.piece < len(c.pieces)
		default:
			return
		}
	}
}

// count takes the next part for the size that it has.
func (c *comparison) count(part []byte) error {
	c.passed += len(part)
	return nil
}

// sameSize says whether as much was counted as is due.
func (c *comparison) sameSize() error {
	due := (len(c.pieces) - 1) * idDigits
	for _, piece := range c.pieces {
		due += len(piece)
	}
	if c.passed != due {
		return fmt.Errorf("the answer has %d bytes, not %d", c.passed, due)
	}
	return nil
}

// end says whether all has arrived.
func (c *comparison) end() error {
	c.advance()
	if c.piece < len(c.pieces) {
		return fmt.Errorf("the answer ends after %d bytes, before %.80q", c.passed, bytes.Join(c.pieces[c.piece:], []byte(hole)))
	}
	return nil
}
