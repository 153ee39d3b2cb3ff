package catalog

import (
	"context"
	"slices"
	"time"

	"mcp-gateway/upstream"
)

const (
	// relistInterval is the least time between two listings that calls have asked for, per upstream.
	relistInterval = 5 * time.Second
	// patience is how long a request waits for a listing where its ctx says nothing else.
	patience = 5 * time.Second
)

// Settled waits until every upstream, or each of those named, has listed or failed once, or ctx ends.
func (c *Catalog) Settled(ctx context.Context, ids ...string) {
	for _, s := range c.sources {
		if len(ids) > 0 && !slices.Contains(ids, s.ID) {
			continue
		}
		select {
		case <-s.settled:
		case <-ctx.Done():
			return
		}
	}
}

// Await waits until the upstream has a listing, as long as it is on the way to one: until the upstream's connect or listing has
// failed, upstream.WaitUntil(ctx) (5 s where ctx says nothing), the end of ctx, or Close.
func (c *Catalog) Await(ctx context.Context, id string) {
	if s := c.source(id); s != nil {
		c.wait(ctx, s, waitUntil(ctx), func() bool { return s.listing != nil || !s.onTheWay() })
	}
}

// Relist waits for a listing of the upstream that is fresh, as Await does. It asks for one unless that is on its way already:
// the one that an earlier call has asked for, or that follows a notice. It does nothing where the last one that was asked for is
// less than 5 s old, and where no session is live. An upstream that shows what the engine before has listed is waited for as long as
// it is on the way to a listing of its own.
func (c *Catalog) Relist(ctx context.Context, id string) {
	s := c.source(id)
	if s == nil {
		return
	}
	c.mu.Lock()
	if s.borrowed {
		c.mu.Unlock()
		c.wait(ctx, s, waitUntil(ctx), func() bool { return !s.borrowed || !s.onTheWay() })
		return
	}
	want := s.wished
	switch {
	case s.state != upstream.Live:
		want = 0
	case s.due > s.ended:
		want = s.due
	case time.Since(s.asked) >= relistInterval:
		s.asked = time.Now()
		s.ask()
		want = s.wished
	}
	c.mu.Unlock()
	c.wait(ctx, s, waitUntil(ctx), func() bool { return s.ended >= want || s.state != upstream.Live })
}

// Fresh is the view for a list. Where an upstream of which caller may see something has given notice of a change, it waits for the
// listing that began after that: 5 s from the notice at most, however many requests and notices come meanwhile, and within ctx.
// A client that reacts to a notice so sees what it was told of. An upstream that has never listed is not waited for. A catalog that has been replaced gives what its heir
// has.
func (c *Catalog) Fresh(ctx context.Context, caller string) *View {
	type awaited struct {
		*source
		want  uint64
		until time.Time
	}
	var room [4]awaited
	wait := room[:0]
	c.mu.Lock()
	for _, s := range c.sources {
		if s.due > s.ended && c.cfg.Policy.AllowsSome(caller, s.ID) {
			if s.listing == nil {
				s.owed = true
				continue
			}
			wait = append(wait, awaited{s, s.due, s.since.Add(patience)})
		}
	}
	c.mu.Unlock()
	for _, a := range wait {
		c.wait(ctx, a.source, a.until, func() bool { return a.ended >= a.want || a.state != upstream.Live })
		c.mu.Lock()
		a.owed = a.owed || a.ended < a.want
		c.mu.Unlock()
	}
	c.mu.Lock()
	heir := c.heir
	c.mu.Unlock()
	if heir != nil {
		return heir.Fresh(ctx, caller)
	}
	return c.judged()
}

// wait returns as soon as done says so, which is asked with c.mu held whenever an attempt or a state of the source has ended; at until,
// at the end of ctx, and with Close.
func (c *Catalog) wait(ctx context.Context, s *source, until time.Time, done func() bool) {
	var late <-chan time.Time
	for {
		c.mu.Lock()
		over, next := done(), s.next
		c.mu.Unlock()
		if over {
			return
		}
		if late == nil {
			timer := time.NewTimer(time.Until(until))
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-next:
		case <-late:
			return
		case <-ctx.Done():
			return
		case <-c.ctx.Done():
			return
		}
	}
}

func waitUntil(ctx context.Context) time.Time {
	if until, ok := upstream.WaitUntil(ctx); ok {
		return until
	}
	return time.Now().Add(patience)
}
