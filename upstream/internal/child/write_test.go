package child

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestAFrameIsOneLine(t *testing.T) {
	c := start(t, play("echo"))
	for _, frame := range []string{`{"a":1}`, `{"b":"` + strings.Repeat("x", 3<<20) + `"}`, `{"c":3}`} {
		echoed := make(chan error)
		go func() {
			line, err := c.Read()
			if err == nil && string(line) != frame {
				err = fmt.Errorf("read %d bytes, wrote %d", len(line), len(frame))
			}
			echoed <- err
		}()
		if n, err := c.Write([]byte(frame)); err != nil || n != len(frame)+1 {
			t.Errorf("wrote %d, %v; want %d", n, err, len(frame)+1)
		}
		if err := <-echoed; err != nil {
			t.Fatal(err)
		}
		if cap(c.line) > keptLine {
			t.Errorf("%d bytes are kept after the frame", cap(c.line))
		}
	}
}

func TestAFrameThatHoldsALineEndIsRefused(t *testing.T) {
	c := start(t, play("echo"))
	for _, frame := range []string{"{\n}", "{\r}", "{}\n"} {
		if n, err := c.Write([]byte(frame)); n != 0 || err == nil {
			t.Errorf("%q: wrote %d, %v; want a refusal", frame, n, err)
		}
	}
	if _, err := c.Write([]byte(`{"ok":1}`)); err != nil {
		t.Fatal(err)
	}
	expect(t, c, `{"ok":1}`)
}

func TestWritesAtTheSameTimeFollowOneAnotherWhole(t *testing.T) {
	c := start(t, play("echo"))
	const writers, frames = 8, 20
	var all sync.WaitGroup
	for w := range writers {
		frame := []byte(`{"from":"` + strings.Repeat(string(rune('a'+w)), 20_000) + `"}`)
		all.Go(func() {
			for range frames {
				if _, err := c.Write(frame); err != nil {
					t.Errorf("write: %v", err)
				}
			}
		})
	}
	for range writers * frames {
		line, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		letter := string(line[len(`{"from":"`)])
		if want := `{"from":"` + strings.Repeat(letter, 20_000) + `"}`; string(line) != want {
			t.Fatalf("lines are mixed: %.60q", line)
		}
	}
	all.Wait()
}

func TestNothingIsSentAfterStdinHasFailed(t *testing.T) {
	c := start(t, play("shut"))
	expect(t, c, `{"ready":true}`)
	n, err := c.Write([]byte(`{"a":1}`))
	if n != 0 || !errors.Is(err, syscall.EPIPE) || errors.Is(err, ErrStdinFailed) {
		t.Errorf("the first write: %d, %v; want 0, a broken pipe", n, err)
	}
	for range 2 {
		n, err := c.Write([]byte(`{"b":2}`))
		if n != 0 || !errors.Is(err, ErrStdinFailed) || !errors.Is(err, syscall.EPIPE) {
			t.Errorf("a later write: %d, %v; want 0, ErrStdinFailed", n, err)
		}
	}
	select {
	case <-c.Exited():
		t.Error("the child has ended before its Close")
	default:
	}
}

func TestAWriteAfterCloseSendsNothing(t *testing.T) {
	c := start(t, play("echo"))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := c.Write([]byte(`{"c":3}`))
	if n != 0 || !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), "being ended") {
		t.Errorf("wrote %d, %v; want 0, os.ErrClosed", n, err)
	}
}

func TestCloseReleasesTheWritesThatWait(t *testing.T) {
	c := start(t, play("deaf"))
	expect(t, c, `{"ready":true}`)
	type result struct {
		n   int
		err error
	}
	frame := []byte(`"` + strings.Repeat("x", 4<<20) + `"`)
	const writers = 3
	results := make(chan result, writers)
	for range writers {
		go func() {
			n, err := c.Write(frame)
			results <- result{n, err}
		}()
	}
	for c.writing.TryLock() { // until one has begun
		c.writing.Unlock()
		select {
		case r := <-results:
			t.Fatalf("a write ended before Close: %+v", r)
		default:
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	begun := 0
	for range writers {
		r := <-results
		if !errors.Is(r.err, os.ErrClosed) || r.n >= len(frame) {
			t.Errorf("wrote %d, %v; want os.ErrClosed", r.n, r.err)
		}
		if r.n > 0 {
			begun++
		}
	}
	if begun > 1 {
		t.Errorf("%d writes sent something, want one at most", begun)
	}
}
