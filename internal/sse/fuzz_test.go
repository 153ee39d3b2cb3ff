package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// chunks gives at most as many bytes a read as the next byte of sizes says, over and over.
type chunks struct {
	rest  []byte
	sizes []byte
	next  int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	size := len(c.rest)
	if len(c.sizes) > 0 {
		size = int(c.sizes[c.next%len(c.sizes)])%40 + 1
		c.next++
	}
	n := copy(p[:min(size, len(p))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// outcomes reads r to its end and describes each answer.
func outcomes(r *Reader) []string {
	var all []string
	for {
		event, err := r.Next()
		switch {
		case err == nil:
			all = append(all, fmt.Sprintf("%+q", fmt.Sprint(event)))
			continue
		case errors.Is(err, ErrEventTooLarge):
			all = append(all, err.Error())
			continue
		}
		return end(all, err)
	}
}

// end completes a list of outcomes. How much of a line that never ends is seen before the stream breaks off depends on
// the buffer, so an event that is not finished may or may not have been called too large.
func end(all []string, err error) []string {
	for err == io.ErrUnexpectedEOF && len(all) > 0 && all[len(all)-1] == ErrEventTooLarge.Error() {
		all = all[:len(all)-1]
	}
	return append(all, err.Error())
}

// reference is the standard's algorithm over a whole stream, with this package's bound and what it says of blocks without
// data.
func reference(stream string, maxEvent int) []string {
	var all []string
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(stream, "\n")
	cut := lines[len(lines)-1]
	var event Event
	var data []string
	var pending, large bool
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			if data != nil {
				event.Data = []byte(strings.Join(data, "\n"))
			}
			if event.Name == "" {
				event.Name = "message"
			}
			if !large && (data != nil || event.HasID || event.HasRetry) {
				all = append(all, fmt.Sprintf("%+q", fmt.Sprint(event)))
			}
			event, data, pending, large = Event{}, nil, false, false
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		pending = pending || name != ""
		before := len(strings.Join(data, "\n")) + len(event.Name) + len(event.ID)
		if name == "data" && data != nil {
			before++
		}
		if !large && slices.Contains([]string{"data", "event", "id", "retry"}, name) && before+len(value) > maxEvent {
			large = true
			all = append(all, ErrEventTooLarge.Error())
		}
		switch digits := strings.Trim(value, "0123456789") == "" && value != ""; {
		case name == "data":
			data = append(data, value)
		case name == "event":
			event.Name = value
		case name == "id" && !strings.Contains(value, "\x00"):
			event.ID, event.HasID = value, true
		case name == "retry" && digits:
			var ms int64
			if _, err := fmt.Sscan(strings.TrimLeft(value[:len(value)-1], "0")+value[len(value)-1:], &ms); err != nil || ms > maxRetry.Milliseconds() {
				ms = maxRetry.Milliseconds()
			}
			event.Retry, event.HasRetry = time.Duration(ms)*time.Millisecond, true
		}
	}
	if cut != "" && cut[0] != ':' {
		pending = true
	}
	if pending {
		return end(all, io.ErrUnexpectedEOF)
	}
	return end(all, io.EOF)
}

// FuzzReader holds the reader against the reference, in whatever pieces the stream comes.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "\ufeffdata: a\r\n\r\n", "event: x\rdata\rdata:b\r\r", "id: 1\nretry: 10\n\n", "id: \x00\n:c\ndata: \xff\n\n",
		"data: 0123456789012345678901234567890123456789\n\ndata: b\n\n", "retry: 00000000000000000000000007\n\n", "dat",
		"event: 0123456789\nid: 0123456789\ndata: 0123456789\n\n", "id: 5\n\ndata\n\n:\n\nx:y\n\n",
	} {
		f.Add([]byte(seed), []byte{0})
		f.Add([]byte(seed), []byte{2, 5, 1})
	}
	f.Fuzz(func(t *testing.T, stream, sizes []byte) {
		const maxEvent = 24
		if len(stream) > 2000 {
			return
		}
		want := strings.Join(reference(string(stream), maxEvent), "\n")
		for _, buffer := range []int{16, smallBuffer} {
			for _, sizes := range [][]byte{nil, sizes} {
				r := NewReader(&chunks{rest: stream, sizes: sizes}, maxEvent)
				r.buf = make([]byte, buffer)
				if got := strings.Join(outcomes(r), "\n"); got != want {
					t.Errorf("buffer of %d, reads of %v\n got %s\nwant %s", buffer, sizes, got, want)
				}
			}
		}
	})
}

// FuzzAppendEvent: what is written is read back, save that every line break is LF, and is one event.
func FuzzAppendEvent(f *testing.F) {
	for _, seed := range []string{"", "{}", "a\nb", "a\r\nb\rc\n", " a", "\n\ndata: forged\n\n", "\r"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want := bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		r := NewReader(bytes.NewReader(AppendEvent(nil, data)), len(data))
		event, err := r.Next()
		if err != nil || !bytes.Equal(event.Data, want) || event.Name != "message" {
			t.Errorf("%q came back as %q, %v", data, event.Data, err)
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%q is followed by %v, want %v", data, err, io.EOF)
		}
	})
}
