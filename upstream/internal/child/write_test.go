package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestAWriteThatIsStuckEndsTheChild(t *testing.T) {
	c := start(t, play("deaf"))
	expect(t, c, `{"ready":true}`)
	c.patience = 50 * time.Millisecond
	frame := []byte(`"` + strings.Repeat("x", 4<<20) + `"`)
	n, err := c.Write(frame)
	if n == 0 || n >= len(frame) || err == nil || !strings.Contains(err.Error(), "has not read its stdin for 50ms") {
		t.Errorf("wrote %d, %v", n, err)
	}
	if n, err := c.Write([]byte(`{"b":2}`)); n != 0 || !errors.Is(err, ErrStdinFailed) {
		t.Errorf("a later write: %d, %v; want 0, ErrStdinFailed", n, err)
	}
	expectEnd(t, c) // no Close has been called
	<-c.Exited()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if c.Exit() != "signal: killed" {
		t.Errorf("exit %q", c.Exit())
	}
}

// A server may take its time for a large frame, as long as it goes on reading.
func TestAWriteIsStuckOnlyWhereNothingIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 4
		r, w := io.Pipe()
		stuck := idle()
		written := make(chan int)
		go func() {
			n, _ := send(w, make([]byte, (pieces+1)*pipeful), stuck, time.Minute)
			written <- n
		}()
		for range pieces {
			<-time.After(time.Minute - 1)
			if _, err := io.ReadFull(r, make([]byte, pipeful)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		select {
		case <-stuck.C:
			t.Fatal("a write that goes on counts as stuck")
		default:
		}
		began := time.Now()
		if <-stuck.C; time.Since(began) != time.Minute {
			t.Errorf("stuck after %v", time.Since(began))
		}
		r.Close()
		if n := <-written; n != pieces*pipeful {
			t.Errorf("%d bytes are said to be sent, want %d", n, pieces*pipeful)
		}
	})
}

func TestAWriteThatIsThroughIsNotStuckLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := idle()
		if n, err := send(io.Discard, make([]byte, pipeful+1), stuck, time.Minute); n != pipeful+1 || err != nil {
			t.Errorf("sent %d, %v", n, err)
		}
		select {
		case <-stuck.C:
			t.Error("the wait goes on after the write")
		case <-time.After(time.Hour):
		}
	})
}

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
