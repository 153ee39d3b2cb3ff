// Package catalog knows which tools every upstream has, and merges them into the one list that clients see.
//
// One loop per upstream waits for its status, drains its list, and publishes the listing if the session that
// it was asked on is still the live one. A published listing stays through a reconnect and leaves with an upstream that
// has given up. Readers take a [View]: immutable, in config order, never waiting for a slow upstream.
// Start with [New]; loop.go is the life of one upstream, view.go the merging.
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
	Timeout    time.Duration // of one whole listing
}

// A Config is what a catalog needs.
type Config struct {
	Sources    []Source // in the order of the list
	Policy     *policy.Policy
	ServerInfo []byte // JSON text, for the _meta of every list
	Log        *slog.Logger
	Changed    func(Report) // called from the upstreams' loops whenever an upstream's report differs; may be nil
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
	sources []*source
	stop    context.CancelFunc
	loops   sync.WaitGroup

	mu sync.Mutex // serialises the making of views, so that an older one never replaces a newer
}

// New builds a catalog; Start begins to fill it.
func New(cfg Config) *Catalog {
	c := &Catalog{cfg: cfg, stop: func() {}}
	for _, s := range cfg.Sources {
		c.sources = append(c.sources, newSource(s))
	}
	c.rebuild()
	return c
}

// Start begins one loop for each upstream. They end with Close.
func (c *Catalog) Start() {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	for _, s := range c.sources {
		c.loops.Go(func() { c.follow(ctx, s) })
	}
}

// Close ends the loops and the listings in flight, and waits for them.
func (c *Catalog) Close() {
	c.stop()
	c.loops.Wait()
}

// View is what the catalog holds now.
func (c *Catalog) View() *View { return c.view.Load() }

// Settled waits until every upstream has listed or failed once, or ctx ends.
func (c *Catalog) Settled(ctx context.Context) {
	for _, s := range c.sources {
		select {
		case <-s.settled:
		case <-ctx.Done():
			return
		}
	}
}

// Await waits until the upstream has a listing, as long as it is on the way to one: until ctx ends, or the
// upstream's connect or listing has failed.
func (c *Catalog) Await(ctx context.Context, id string) {
	s := c.source(id)
	for s != nil {
		onTheWay, attempted := s.progress()
		if !onTheWay || c.View().Listed(id) {
			return
		}
		select {
		case <-attempted:
		case <-ctx.Done():
			return
		}
	}
}

// Relist asks the upstream's loop for a fresh listing and waits for it, or for ctx. It does nothing where the last one
// that was asked for began less than relistInterval ago.
func (c *Catalog) Relist(ctx context.Context, id string) {
	s := c.source(id)
	if s == nil {
		return
	}
	listed, ok := s.ask()
	if !ok {
		return
	}
	select {
	case <-listed:
	case <-ctx.Done():
	}
}

func (c *Catalog) source(id string) *source {
	for _, s := range c.sources {
		if s.ID == id {
			return s
		}
	}
	return nil
}
