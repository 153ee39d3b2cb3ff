package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// maxFile bounds what is read of a token's file.
	maxFile = 64 << 10
	// secondLook is after how long a file whose token was refused is read again before that is final. Who replaces it and who
	// takes the old token out of use are seldom the same, and so do it one after the other.
	secondLook = 200 * time.Millisecond
)

// A file is a source of tokens.
type file struct {
	path string

	text string // what was last read; for fetch, of which one runs at a time

	mu   sync.Mutex  // guards seen
	seen fs.FileInfo // of the file as it was last read; nil is that there was none
}

// moved reports whether the file is another than the one that was read, or has been written since.
func (f *file) moved() bool {
	now, err := os.Stat(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || f.seen == nil {
		return (err == nil) != (f.seen != nil)
	}
	return !os.SameFile(now, f.seen) || now.Size() != f.seen.Size() || !now.ModTime().Equal(f.seen.ModTime())
}

// fetch reads the file, and once more a moment later where it still holds the token that was refused, or none: who writes it in
// place empties it first.
func (f *file) fetch(ctx context.Context, refused bool) (fetched, error) {
	before := f.text
	text, err := f.read()
	if refused && (err != nil || text == before) {
		timer := time.NewTimer(secondLook)
		defer timer.Stop()
		select {
		case <-timer.C:
			text, err = f.read()
		case <-ctx.Done():
			return fetched{}, ended(ctx)
		}
	}
	return fetched{text: text}, err
}

// read takes the whole file but for one newline at its end.
func (f *file) read() (string, error) {
	info, err := os.Stat(f.path)
	var text []byte
	switch {
	case err != nil:
		info = nil
		err = fmt.Errorf("reading the token of credential.bearer: %w; put the file there, or let this user read it", err)
	case !info.Mode().IsRegular(): // opening a pipe would wait for its writer
		err = fmt.Errorf("reading the token of credential.bearer: %s is no regular file", f.path)
	default:
		text, err = readRegular(f.path)
	}
	f.mu.Lock()
	f.seen = info
	f.mu.Unlock()
	if err != nil {
		return "", err
	}
	token := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if token == "" {
		return "", fmt.Errorf("reading the token of credential.bearer: %s is empty", f.path)
	}
	f.text = token
	return token, nil
}

// readRegular comes after the look at the file, so that a write in between shows at the next.
func readRegular(path string) ([]byte, error) {
	opened, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the token of credential.bearer: %w; let this user read it", err)
	}
	defer opened.Close()
	text, err := io.ReadAll(io.LimitReader(opened, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the token of credential.bearer: %w", err)
	case len(text) > maxFile:
		return nil, errors.New("reading the token of credential.bearer: the file is over 64 KiB, which is no token")
	}
	return text, nil
}
