package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mcp-gateway/internal/backoff"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

const (
	relistInterval = 5 * time.Second
	maxPages       = 100
	maxTools       = 100_000
	maxListing     = 32 << 20 // bytes of one upstream's definitions
)

// retry paces a listing that failed on a live session.
func retry() *backoff.Backoff {
	return &backoff.Backoff{Min: 500 * time.Millisecond, Max: 30 * time.Second}
}

// A source is one upstream's place in the catalog. Only its loop writes it.
type source struct {
	Source
	settled chan struct{}      // closed when it has listed or failed once
	request chan chan struct{} // holds one wish for a fresh listing, to be closed after it

	mu        sync.Mutex // guards all below
	listing   *listing
	state     upstream.State
	err       error
	failed    bool          // the last attempt to list or connect
	attempted chan struct{} // closed and replaced whenever an attempt or a state has ended
	asked     time.Time
	last      Report
	once      sync.Once
}

func newSource(s Source) *source {
	return &source{Source: s, settled: make(chan struct{}), request: make(chan chan struct{}, 1),
		attempted: make(chan struct{}), state: upstream.Connecting}
}

func (s *source) settle() { s.once.Do(func() { close(s.settled) }) }

// progress reports whether a listing can still come of what runs, and gives a channel that is closed when the view has taken in the
// next step.
func (s *source) progress() (onTheWay bool, attempted <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	onTheWay = s.state == upstream.Connecting || s.state == upstream.Live
	return onTheWay && !s.failed, s.attempted
}

func (s *source) ask() (<-chan struct{}, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != upstream.Live || time.Since(s.asked) < relistInterval {
		return nil, false
	}
	s.asked = time.Now()
	listed := make(chan struct{})
	select {
	case s.request <- listed:
		return listed, true
	default:
		return nil, false
	}
}

// take changes the source, brings the view up to date, and only then wakes who waits: they read the view.
func (c *Catalog) take(s *source, change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	c.rebuild()
	s.mu.Lock()
	close(s.attempted)
	s.attempted = make(chan struct{})
	s.mu.Unlock()
	c.report(s)
}

// follow is the life of one upstream in the catalog.
func (c *Catalog) follow(ctx context.Context, s *source) {
	var (
		session, changes uint64 // of the last listing
		again            <-chan time.Time
		pace             = retry()
		wish             = func() {} // tells who asked for a fresh listing that it has ended
	)
	defer func() { wish() }()
	for ctx.Err() == nil {
		status, changed := s.Upstream.Status()
		c.note(s, status)
		due := status.State == upstream.Live && (status.Session != session || status.Changes.Tools != changes)
		if due && again == nil {
			if c.list(ctx, s, status) {
				session, changes = status.Session, status.Changes.Tools
				pace = retry()
			} else {
				again = time.After(pace.Next())
			}
			wish()
			wish = func() {}
			continue
		}
		select {
		case <-changed:
			again = nil
		case <-again:
			again = nil
		case listed := <-s.request:
			session, again = 0, nil
			wish = sync.OnceFunc(func() { close(listed) })
		case <-ctx.Done():
		}
	}
}

// note takes in a status. What has given up for good contributes nothing any more.
func (c *Catalog) note(s *source, status upstream.Status) {
	s.mu.Lock()
	before, had := s.state, s.listing != nil
	s.mu.Unlock()
	gone := false
	switch status.State {
	case upstream.Verdict, upstream.Held, upstream.Closing, upstream.Closed:
		gone = true
	}
	if before == status.State && !(gone && had) {
		return
	}
	c.take(s, func() {
		s.state, s.err = status.State, status.Err
		if gone {
			s.listing = nil
		}
		if status.State != upstream.Live {
			s.failed = status.State != upstream.Connecting
		} else {
			s.failed = false
		}
	})
	if gone || status.State == upstream.Backoff {
		s.settle()
	}
}

// list drains the upstream's list and publishes it if its session is still the live one.
func (c *Catalog) list(ctx context.Context, s *source, asked upstream.Status) bool {
	listing, err := c.drain(ctx, s)
	now, _ := s.Upstream.Status()
	if err == nil && (now.State != upstream.Live || now.Session != asked.Session) {
		err = errors.New("the session ended while its tools were listed")
	}
	if ctx.Err() != nil {
		return false
	}
	if err == nil {
		c.logLeftOut(s, listing)
	}
	c.take(s, func() {
		s.failed, s.err = err != nil, err
		if err == nil {
			listing.revision = asked.Revision
			s.listing = listing
		}
	})
	if err != nil {
		c.cfg.Log.Warn("could not list the tools of an upstream; trying again", "upstream", s.ID, "error", err)
	}
	s.settle()
	return err == nil
}

// logLeftOut names the tools that cannot be offered, each once for as long as it stays so.
func (c *Catalog) logLeftOut(s *source, now *listing) {
	s.mu.Lock()
	before := s.listing
	s.mu.Unlock()
	for name, err := range now.leftOut {
		if before == nil || before.leftOut[name] == nil {
			c.cfg.Log.Warn("left out a tool that cannot be offered", "upstream", s.ID, "tool", name, "error", err)
		}
	}
}

// drain reads all pages, or none.
func (c *Catalog) drain(ctx context.Context, s *source) (*listing, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	out := newListing()
	seen := map[string]bool{}
	var cursor []byte
	for range maxPages {
		resp, err := s.Upstream.Call(ctx, &upstream.Request{Method: mcp.MethodToolsList, Params: cursorParams(cursor)})
		if err != nil {
			if e, ok := errors.AsType[*wire.Error](err); ok && e.Code == wire.CodeMethodNotFound {
				return out, nil // a server without tools is healthy
			}
			return nil, fmt.Errorf("listing the tools of %q: %w", s.ID, err)
		}
		if err := c.addPage(s, out, resp); err != nil {
			return nil, fmt.Errorf("listing the tools of %q: %w", s.ID, err)
		}
		next, ok := resp.Result.Value("nextCursor")
		if !ok || string(next) == "null" {
			return out, nil
		}
		if next[0] != '"' || seen[string(next)] {
			return nil, fmt.Errorf("listing the tools of %q: the server repeats a cursor, or gives one that is no string", s.ID)
		}
		seen[string(next)] = true
		cursor = next
	}
	return nil, fmt.Errorf("listing the tools of %q: more than %d pages", s.ID, maxPages)
}

func cursorParams(cursor []byte) wire.Object {
	if cursor == nil {
		return wire.Object{}
	}
	return wire.Object{}.With(wire.Edit{Name: "cursor", Value: cursor})
}

func (c *Catalog) addPage(s *source, out *listing, resp *upstream.Response) error {
	if resp.Type != mcp.ResultComplete || !resp.Result.Unique("tools", "nextCursor") {
		return errors.New("the answer is not a list")
	}
	raw, ok := resp.Result.Value("tools")
	if !ok {
		return errors.New("the answer has no tools")
	}
	elements, ok := wire.Elements(raw, maxTools-len(out.tools))
	if !ok {
		return fmt.Errorf("tools is no array, or has more than %d entries", maxTools)
	}
	for _, element := range elements {
		tool, err := readTool(element, s)
		if err == nil && out.byName[tool.Name] != nil {
			err = errors.New("the name is taken by another of its tools")
		}
		if err != nil {
			out.leaveOut(tool.Name, err)
			continue
		}
		if out.size += len(tool.JSON); out.size > maxListing {
			return fmt.Errorf("its definitions are over %d MiB", maxListing>>20)
		}
		out.tools = append(out.tools, tool)
		out.byName[tool.Name] = tool
		out.app = out.app || tool.app
	}
	return nil
}

// report tells what the upstream contributes, if that has changed.
func (c *Catalog) report(s *source) {
	s.mu.Lock()
	r := Report{ID: s.ID, Prefix: s.Prefix, State: s.state, Err: s.err, Listed: s.listing != nil}
	if l := s.listing; l != nil {
		r.Revision, r.Invalid = l.revision, l.invalid
		for _, t := range l.tools {
			if c.cfg.Policy.Allows("", s.ID, t.Name) {
				r.Shown++
			}
		}
		r.Denied = len(l.tools) - r.Shown
	} else {
		r.Reason = s.absence()
	}
	// What is on its way is news to nobody, and no change either: the next attempt may end as the last one did.
	onTheWay := r.State == upstream.Connecting || r.Reason == reasonListing
	same := r.State == s.last.State && r.Revision == s.last.Revision && r.Shown == s.last.Shown && r.Denied == s.last.Denied &&
		r.Invalid == s.last.Invalid && r.Reason == s.last.Reason
	if !onTheWay {
		s.last = r
	}
	s.mu.Unlock()
	if !onTheWay && !same && c.cfg.Changed != nil {
		c.cfg.Changed(r)
	}
}
