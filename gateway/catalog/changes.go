package catalog

import (
	"sync"
	"sync/atomic"
)

// A hub counts what has been told of changes. It outlives a catalog that is replaced, and so do those who listen.
type hub struct {
	mu  sync.Mutex // serialises the counting
	now atomic.Pointer[notices]

	attempts atomic.Uint64 // at listing that all the catalogs have begun
}

// notices is a count of what has been told of changes, until the next.
type notices struct {
	count uint64
	next  chan struct{} // closed at the next notice
}

func newHub() *hub {
	h := &hub{}
	h.now.Store(&notices{next: make(chan struct{})})
	return h
}

func (h *hub) notify() {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.now.Load()
	h.now.Store(&notices{count: before.count + 1, next: make(chan struct{})})
	close(before.next)
}

// Changes counts the notices that the tools which caller sees have changed, and gives a channel that is closed at the next. A
// notice of an upstream's own counts at once, before its tools are listed again; whatever else leads to a fresh listing counts
// only if the list of tools differs. How often a client is told is the listener's to bound. The rules know no callers yet:
// every caller has the same notices.
func (c *Catalog) Changes(_ string) (uint64, <-chan struct{}) {
	n := c.hub.now.Load()
	return n.count, n.next
}

// notify counts a notice, once the catalog is the one that is served. c.mu must be held.
func (c *Catalog) notify() {
	if c.served {
		c.hub.notify()
	}
}
