package auth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// tokenFile is a file that holds text.
func tokenFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	write(t, path, text)
	return path
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replace puts text at path as a mounted secret is replaced, by another file in its place.
func replace(t testing.TB, path, text string) {
	t.Helper()
	next := filepath.Join(t.TempDir(), "next")
	write(t, next, text)
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsReadAgainWhenItChanges(t *testing.T) {
	var w witness
	path := tokenFile(t, "planted-1\n")
	c := newCredential(t, witnessed(&w, Config{BearerFile: path}))
	expect(t, c, "planted-1")
	replace(t, path, "planted-2\r\n") // of another inode and size
	expect(t, c, "planted-2")
	write(t, path, "planted-3 is longer") // no token
	expect(t, c, "planted-2")
	write(t, path, "")
	expect(t, c, "planted-2")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect(t, c, "planted-2")
	write(t, path, "planted-4")
	expect(t, c, "planted-4")
	old := time.Now().Add(-time.Hour)
	write(t, path, "planted-5")
	if err := os.Chtimes(path, old, old); err != nil { // of the same inode and size
		t.Fatal(err)
	}
	expect(t, c, "planted-5")
	for _, text := range []string{"planted-1", "planted-2", "planted-4", "planted-5"} {
		if !w.knows(text) {
			t.Errorf("nobody was told of %s", text)
		}
	}
	if strings.Contains(w.logged(), "planted") {
		t.Errorf("a token is on record:\n%s", w.logged())
	}
}

func TestAnUnchangedFileIsNotReadAgain(t *testing.T) {
	path := tokenFile(t, "planted-1")
	c := newCredential(t, Config{BearerFile: path})
	number := expect(t, c, "planted-1")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "planted-2") // so soon after, or by a clock that stands, nothing tells of it
	if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	expect(t, c, "planted-1")
	if err := c.Refresh(t.Context(), number); err != nil { // but its refusal
		t.Fatal(err)
	}
	expect(t, c, "planted-2")
}

func TestARefusedTokenOfAFile(t *testing.T) {
	path := tokenFile(t, "planted-1")
	c := newCredential(t, Config{BearerFile: path})
	number := expect(t, c, "planted-1")
	err := c.Refresh(t.Context(), number)
	if !errors.Is(err, ErrNothingNewer) || !strings.Contains(err.Error(), "replace it") || strings.Contains(err.Error(), "planted") {
		t.Errorf("error is %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := c.Refresh(t.Context(), number); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v, want that there is no file", err)
	}
}

// Who replaces a token may take the old one out of use first.
func TestAFileThatIsReplacedAfterTheRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := tokenFile(t, "planted-1")
		c := newCredential(t, Config{BearerFile: path})
		number := expect(t, c, "planted-1")
		done := make(chan error)
		go func() { done <- c.Refresh(t.Context(), number) }()
		synctest.Wait()
		replace(t, path, "planted-2")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		expect(t, c, "planted-2")
	})
}

func TestFilesThatHoldNoToken(t *testing.T) {
	for _, row := range []struct {
		name, text, want string
	}{
		{"empty", "", "is empty"},
		{"newline", "\n", "is empty"},
		{"two lines", "planted\nplanted\n", "white space"},
		{"large", strings.Repeat("planted", maxFile), "over 64 KiB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCredential(t, Config{BearerFile: tokenFile(t, row.text)})
			if _, _, err := sign(t.Context(), c); err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "plantedp") {
				t.Errorf("error is %v, want %q", err, row.want)
			}
		})
	}
	dir := newCredential(t, Config{BearerFile: t.TempDir()})
	if _, _, err := sign(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a directory: %v", err)
	}
	path := filepath.Join(t.TempDir(), "later")
	c := newCredential(t, Config{BearerFile: path})
	if _, _, err := sign(t.Context(), c); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	write(t, path, "planted")
	expect(t, c, "planted")
}

// Each of inode, size and time is enough.
func TestWhatTellsThatAFileHasChanged(t *testing.T) {
	path := tokenFile(t, "planted-1")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stopped := func() {
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	c := newCredential(t, Config{BearerFile: path})
	expect(t, c, "planted-1")
	replace(t, path, "planted-2")
	stopped()
	expect(t, c, "planted-2")
	write(t, path, "planted-30")
	stopped()
	expect(t, c, "planted-30")
}

func TestAFileThatIsGoneIsAskedForOnce(t *testing.T) {
	path := tokenFile(t, "planted-1")
	c := newCredential(t, Config{BearerFile: path})
	expect(t, c, "planted-1")
	var reads atomic.Int64
	fetch := c.fetch
	c.fetch = func(ctx context.Context, refused bool) (fetched, error) {
		reads.Add(1)
		return fetch(ctx, refused)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		expect(t, c, "planted-1")
	}
	if n := reads.Load(); n != 1 {
		t.Errorf("read %d times, want 1", n)
	}
}

func TestOnlyARefusalLooksTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := tokenFile(t, "planted-1")
		c := New(Config{BearerFile: path})
		number := expect(t, c, "planted-1")
		began := time.Now()
		if err := os.Chtimes(path, began, began); err != nil {
			t.Fatal(err)
		}
		expect(t, c, "planted-1")
		if took := time.Since(began); took != 0 {
			t.Errorf("a file that was only touched took %v", took)
		}
		waits := make(chan error, 1)
		go func() { waits <- c.Refresh(t.Context(), number) }()
		synctest.Wait()
		if err := c.Close(); err != nil || time.Since(began) != 0 {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
		closedError(t, <-waits)
	})
}

func TestChangedSeesAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := tokenFile(t, "planted-1")
		c := newCredential(t, Config{BearerFile: path})
		expect(t, c, "planted-1")
		var looks atomic.Int64
		moved := c.moved
		c.moved = func() bool {
			looks.Add(1)
			return moved()
		}
		for _, text := range []string{"planted-2", "planted-30"} {
			looks.Store(0)
			changed := c.Changed()
			if c.Changed() != changed {
				t.Fatal("two that wait for the same wait for two things")
			}
			<-time.After(time.Minute)
			if n := looks.Load(); n > int64(time.Minute/lookInterval)+1 {
				t.Errorf("looked at %d times in a minute", n)
			}
			select {
			case <-changed:
				t.Fatal("it has changed")
			default:
			}
			replace(t, path, text)
			began := time.Now()
			<-changed // nobody signs meanwhile
			if took := time.Since(began); took > lookInterval {
				t.Errorf("seen after %v", took)
			}
			expect(t, c, text)
		}
		c.Changed()
	}) // which fails where Close leaves the look-out running
}
