package auth

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// lookInterval is how often a file is looked at for who waits for a change.
const lookInterval = 2 * time.Second

// A flight is one run of the source, shared by all who need what it brings.
type flight struct {
	before  *token // that there was when it began; nil is none
	refused bool   // the server did not take it
	began   time.Time
	done    chan struct{}
	err     error // after done
}

// landed is the flight of who comes when it is over.
var landed = func() *flight {
	f := &flight{done: make(chan struct{})}
	close(f.done)
	return f
}()

// await gives the token that comes after t.
func (c *Credential) await(ctx context.Context, t *token) (*token, error) {
	f, _, err := c.begin(t, false)
	if err != nil {
		return nil, err
	}
	if err := c.wait(ctx, f); err != nil {
		return nil, err
	}
	if f.err != nil {
		return nil, f.err
	}
	return c.current.Load(), nil
}

// wait waits for f, within ctx.
func (c *Credential) wait(ctx context.Context, f *flight) error {
	select {
	case <-f.done:
		return nil
	default:
	}
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	case <-c.life.Done():
		return ErrClosed
	}
}

// begin gives the flight that looks for what comes after t: the running one, or one that begins now, and mine says that; or one
// that is over, where there is another than t already.
func (c *Credential) begin(t *token, refused bool) (f *flight, mine bool, err error) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.current.Load() != t:
		return landed, false, nil
	case c.flight != nil:
		return c.flight, false, nil
	case c.closed:
		return nil, false, ErrClosed
	case now.Before(c.pause):
		return nil, false, cmp.Or(c.failed, errBarren)
	}
	f = &flight{before: t, refused: refused, began: now, done: make(chan struct{})}
	c.flight = f
	c.running.Go(func() { c.fly(f) })
	return f, true, nil
}

// fly runs the source and makes known what it brought.
func (c *Credential) fly(f *flight) {
	ctx, cancel := context.WithTimeout(c.life, fetchWait)
	defer cancel()
	got, err := c.fetch(ctx, f.refused)
	if err == nil {
		err = checkToken(got.text)
	}
	var next *token
	newer := false
	switch {
	case err == nil:
		next = c.newToken(got, f.began)
		if newer = f.before == nil || f.before.number != next.number; newer {
			c.tell(next.secret)
		}
	case c.life.Err() != nil:
		err = ErrClosed
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if next != nil {
		c.current.Store(next)
	}
	if newer {
		close(c.changed)
		c.changed, c.watching = make(chan struct{}), false
		if f.before != nil {
			c.refreshes++
		}
	}
	c.judge(f, err)
	f.err = err
	c.flight = nil
	close(f.done)
}

// judge notes how the source did, and spaces out the runs of one that brings nothing good, for the sake of who is asked. A
// file bears any number. mu is held.
func (c *Credential) judge(f *flight, err error) {
	if err != nil && c.failed == nil && c.life.Err() == nil {
		c.cfg.Log.Warn("the credential of the upstream could not be renewed", "error", err)
	}
	c.failed = err
	if err != nil {
		c.failures++
	}
	now := time.Now()
	switch {
	case c.moved != nil:
		return
	case err == nil && !(f.refused && now.Sub(f.before.began) < proven):
		c.barren = 0
		return
	}
	if c.barren++; c.barren >= patience {
		c.pause = now.Add(min(time.Second<<min(c.barren-patience, 10), mostPause))
	}
}

// watch looks at the file until its token changes, which closes changed.
func (c *Credential) watch(changed <-chan struct{}) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		if c.moved() {
			_, _, _ = c.begin(c.current.Load(), false) // what comes of it is told by changed
		}
		select {
		case <-ticker.C:
		case <-changed:
			return
		case <-c.life.Done():
			return
		}
	}
}

// checkToken refuses what cannot be a token (RFC 6750, section 2.1) without a word of it.
func checkToken(text string) error {
	switch {
	case text == "":
		return errors.New("the source gave an empty token")
	case len(text) > maxToken:
		return errors.New("the source gave a token of over 16 KiB, which no header has room for")
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return errors.New("the source gave a token with white space, control or non-ASCII characters, which has none")
		}
	}
	return nil
}
