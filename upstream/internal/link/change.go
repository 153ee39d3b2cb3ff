package link

import (
	"sync/atomic"
	"time"
)

// quiet is the least time between two counts of one kind of change.
const quiet = time.Second

// A Change is a kind of what a server tells that has changed.
type Change uint8

// The kinds, one for each counter of upstream.Changes.
const (
	Tools Change = iota
	Prompts
	Resources
	Updated
	kinds
)

// changes paces the notices of a server, each kind on its own.
type changes struct {
	told   [kinds]atomic.Bool // since due was last asked
	notice chan struct{}      // capacity 1; told has something

	// Only serve touches these.
	owed    [kinds]bool
	earlier [kinds]time.Time // when a kind was last counted
}

// Changed says that the server told of a change: Status.Changes counts it at once, or, within a second of the count of its kind
// before, together with all others of that second at its end. It never waits.
func (l *Link[S]) Changed(kind Change) {
	l.changes.told[kind].Store(true)
	select {
	case l.changes.notice <- struct{}{}:
	default:
	}
}

// due takes the kinds that are to be counted now.
func (c *changes) due(now time.Time) (which [kinds]bool) {
	for kind := range kinds {
		if c.told[kind].Swap(false) {
			c.owed[kind] = true
		}
		if c.owed[kind] && now.Sub(c.earlier[kind]) >= quiet {
			c.owed[kind], c.earlier[kind], which[kind] = false, now, true
		}
	}
	return which
}

// next is when the first of those that are owed is due, zero where none is.
func (c *changes) next() (at time.Time) {
	for kind, owed := range c.owed {
		if due := c.earlier[kind].Add(quiet); owed && (at.IsZero() || due.Before(at)) {
			at = due
		}
	}
	return at
}

// count adds one for each of the kinds.
func (l *Link[S]) count(which [kinds]bool) {
	if which == ([kinds]bool{}) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	of := &l.status.Changes
	for kind, counter := range [kinds]*uint64{&of.Tools, &of.Prompts, &of.Resources, &of.Updated} {
		if which[kind] {
			*counter++
		}
	}
	l.tell()
}
