// Package catalog knows which tools every upstream has, and merges them into the one list that clients see.
//
// One loop per upstream watches its status, drains its list, and publishes the listing if the session that it was asked on
// is still the live one. A published listing stays through a reconnect and leaves with an upstream that has given up.
// Readers take a [View]: immutable, in config order, never waiting for a slow upstream.
// Start with [New]; loop.go is the life of one upstream, view.go the merging, wait.go what requests wait for.
package catalog

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

// A Source is one upstream as the configuration names it.
type Source struct {
	ID, Prefix string
	Upstream   upstream.Upstream
	OverHTTP   bool          // its invalid x-mcp-header makes a tool invalid, as its clients would judge
	Verbatim   bool          // its definitions pass as they are, without Config.Redact
	Timeout    time.Duration // of one whole listing
	Poll       time.Duration // between a listing and the next, for a server that tells no changes; 0 is never
}

// A Config is what a catalog needs.
type Config struct {
	Sources    []Source // in the order of the list
	Policy     *policy.Policy
	ServerInfo []byte // JSON text, for the _meta of every list
	Log        *slog.Logger
	Changed    func(Report) // called from the upstreams' loops whenever an upstream's report differs; may be nil

	// Redact takes out of a tool's definition what no client may read. ok is false where a name holds it: such a tool is left
	// out. Nil takes out nothing.
	Redact func(definition []byte) (clean []byte, ok bool)
	// Secrets has another value whenever Redact has other things to take out. What was judged before is judged again before
	// it is served. Nil is always the same.
	Secrets func() uint64

	// Before is the catalog that this one is to replace, nil for the first. What it has listed of an upstream that is the same in both
	// stays listed, under another prefix or other rules as well, and who listens to it listens to this one. Of an upstream that another
	// engine serves it stays until that one has listed or given up.
	Before *Catalog
}

// A Report says what an upstream contributes, for a person.
type Report struct {
	ID, Prefix    string
	State         upstream.State
	Revision      string
	Listed        bool
	Shown, Denied int
	Invalid       int    // tools left out because they cannot be offered
	Reason        string // why nothing is listed, from a closed list; "" where something is
	Err           error  // what is behind it, for the log and the terminal
}

// A Catalog keeps the tools of all upstreams. It is safe for concurrent use.
type Catalog struct {
	cfg     Config
	view    atomic.Pointer[View]
	hub     *hub
	sources []*source
	ctx     context.Context // of the loops; ends with Close
	stop    context.CancelFunc
	loops   sync.WaitGroup

	// mu guards the sources and serialises the making of views: each takes in exactly one change, so that an older one never
	// replaces a newer and every difference is noticed once.
	mu     sync.Mutex
	served bool     // clients see this one, not a catalog before or after it
	heir   *Catalog // that clients see in the place of this one
}

// New builds a catalog; Start begins to fill it.
func New(cfg Config) *Catalog {
	if cfg.Redact == nil {
		cfg.Redact = func(definition []byte) ([]byte, bool) { return definition, true }
	}
	if cfg.Secrets == nil {
		cfg.Secrets = func() uint64 { return 0 }
	}
	c := &Catalog{cfg: cfg}
	c.ctx, c.stop = context.WithCancel(context.Background())
	for _, s := range cfg.Sources {
		c.sources = append(c.sources, newSource(s))
	}
	c.view.Store(&View{})
	if before := cfg.Before; before != nil {
		c.hub = before.hub
		c.adopt(before)
	} else {
		c.hub, c.served = newHub(), true
	}
	c.rebuild()
	return c
}

// Start begins one loop for each upstream. They end with Close.
func (c *Catalog) Start() {
	for _, s := range c.sources {
		c.loops.Go(func() { c.follow(s) })
	}
}

// Close ends the loops, the listings in flight and whatever waits for them, and returns when nothing of it runs. The last view
// stays. It is idempotent.
func (c *Catalog) Close() {
	c.stop()
	c.loops.Wait()
}

// View is what the catalog holds now.
func (c *Catalog) View() *View { return c.view.Load() }

func (c *Catalog) source(id string) *source {
	for _, s := range c.sources {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// take changes a source, brings the view up to date, and only then tells the listeners and wakes who waits: they read the
// view. Of a silent change the listeners have been told before.
func (c *Catalog) take(s *source, change func() (silent bool)) {
	c.mu.Lock()
	silent := change()
	if c.rebuild() && !silent {
		c.notify()
	}
	s.wake()
	report, news := c.report(s)
	c.mu.Unlock()
	if news && c.cfg.Changed != nil {
		c.cfg.Changed(report)
	}
}

// report is what the upstream contributes, and whether that has changed. c.mu must be held.
func (c *Catalog) report(s *source) (r Report, news bool) {
	r = s.report()
	// What is on its way is news to nobody, and no change either: the next attempt may end as the last one did.
	if r.State == upstream.Connecting || r.Reason == reasonListing || r.State == upstream.Live && s.borrowed && !s.failed {
		return r, false
	}
	same := r.State == s.last.State && r.Revision == s.last.Revision && r.Shown == s.last.Shown && r.Denied == s.last.Denied &&
		r.Invalid == s.last.Invalid && r.Reason == s.last.Reason
	s.last = r
	return r, !same
}

// Reports are what the upstreams contribute now, in the order of the list.
func (c *Catalog) Reports() []Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	reports := make([]Report, len(c.sources))
	for i, s := range c.sources {
		reports[i] = s.report()
	}
	return reports
}

// report is what the source contributes. Catalog.mu must be held.
func (s *source) report() Report {
	r := Report{ID: s.ID, Prefix: s.Prefix, State: s.state, Err: s.err, Listed: s.listing != nil}
	if l := s.listing; l != nil {
		r.Revision, r.Invalid, r.Shown, r.Denied = l.revision, l.invalid+l.withheld, len(l.shown), len(l.tools)-len(l.shown)
	} else {
		r.Reason = s.absence()
	}
	return r
}
