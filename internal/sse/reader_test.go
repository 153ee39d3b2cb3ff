package sse

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReader is the standard's parsing rules, a row each. Every row is read whole, byte by byte and in halves.
func TestReader(t *testing.T) {
	message := func(data string) Event { return Event{Name: "message", Data: []byte(data)} }
	for _, tt := range []struct {
		name, in string
		want     []Event
		end      error
	}{
		{"nothing", "", nil, io.EOF},
		{"LF", "data: a\n\ndata: b\n\n", []Event{message("a"), message("b")}, io.EOF},
		{"CR", "data: a\r\rdata: b\r\r", []Event{message("a"), message("b")}, io.EOF},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []Event{message("a"), message("b")}, io.EOF},
		{"CRLF within an event", "data: a\r\ndata: b\r\n\r\n", []Event{message("a\nb")}, io.EOF},
		{"mixed", "data: a\r\n\rdata: b\n\r\n", []Event{message("a"), message("b")}, io.EOF},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []Event{message("a")}, io.EOF},
		{"second byte order mark is a name", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", nil, io.EOF},
		{"later byte order mark is a name", "data: a\n\n\xef\xbb\xbfdata: a\n\n", []Event{message("a")}, io.EOF},
		{"byte order mark alone", "\xef\xbb\xbf", nil, io.EOF},
		{"comment", ": hi\ndata: a\n:data: x\n\n", []Event{message("a")}, io.EOF},
		{"one space goes", "data:a\n\ndata:  a\n\ndata:\ta\n\n", []Event{message("a"), message(" a"), message("\ta")}, io.EOF},
		{"data without a colon", "data\n\ndata\ndata\n\n", []Event{message(""), message("\n")}, io.EOF},
		{"data lines are joined", "data: a\ndata:\ndata: b\n\n", []Event{message("a\n\nb")}, io.EOF},
		{"first data line empty", "data:\ndata: b\n\n", []Event{message("\nb")}, io.EOF},
		{"colons in data", "data: a: b\n\n", []Event{message("a: b")}, io.EOF},
		{"name", "event: endpoint\ndata: a\n\ndata: b\n\n", []Event{{Name: "endpoint", Data: []byte("a")}, message("b")}, io.EOF},
		{"last name counts", "event: x\nevent: y\ndata: a\n\n", []Event{{Name: "y", Data: []byte("a")}}, io.EOF},
		{"empty name", "event: x\nevent\ndata: a\n\n", []Event{message("a")}, io.EOF},
		{"name without data", "event: x\n\ndata: a\n\n", []Event{message("a")}, io.EOF},
		{"field names have case", "Data: a\n data: b\ndata : c\n\n", nil, io.EOF},
		{"id", "id: 7\ndata: a\n\n", []Event{{Name: "message", ID: "7", HasID: true, Data: []byte("a")}}, io.EOF},
		{"id resets", "id\ndata: a\n\n", []Event{{Name: "message", HasID: true, Data: []byte("a")}}, io.EOF},
		{"id with NUL", "id: 7\x00\ndata: a\n\n", []Event{message("a")}, io.EOF},
		{"id without data", "id: 7\n\n", []Event{{Name: "message", ID: "7", HasID: true}}, io.EOF},
		{"priming event", "id: 7\ndata:\n\n", []Event{{Name: "message", ID: "7", HasID: true, Data: []byte{}}}, io.EOF},
		{"retry", "retry: 1500\n\n", []Event{{Name: "message", Retry: 1500 * time.Millisecond, HasRetry: true}}, io.EOF},
		{"retry is bounded", "retry: 99999999999999999999\n\n", []Event{{Name: "message", Retry: maxRetry, HasRetry: true}}, io.EOF},
		{"retry of other than digits", "retry: -1\nretry: 1s\nretry:\nretry: +1\ndata: a\n\n", []Event{message("a")}, io.EOF},
		{"invalid UTF-8 is kept", "data: a\xff\n\n", []Event{message("a\xff")}, io.EOF},
		{"unfinished event", "data: a\n\ndata: b\n", []Event{message("a")}, io.ErrUnexpectedEOF},
		{"unfinished line", "data: a\n\ndat", []Event{message("a")}, io.ErrUnexpectedEOF},
		{"unfinished line that the buffer moves", "\n0:", nil, io.ErrUnexpectedEOF},
		{"unfinished comment", "data: a\n\n: b", []Event{message("a")}, io.EOF},
		{"comment at the end", "data: a\n\n: b\n", []Event{message("a")}, io.EOF},
		{"unfinished comment in an event", "data: a\n: b", nil, io.ErrUnexpectedEOF},
		{"last blank line is a bare CR", "data: a\r\n\r", []Event{message("a")}, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, src := range []io.Reader{
				strings.NewReader(tt.in),
				iotest.OneByteReader(strings.NewReader(tt.in)),
				iotest.HalfReader(strings.NewReader(tt.in)),
				iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				r := NewReader(src, 1000)
				var got []Event
				event, err := r.Next()
				for ; err == nil; event, err = r.Next() {
					got = append(got, event)
				}
				if err != tt.end {
					t.Errorf("ended with %v, want %v", err, tt.end)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%T (-want +got):\n%s", src, diff)
				}
				if _, again := r.Next(); again != err {
					t.Errorf("the next call ended with %v, want %v again", again, err)
				}
			}
		})
	}
}

func TestReaderGoesOnAfterLargeEvent(t *testing.T) {
	long := strings.Repeat("x", 3*largeBuffer)
	for _, tt := range []struct{ name, large string }{
		{"one line", "data: " + long + "\n"},
		{"short line", "data: 123456789\n"},
		{"many lines", strings.Repeat("data: 1\n", 100)},
		{"empty lines", strings.Repeat("data\n", 10)},
		{"name", "event: " + long + "\n"},
		{"id", "id: " + long + "\n"},
		{"retry", "retry: " + strings.Repeat("1", 3*largeBuffer) + "\n"},
		{"together", "id: 123\nevent: 456\ndata: 789\n"},
		{"fields after it", "data: " + long + "\ndata: 1\nid: 5\nretry: 1\n: comment\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader("data: 12345678\n\n"+tt.large+"\ndata: after\n\n"+tt.large), 8)
			if event, err := r.Next(); err != nil || string(event.Data) != "12345678" {
				t.Fatalf("an event of just the bound: %q, %v", event.Data, err)
			}
			if _, err := r.Next(); !errors.Is(err, ErrEventTooLarge) {
				t.Fatalf("large event: %v, want %v", err, ErrEventTooLarge)
			}
			event, err := r.Next()
			if diff := cmp.Diff(Event{Name: "message", Data: []byte("after")}, event); err != nil || diff != "" {
				t.Fatalf("event after the large one: %v\n%s", err, diff)
			}
			if _, err := r.Next(); !errors.Is(err, ErrEventTooLarge) {
				t.Fatalf("unfinished large event: %v, want %v", err, ErrEventTooLarge)
			}
			if _, err := r.Next(); err != io.ErrUnexpectedEOF {
				t.Fatalf("its end: %v, want %v", err, io.ErrUnexpectedEOF)
			}
		})
	}
}

// repeated is text n times over, never in memory at once.
func repeated(text string, n int) io.Reader {
	one := strings.Repeat(text, max(1, 4096/len(text)))
	readers := make([]io.Reader, n*len(text)/len(one))
	for i := range readers {
		readers[i] = strings.NewReader(one)
	}
	return io.MultiReader(readers...)
}

func TestReaderMemoryIsBounded(t *testing.T) {
	const total, bound = 4 << 20, 64 << 10
	for _, tt := range []struct{ name, begin, text string }{
		{"a comment", ":", "x"},
		{"comments", "", ":x\n"},
		{"a line without a colon", "", "x"},
		{"an unknown field", "", "field: x\n"},
		{"data in one line", "data: ", "x"},
		{"data in many lines", "", "data: x\n"},
		{"names", "", "event: x\n"},
		{"an id", "id: ", "x"},
		{"blank lines", "", "\n"},
		{"bare CRs", "", "\r"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := io.MultiReader(strings.NewReader(tt.begin), repeated(tt.text, total/len(tt.text)))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := NewReader(src, bound)
			_, err := r.Next()
			for errors.Is(err, ErrEventTooLarge) {
				_, err = r.Next()
			}
			runtime.ReadMemStats(&after)
			if err != io.EOF && err != io.ErrUnexpectedEOF {
				t.Errorf("ended with %v", err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 8*bound {
				t.Errorf("%d bytes allocated for a stream of %d, with a bound of %d", used, total, bound)
			}
		})
	}
}

// A stillReader has one chunk, and reports being asked for more.
type stillReader struct {
	t     *testing.T
	chunk string
}

func (s *stillReader) Read(p []byte) (int, error) {
	if s.chunk == "" {
		s.t.Error("Next read on after a whole event")
		return 0, io.EOF
	}
	n := copy(p, s.chunk)
	s.chunk = s.chunk[n:]
	return n, nil
}

func TestReaderDoesNotWaitForMore(t *testing.T) {
	for _, in := range []string{"data: a\n\n", "data: a\r\r", "data: a\r\n\r", "data: a\r\n\r\n"} {
		if event, err := NewReader(&stillReader{t, in}, 100).Next(); err != nil || string(event.Data) != "a" {
			t.Errorf("%q: %q, %v", in, event.Data, err)
		}
	}
}

func TestReaderPassesErrorsOn(t *testing.T) {
	broken := errors.New("connection reset")
	r := NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 100)
	if event, err := r.Next(); err != nil || string(event.Data) != "a" {
		t.Fatalf("%q, %v", event.Data, err)
	}
	for range 2 {
		if _, err := r.Next(); err != broken {
			t.Errorf("got %v, want %v", err, broken)
		}
	}
	reads := 0
	once := readerFunc(func(p []byte) (int, error) {
		if reads++; reads == 1 {
			return 0, broken
		}
		return copy(p, "data: a\n\n"), nil
	})
	r = NewReader(once, 100)
	for range 2 {
		if _, err := r.Next(); err != broken || reads != 1 {
			t.Errorf("got %v after %d reads, want %v after the first alone", err, reads, broken)
		}
	}
	idle := readerFunc(func([]byte) (int, error) { return 0, nil })
	if _, err := NewReader(idle, 100).Next(); err != io.ErrNoProgress {
		t.Errorf("a reader that gives nothing: %v, want %v", err, io.ErrNoProgress)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestDataIsTheCallers(t *testing.T) {
	r := NewReader(strings.NewReader("data: first\n\ndata: other\n\n"), 100)
	first, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil || string(first.Data) != "first" {
		t.Errorf("after another Next the first event reads %q (%v)", first.Data, err)
	}
}

// A large line is read in large pieces, into a slice that is no larger than the bound.
func TestLargeLine(t *testing.T) {
	const size = 1_000_000
	reads := 0
	src := bytes.NewReader(AppendEvent(nil, bytes.Repeat([]byte("x"), size)))
	counted := readerFunc(func(p []byte) (int, error) {
		reads++
		return src.Read(p)
	})
	event, err := NewReader(counted, size+100).Next()
	if err != nil || len(event.Data) != size {
		t.Fatalf("%d bytes, %v", len(event.Data), err)
	}
	if most := size/largeBuffer + 5; reads > most {
		t.Errorf("%d reads, want at most %d", reads, most)
	}
	if cap(event.Data) > size+16<<10 {
		t.Errorf("the data of %d bytes holds on to %d", size, cap(event.Data))
	}
}

// Lines that fill the buffer more than once, one after the other.
func TestLongFields(t *testing.T) {
	a, b := strings.Repeat("a", 3*largeBuffer), strings.Repeat("b", 3*largeBuffer)
	stream := "id: " + a + "\nid: " + b + "\nevent: " + b + "\ndata: " + a + "\n" + a + ": " + b + "\n:" + a + "\ndata: " + b + "\n\n"
	event, err := NewReader(strings.NewReader(stream), len(stream)).Next()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Event{Name: b, ID: b, HasID: true, Data: []byte(a + "\n" + b)}, event); diff != "" {
		t.Errorf("(-want +got):\n%.300s", diff)
	}
}

func TestSmallEventAllocations(t *testing.T) {
	stream := []byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
	src := bytes.NewReader(nil)
	r := NewReader(src, 1<<20)
	got := testing.AllocsPerRun(100, func() {
		src.Reset(stream)
		r.err = nil
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	})
	if got > 1 {
		t.Errorf("%v allocations for an event, want 1: its data", got)
	}
}

func BenchmarkReader(b *testing.B) {
	for name, size := range map[string]int{"small": 200, "1MB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			stream := AppendEvent(nil, bytes.Repeat([]byte("x"), size))
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := NewReader(bytes.NewReader(stream), 4<<20).Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
