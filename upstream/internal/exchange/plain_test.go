package exchange

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const plainResponse = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

// responses are plain ones, and such as differ from one in a way that must not be overlooked.
var responses = []struct {
	text  string
	plain bool
}{
	{plainResponse, true},
	{plainResponse + "HTTP/1.1 200", true},
	{"HTTP/1.1 404 Not Found\r\ncontent-length:2\r\nmcp-session-id: \t a b \t\r\n\r\n{}", true},
	{"HTTP/1.1 200 \r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n", true},
	{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", true},
	{"HTTP/1.1 200 OK\r\nX-A: \xc3\xa9\r\nContent-Length: 2\r\n\r\n{}", true},

	{"", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", false},
	{"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", false},
	{"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 100 Continue\r\n\r\n" + plainResponse, false},
	{"HTTP/1.1 101 Switching\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 204 None\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 304 None\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 +20 OK\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length: 3\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive, close\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n X: folded\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\n: 2\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nX\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nX: a\nY: b\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\n{}", false},
	{"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 2) + "Content-Length: 2\r\n\r\n{}", false},
}

func TestOnlyPlainResponsesAreReadByReadPlain(t *testing.T) {
	for _, row := range responses {
		if plain := comparePlain(t, []byte(row.text)); plain != row.plain {
			t.Errorf("%q: plain is %v", row.text, plain)
		}
	}
	many := "HTTP/1.1 200 OK\r\n"
	for i := range maxPlain {
		many += "X-" + string(rune('a'+i)) + ": 1\r\n"
	}
	if comparePlain(t, []byte(many+"Content-Length: 2\r\n\r\n{}")) {
		t.Error("a response with many headers counts as plain")
	}
}

// comparePlain holds a plain response against what net/http reads, and reports whether text begins with one.
func comparePlain(t *testing.T, text []byte) bool {
	t.Helper()
	ours := bufio.NewReader(bytes.NewReader(text))
	got := readPlain(ours, nil)
	if got == nil {
		if rest, _ := io.ReadAll(ours); !bytes.Equal(rest, text) {
			t.Fatalf("%q: what is no plain response was read", text)
		}
		return false
	}
	theirs := bufio.NewReader(bytes.NewReader(text))
	want, err := http.ReadResponse(theirs, nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	type response struct {
		Status, Proto string
		Code          int
		Major, Minor  int
		Close         bool
		Length        int64
		Header        map[string][]string
		Empty         bool
		Body, Rest    string
		Err           error
	}
	read := func(r *http.Response, from *bufio.Reader) response {
		body, err := io.ReadAll(r.Body)
		rest, _ := io.ReadAll(from)
		return response{r.Status, r.Proto, r.StatusCode, r.ProtoMajor, r.ProtoMinor, r.Close, r.ContentLength,
			maps.Collect(maps.All(r.Header)), r.Body == http.NoBody, string(body), string(rest), err}
	}
	sameError := cmp.Comparer(func(a, b error) bool { return a == b })
	if diff := cmp.Diff(read(want, theirs), read(got, ours), sameError); diff != "" {
		t.Errorf("%q (-net/http +ours):\n%s", text, diff)
	}
	return true
}

func FuzzPlain(f *testing.F) {
	for _, row := range responses {
		f.Add([]byte(row.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { comparePlain(t, text) })
}

func BenchmarkReadResponse(b *testing.B) {
	const text = "HTTP/1.1 200 OK\r\nDate: Tue, 01 Dec 2026 10:00:00 GMT\r\nServer: uvicorn\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	src := strings.NewReader(text)
	r := bufio.NewReader(src)
	for name, read := range map[string]func() bool{
		"plain":    func() bool { return readPlain(r, nil) != nil },
		"net/http": func() bool { _, err := http.ReadResponse(r, nil); return err == nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				src.Reset(text)
				r.Reset(src)
				if !read() {
					b.Fatal("it was not read")
				}
			}
		})
	}
}
