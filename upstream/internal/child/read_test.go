package child

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadGivesTheLinesThatMayBeMessages(t *testing.T) {
	for _, test := range []struct {
		name, say string
		want      []string
		junk      string
	}{
		{"two", "{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}, ""},
		{"a batch", "[{}]\n", []string{`[{}]`}, ""},
		{"CRLF", "{}\r\n[]\r\n", []string{"{}", "[]"}, ""},
		{"no last newline", "{}\n[1]", []string{"{}", "[1]"}, ""},
		{"white space", " \t{ } \n\n \r\n", []string{"{ }"}, ""},
		{"invalid UTF-8", "{\xff}\n", []string{"{\xff}"}, ""},
		{"cut JSON", "{\"a\":\n", []string{"{\"a\":"}, ""},
		{"junk", "Server started\n{}\n> npm run\r\nbye", []string{"{}"}, "Server started\n> npm run\nbye"},
		{"nothing", "", nil, ""},
	} {
		for _, part := range []string{"say", "drip"} {
			t.Run(test.name+"/"+part, func(t *testing.T) {
				var junk pad
				cfg := play(part, "SAY="+test.say)
				cfg.Junk = junk.add
				c := start(t, cfg)
				for _, want := range test.want {
					expect(t, c, want)
				}
				expectEnd(t, c)
				expectEnd(t, c)
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				if got := junk.text(); got != test.junk {
					t.Errorf("junk %q, want %q", got, test.junk)
				}
			})
		}
	}
}

func TestALineOverTheLimitIsSkippedAndReported(t *testing.T) {
	cfg := play("large")
	cfg.MaxLine = 6 << 20
	c := start(t, cfg)
	line, err := c.Read()
	if err != nil || len(line) != 5<<20+len(`{"pad":""}`) {
		t.Fatalf("read %d bytes, %v; want 5 MB whole", len(line), err)
	}
	_, err = c.Read()
	var long *LineTooLongError
	if !errors.As(err, &long) {
		t.Fatalf("read %v, want a LineTooLongError", err)
	}
	if want := 9<<20 + len(`{"id":7,"pad":"","id":8}`); long.Size != want || long.Limit != 6<<20 {
		t.Errorf("size %d, limit %d; want %d and 6 MiB", long.Size, long.Limit, want)
	}
	if !strings.HasPrefix(string(long.Head), `{"id":7,"pad":"yyy`) || len(long.Head) != 512 {
		t.Errorf("head %d bytes: %.40q", len(long.Head), long.Head)
	}
	if !strings.HasSuffix(string(long.Tail), `yyy","id":8}`) || len(long.Tail) != 512 {
		t.Errorf("tail %d bytes: %.40q", len(long.Tail), long.Tail)
	}
	expect(t, c, `{"last":true}`)
}

func TestTheLimitCountsWithoutTheLineEnd(t *testing.T) {
	for _, test := range []struct {
		say  string
		size int // of a line that is too long, else 0
		tail string
	}{
		{"{678}\n", 0, ""},
		{"{678}\r\n", 0, ""},
		{"{678}", 0, ""},
		{"{6789}\n", 6, "{6789}"},
		{"{6789}\r\n", 6, "{6789}"},
		{"{6789}", 6, "{6789}"},
		{"{678}\r\r\n", 6, "{678}\r"},
	} {
		cfg := play("say", "SAY="+test.say)
		cfg.MaxLine = 5
		c := start(t, cfg)
		line, err := c.Read()
		var long *LineTooLongError
		switch {
		case test.size == 0:
			if err != nil || string(line) != "{678}" {
				t.Errorf("%q: read %q, %v", test.say, line, err)
			}
		case !errors.As(err, &long) || long.Size != test.size || string(long.Tail) != test.tail:
			t.Errorf("%q: read %q, %+v", test.say, line, err)
		}
		expectEnd(t, c)
	}
}

func TestAnEndlessLineIsBoundedAndEndsWithTheChild(t *testing.T) {
	cfg := play("endless")
	cfg.MaxLine = 1 << 20
	c := start(t, cfg)
	read := make(chan error)
	go func() { // reads on until the end of the child
		_, err := c.Read()
		for err == nil {
			_, err = c.Read()
		}
		read <- err
	}()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	var long *LineTooLongError
	if err := <-read; !errors.As(err, &long) && !errors.Is(err, io.EOF) {
		t.Errorf("read %v", err)
	}
	expectEnd(t, c)
}

func TestALineReaderKeepsNoMoreThanItsLimit(t *testing.T) {
	const size = 64 << 20
	l := newLineReader(io.LimitReader(zeros{}, size), 64<<10)
	got, err := l.next(1 << 10)
	if !errors.Is(err, io.EOF) || got.size != size {
		t.Fatalf("size %d, %v", got.size, err)
	}
	if cap(got.text) > 4<<10 || cap(got.end) > 1<<20 {
		t.Errorf("kept %d and %d bytes", cap(got.text), cap(got.end))
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func FuzzLines(f *testing.F) {
	f.Add("{}\r\nab\n\n[", 3)
	f.Add("\r\n\r", 1)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 1 + max(0, limit%32)
		l := newLineReader(iotest.OneByteReader(strings.NewReader(text)), 16)
		for i, want := range strings.Split(text, "\n") {
			if n := len(want); n > 0 && want[n-1] == '\r' {
				want = want[:n-1]
			}
			got, err := l.next(limit)
			if got.size != len(want) || string(got.text) != want[:min(len(want), limit)] {
				t.Fatalf("line %d: %q of %d bytes, want %q", i, got.text, got.size, want)
			}
			if long := got.size > limit; long != (got.end != nil) || long && !strings.HasSuffix(want, string(got.end)) {
				t.Fatalf("line %d: end %q of %q", i, got.end, want)
			}
			if last := i == strings.Count(text, "\n"); last != (err != nil) {
				t.Fatalf("line %d: error %v", i, err)
			}
		}
	})
}
