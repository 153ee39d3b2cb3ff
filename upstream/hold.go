package upstream

import "sync"

// A Hold keeps what a large reply takes of its upstream's share for as long as the reply is on its way to the client. The zero
// Hold has nothing. It is safe for concurrent use.
type Hold struct {
	mu       sync.Mutex // guards all below
	released bool
	shares   []func()
}

// Keep has giveBack called by Release; at once where that has been, or h is nil.
func (h *Hold) Keep(giveBack func()) {
	if h == nil {
		giveBack()
		return
	}
	h.mu.Lock()
	late := h.released
	if !late {
		h.shares = append(h.shares, giveBack)
	}
	h.mu.Unlock()
	if late {
		giveBack()
	}
}

// Lend is Keep for what somebody may still read where Release has been: then, and where h is nil, it is never given back.
func (h *Hold) Lend(giveBack func()) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.released {
		h.shares = append(h.shares, giveBack)
	}
}

// Release gives back what was kept. It may be called again, and with a nil h.
func (h *Hold) Release() {
	if h == nil {
		return
	}
	h.mu.Lock()
	shares := h.shares
	h.released, h.shares = true, nil
	h.mu.Unlock()
	for _, giveBack := range shares {
		giveBack()
	}
}
