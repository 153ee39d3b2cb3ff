package sse

import "bytes"

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
