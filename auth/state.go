package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"mcp-gateway/redact"
)

// lockPause is between attempts to have the lock that another holds.
const lockPause = 50 * time.Millisecond

// A refresh is the refresh token of one grant: the configured one, or the last that the server has put in its place. That is
// kept in a file, which all who were configured alike share, in this process and others on the machine.
type refresh struct {
	c     *Credential
	path  string        // "" keeps nothing
	token redact.Secret // the newest that is known
	file  string        // what the file held when it was last read or written; "" is nothing
	lone  bool          // it was told that nothing is kept
}

func newRefresh(c *Credential, cfg OAuth2) *refresh {
	r := &refresh{c: c, token: cfg.RefreshToken}
	if c.cfg.StateDir != "" {
		sum := sha256.New()
		for _, part := range []string{cfg.TokenURL.Reveal(), cfg.ClientID, cfg.RefreshToken.Reveal()} {
			fmt.Fprintf(sum, "%d %s\n", len(part), part) // no two of them make a third
		}
		r.path = filepath.Join(c.cfg.StateDir, "refresh-"+hex.EncodeToString(sum.Sum(nil)[:16]))
	}
	return r
}

// lock waits for whoever else is exchanging this token, since a server may take its second use for theft. Where nothing can
// be kept there is nobody else to know of.
func (r *refresh) lock(ctx context.Context) (unlock func(), err error) {
	if r.path == "" || os.MkdirAll(r.c.cfg.StateDir, 0o700) != nil {
		return func() {}, nil
	}
	f, err := os.OpenFile(r.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return func() {}, nil
	}
	unlock = func() { _ = f.Close() } // which ends the lock
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			unlock()
			return nil, errors.New("refreshing the token: another process that uses the same state_dir has not finished doing so")
		}
		if taken := tryLock(f); taken {
			return unlock, nil
		}
		timer.Reset(lockPause)
	}
}

// current is the token to use. Another's that is newer counts.
func (r *refresh) current() (redact.Secret, error) {
	kept, err := r.kept()
	if err != nil {
		return redact.Secret{}, fmt.Errorf("reading the refresh token kept in state_dir: %w; let this user read it, or delete it and configure a new one", err)
	}
	if kept != "" && kept != r.file {
		r.file, r.token = kept, redact.NewSecret(kept)
		r.c.tell(r.token)
	}
	return r.token, nil
}

// kept is what the file holds. An older token in place of one that cannot be read would be used a second time.
func (r *refresh) kept() (string, error) {
	if r.path == "" {
		return "", nil
	}
	info, err := os.Stat(r.path)
	if err != nil {
		return "", nil // nothing was kept there by this user
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file", r.path)
	}
	f, err := os.Open(r.path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && (len(text) == 0 || len(text) > maxFile) {
		err = fmt.Errorf("%s holds no refresh token", r.path)
	}
	return string(text), err
}

// rotated takes the token that the server gave with an access token, and has it on disk before that is used.
func (r *refresh) rotated(text string) {
	if text == r.token.Reveal() {
		return
	}
	r.token = redact.NewSecret(text)
	r.c.tell(r.token)
	if r.path == "" {
		if !r.lone {
			r.lone = true
			r.c.cfg.Log.Warn("the refresh token was changed by the server and there is no state_dir to keep it in: the next start needs a new one")
		}
		return
	}
	if err := keep(r.path, text); err != nil {
		r.c.cfg.Log.Warn("the refresh token was changed by the server and could not be kept: unless state_dir becomes writable, the next start needs a new one", "error", err)
		return
	}
	r.file = text
}

// keep puts text at path, whole and on disk.
func keep(path, text string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.new") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}
