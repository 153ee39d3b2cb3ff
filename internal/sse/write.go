package sse

import (
	"bytes"
	"io"
	"strings"
)

// AppendEvent appends one event without a name, which readers call "message", to dst.
//
// A line break in data (CR, LF or CRLF) starts another data line and is read back as LF. To JSON that is the same white
// space, and no data can end the event and begin one of its own making.
func AppendEvent(dst, data []byte) []byte {
	for {
		dst = append(dst, "data: "...)
		i := lineEnd(data)
		if i < 0 {
			dst = append(dst, data...)
			return append(dst, "\n\n"...)
		}
		dst = append(dst, data[:i]...)
		dst = append(dst, '\n')
		if bytes.HasPrefix(data[i:], []byte("\r\n")) {
			i++
		}
		data = data[i+1:]
	}
}

// WriteEvent writes what [AppendEvent] makes of data in a single Write. It does not flush.
func WriteEvent(w io.Writer, data []byte) error {
	_, err := w.Write(AppendEvent(make([]byte, 0, len(data)+len("data: \n\n")), data))
	return err
}

// WriteComment writes a comment, which every reader ignores, in a single Write: it keeps an idle stream from being
// closed by what stands between. Line breaks in text become spaces. It does not flush.
func WriteComment(w io.Writer, text string) error {
	text = strings.Map(func(c rune) rune {
		if c == '\r' || c == '\n' {
			return ' '
		}
		return c
	}, text)
	_, err := io.WriteString(w, ": "+text+"\n\n")
	return err
}
