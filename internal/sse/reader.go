package sse

import (
	"bytes"
	"io"
	"slices"
	"time"
)

// Most streams carry one small message, so a reader starts with a small buffer and takes the large one only when a read
// has filled it.
const (
	smallBuffer = 4 << 10
	largeBuffer = 32 << 10
)

// maxEmptyReads is how many reads in a row may give neither a byte nor an error.
const maxEmptyReads = 100

// A Reader takes events off a stream. It holds at most its bound of one event, twice that while the event grows, and a
// buffer of 32 KiB, whatever the stream sends. It is for one goroutine at a time.
type Reader struct {
	src      io.Reader
	maxEvent int

	buf        []byte
	start, end int   // buf[start:end] is unread
	filled     bool  // the last read filled buf
	err        error // of src, to be returned once buf is used up

	begun  bool // the first bytes, and with them a byte order mark, are behind us
	skipLF bool // the last line ended with CR: a LF that follows belongs to it
	inLine bool // a piece of the current line has been taken

	field    field
	value    []byte // what came of a line in pieces, but for data; nil between lines
	event    Event
	hasData  bool
	pending  bool // a field of a block that is not finished has been read
	skipping bool // the block was too large, and ends at its blank line
}

// NewReader reads events from src. The data of one event, with its id and name and the value of the line being read, may
// have maxEvent bytes.
func NewReader(src io.Reader, maxEvent int) *Reader {
	return &Reader{src: src, maxEvent: maxEvent, buf: make([]byte, smallBuffer)}
}

// Next returns the next event as soon as its blank line has been read. Comments and unknown fields take no memory,
// however long.
//
// The error is io.EOF at the end of the stream, io.ErrUnexpectedEOF where it ended within an event (which is discarded,
// as the standard demands), what src returned, or [ErrEventTooLarge], the only one after which Next can be called with
// profit.
func (r *Reader) Next() (Event, error) {
	for {
		piece, ended, err := r.piece()
		if err != nil {
			return Event{}, r.fail(piece, err)
		}
		first := !r.inLine
		r.inLine = !ended
		switch {
		case first && ended && len(piece) == 0:
			if event, ok := r.dispatch(); ok {
				return event, nil
			}
		case r.skipping:
		default:
			if first {
				piece = r.begin(piece)
			}
			if !r.take(piece, first, ended) {
				err := &tooLarge{bytes.Clone(r.event.Data[:min(len(r.event.Data), headBytes)])}
				r.event, r.hasData, r.value = Event{}, false, nil
				r.skipping = true
				return Event{}, err
			}
		}
	}
}

// Held is how many bytes of an event that has not ended yet the reader holds, beside its buffer. What reads for it may ask.
func (r *Reader) Held() int {
	return len(r.event.Data) + len(r.event.ID) + len(r.event.Name) + len(r.value)
}

// fail makes the error of src the reader's, given the line that it cut off.
func (r *Reader) fail(cut []byte, err error) error {
	if len(cut) > 0 && !r.inLine && cut[0] != ':' {
		r.pending = true
	}
	if err == io.EOF && r.pending {
		return io.ErrUnexpectedEOF
	}
	return err
}

// dispatch ends the block, and says whether it was an event.
func (r *Reader) dispatch() (Event, bool) {
	event := r.event
	dispatched := r.hasData || event.HasID || event.HasRetry
	r.event, r.hasData, r.pending, r.skipping = Event{}, false, false, false
	if event.Name == "" {
		event.Name = "message"
	}
	return event, dispatched
}

// piece returns the next bytes of the current line and whether they end it: the rest of it, or else a full buffer, so that
// the first piece of a line always holds the field's name. With an error, it is what the stream ended with. It is
// valid until the next call.
func (r *Reader) piece() (piece []byte, ended bool, err error) {
	scanned := 0 // bytes after start that are known to hold no line end
	for {
		if r.skipLF && r.start < r.end {
			r.skipLF = false
			if r.buf[r.start] == '\n' {
				r.start++
			}
		}
		rest := r.buf[r.start:r.end]
		if i := lineEnd(rest[scanned:]); i >= 0 {
			i += scanned
			r.skipLF = rest[i] == '\r'
			r.start += i + 1
			return r.unmarked(rest[:i]), true, nil
		}
		if len(rest) == len(r.buf) {
			r.start = r.end
			return r.unmarked(rest), false, nil
		}
		scanned = len(rest)
		if err := r.fill(); err != nil {
			cut := r.buf[r.start:r.end] // which fill has moved
			r.start = r.end
			return r.unmarked(cut), false, err
		}
	}
}

// unmarked takes the byte order mark off the first piece of the stream.
func (r *Reader) unmarked(piece []byte) []byte {
	if r.begun {
		return piece
	}
	r.begun = true
	return bytes.TrimPrefix(piece, []byte("\xef\xbb\xbf"))
}

// fill reads once, and again only where that gave nothing at all.
func (r *Reader) fill() error {
	if r.err != nil {
		return r.err
	}
	buf := r.buf
	if r.filled && len(buf) < largeBuffer {
		r.buf = make([]byte, largeBuffer)
	}
	r.end = copy(r.buf, buf[r.start:r.end])
	r.start = 0
	for range maxEmptyReads {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.filled = r.end == len(r.buf)
		r.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}

// lineEnd is the index of the first CR or LF, or -1. It looks at windows that double, so that its cost follows the line
// and not the buffer: a stream of bare CRs would otherwise cost a scan of the buffer for each.
func lineEnd(b []byte) int {
	for from, width := 0, 64; from < len(b); from, width = from+width, 2*width {
		window := b[from:min(from+width, len(b))]
		i := bytes.IndexByte(window, '\n')
		if i >= 0 {
			window = window[:i]
		}
		if j := bytes.IndexByte(window, '\r'); j >= 0 {
			i = j
		}
		if i >= 0 {
			return from + i
		}
	}
	return -1
}

// A field is a field name of the standard; fieldNone stands for comments and names to ignore.
type field int

const (
	fieldNone field = iota
	fieldData
	fieldEvent
	fieldID
	fieldRetry
)

// begin reads the field's name off the first piece of a line, and returns what the piece has of the value.
func (r *Reader) begin(piece []byte) []byte {
	name, value, found := bytes.Cut(piece, []byte(":"))
	r.field = fieldNone
	if found && len(name) == 0 {
		return nil
	}
	r.pending = true
	switch string(name) {
	case "data":
		r.field = fieldData
	case "event":
		r.field = fieldEvent
	case "id":
		r.field = fieldID
	case "retry":
		r.field = fieldRetry
	}
	return bytes.TrimPrefix(value, []byte(" "))
}

// take adds a piece of the current field's value to the event. It says no where the event becomes too large.
func (r *Reader) take(piece []byte, first, ended bool) bool {
	switch r.field {
	case fieldNone:
		return true
	case fieldData:
		return r.takeData(piece, first)
	}
	if !r.fits(len(r.value) + len(piece)) {
		return false
	}
	if first && ended {
		r.finish(piece)
		return true
	}
	r.value = append(r.value, piece...)
	if ended {
		r.finish(r.value)
		r.value = nil
	}
	return true
}

func (r *Reader) takeData(piece []byte, first bool) bool {
	joined := 0
	if first && r.hasData {
		joined = 1
	}
	if !r.fits(joined + len(piece)) {
		return false
	}
	data := r.event.Data
	if need := len(data) + joined + len(piece); data == nil {
		data = make([]byte, 0, need)
	} else if need > cap(data) {
		data = slices.Grow(data, min(max(need, 2*cap(data)), r.maxEvent)-len(data))
	}
	if joined == 1 {
		data = append(data, '\n')
	}
	r.event.Data = append(data, piece...)
	r.hasData = true
	return true
}

// fits says whether the event may have more bytes.
func (r *Reader) fits(more int) bool {
	return len(r.event.Data)+len(r.event.ID)+len(r.event.Name) <= r.maxEvent-more
}

// finish sets what a whole line of a field other than data says.
func (r *Reader) finish(value []byte) {
	switch r.field {
	case fieldEvent:
		r.event.Name = eventName(value)
	case fieldID:
		if bytes.IndexByte(value, 0) < 0 {
			r.event.ID, r.event.HasID = string(value), true
		}
	case fieldRetry:
		if retry, ok := milliseconds(value); ok {
			r.event.Retry, r.event.HasRetry = retry, true
		}
	}
}

// eventName spares the names of MCP an allocation.
func eventName(value []byte) string {
	switch string(value) {
	case "message":
		return "message"
	case "endpoint":
		return "endpoint"
	}
	return string(value)
}

// milliseconds reads ASCII digits. The standard knows no largest number; more than a day is a day.
func milliseconds(digits []byte) (time.Duration, bool) {
	if len(digits) == 0 {
		return 0, false
	}
	var d time.Duration
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		d = min(10*d+time.Duration(c-'0')*time.Millisecond, maxRetry)
	}
	return d, true
}
