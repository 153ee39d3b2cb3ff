// Package sse reads and writes text/event-stream, the framing of MCP's HTTP transports.
//
// A [Reader] follows the parsing rules of the HTML standard (section 9.2, server-sent events) over any reader, within a
// memory bound, and survives an event that is over it: on a stream that many calls share, one large event must harm
// none of the others. [AppendEvent] and the functions beside it write.
//
// Bytes are passed on as they came: invalid UTF-8 is not replaced here, the decoder of the message judges it.
package sse

import (
	"errors"
	"time"
)

// ErrEventTooLarge is in the chain of what [Reader.Next] returns for an event over the reader's bound, which has a method Ends
// that gives how the event's data begins. The stream goes on: the next call skips what is left of that event.
var ErrEventTooLarge = errors.New("event is larger than allowed")

// headBytes is how much is kept of the data of an event that is too large.
const headBytes = 512

// A tooLarge is ErrEventTooLarge with the beginning of the event.
type tooLarge struct{ head []byte }

func (e *tooLarge) Error() string { return ErrEventTooLarge.Error() }

func (e *tooLarge) Unwrap() error { return ErrEventTooLarge }

// Ends gives how the event's data begins. Its end is not known yet.
func (e *tooLarge) Ends() (head, tail []byte) { return e.head, nil }

// maxRetry bounds the reconnection time that a server can ask for.
const maxRetry = 24 * time.Hour

// An Event is one block of a stream, up to its blank line.
//
// The standard dispatches only blocks with a data line. A block without one that has an id or a retry is an Event too,
// with nil Data, since it moves the place at which a stream is resumed; a consumer of messages passes over every event
// whose Data is empty.
type Event struct {
	Name     string        // the event field; "message" where there was none, or an empty one
	Data     []byte        // the data lines joined by \n; the caller's to keep
	ID       string        // the id field; "" with HasID set resets the last event id
	HasID    bool          // the block had an id field without a NUL
	Retry    time.Duration // the retry field, at most 24 hours
	HasRetry bool          // the block had a retry field of digits only
}
