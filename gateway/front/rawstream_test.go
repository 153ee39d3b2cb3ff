package front

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// raw writes a request as it goes over the wire.
func raw(method string, h http.Header, body string) string {
	var text strings.Builder
	text.WriteString(method + " /mcp HTTP/1.1\r\nHost: localhost\r\n")
	_ = h.Write(&text)
	if body != "" {
		text.WriteString("Content-Length: " + itoa(len(body)) + "\r\n")
	}
	return text.String() + "\r\n" + body
}

// A rawStream is a connection whose answer is read as it comes.
type rawStream struct {
	t    *testing.T
	conn net.Conn
	body *bufio.Reader
}

// openRaw sends a request on conn and reads the head of its answer.
func openRaw(t *testing.T, conn net.Conn, method string, h http.Header, body string) *rawStream {
	t.Helper()
	if _, err := io.WriteString(conn, raw(method, h, body)); err != nil {
		t.Fatal(err)
	}
	return readRaw(t, conn)
}

// readRaw reads the head of the answer that comes on conn.
func readRaw(t *testing.T, conn net.Conn) *rawStream {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %d, headers %v", resp.StatusCode, resp.Header)
	}
	return &rawStream{t: t, conn: conn, body: bufio.NewReader(resp.Body)}
}

// event reads up to the next empty line; the end of the stream is "end".
func (s *rawStream) event() string {
	s.t.Helper()
	var text strings.Builder
	for {
		line, err := s.body.ReadString('\n')
		text.WriteString(line)
		switch {
		case err == io.EOF && text.Len() == 0:
			return "end"
		case err != nil:
			s.t.Fatalf("the stream breaks after %q: %v", text.String(), err)
		case line == "\n":
			return text.String()
		}
	}
}

func (s *rawStream) want(texts ...string) {
	s.t.Helper()
	for _, want := range texts {
		if got := s.event(); got != want {
			s.t.Fatalf("the stream has %q, want %q", got, want)
		}
	}
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// served is how many requests are being served.
func served(f *Front) int {
	f.flights.mu.Lock()
	defer f.flights.mu.Unlock()
	return f.flights.served
}
