package exchange

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// A plain is a response as nearly every small one is: its header has come in one piece, and the body has an announced length
// (RFC 9112, sections 6 and 7). Everything else is left to net/http, which needs 1.7 times as long.
type plain struct {
	http.Response
	body   sized
	values [maxPlain]string
}

// maxPlain bounds the headers of a plain response.
const maxPlain = 16

// readPlain takes a plain response from r, and nil and no byte where the next is none.
func readPlain(r *bufio.Reader, req *http.Request) *http.Response {
	if _, err := r.Peek(1); err != nil {
		return nil
	}
	begun, _ := r.Peek(r.Buffered())
	size := bytes.Index(begun, []byte("\r\n\r\n"))
	if size < 0 {
		return nil
	}
	head := string(begun[:size])
	status, rest, _ := strings.Cut(head, "\r\n")
	p := &plain{}
	if !p.readStatus(status) || !p.readHeader(rest) {
		return nil
	}
	_, _ = r.Discard(size + len("\r\n\r\n")) // which are buffered
	p.Request = req
	if p.ContentLength == 0 {
		p.Response.Body = http.NoBody
	} else {
		p.body = sized{r, p.ContentLength}
		p.Response.Body = &p.body
	}
	return &p.Response
}

// readStatus reads the status line of a response that may have a body.
func (p *plain) readStatus(line string) bool {
	text, ok := strings.CutPrefix(line, "HTTP/1.1 ")
	if !ok || len(text) < 4 || text[3] != ' ' || !fieldValue(text) {
		return false
	}
	code, err := strconv.ParseUint(text[:3], 10, 16)
	if err != nil || code < 200 || code > 599 || code == http.StatusNoContent || code == http.StatusNotModified {
		return false
	}
	p.Status, p.StatusCode, p.Proto, p.ProtoMajor, p.ProtoMinor = text, int(code), "HTTP/1.1", 1, 1
	return true
}

// readHeader reads the header, which must have each name once and say nothing of the connection but that it stays.
func (p *plain) readHeader(lines string) bool {
	p.Header = make(http.Header, 8)
	p.ContentLength = -1
	for n := 0; lines != ""; n++ {
		var line string
		line, lines, _ = strings.Cut(lines, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok || n == maxPlain || !fieldName(name) {
			return false
		}
		value = textproto.TrimString(value)
		if !fieldValue(value) {
			return false
		}
		switch name = textproto.CanonicalMIMEHeaderKey(name); name {
		case "Content-Length":
			length, err := strconv.ParseUint(value, 10, 62)
			if err != nil {
				return false
			}
			p.ContentLength = int64(length)
		case "Connection":
			if !strings.EqualFold(value, "keep-alive") {
				return false
			}
		case "Transfer-Encoding", "Trailer", "Upgrade", "Pragma": // of the last net/http makes a Cache-Control
			return false
		}
		if _, twice := p.Header[name]; twice {
			return false
		}
		p.values[n] = value
		p.Header[name] = p.values[n : n+1 : n+1]
	}
	return p.ContentLength >= 0
}

// A sized is a body of a length that is known. Its last bytes come with the end.
type sized struct {
	src  *bufio.Reader
	left int64
}

func (s *sized) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.src.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	switch {
	case s.left == 0:
		return n, io.EOF
	case err == io.EOF:
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func (s *sized) Close() error { return nil }
