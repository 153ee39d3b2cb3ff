package catalog

// adopt takes over what the catalog before has of the upstreams that are the same in both: nothing of theirs is listed again for
// it, unless what was taken out for secrets may be shown now. Of an upstream that another engine serves from here on it borrows the
// listing until that one has listed, as a server keeps its listing while it reconnects: nothing is missed meanwhile.
func (c *Catalog) adopt(before *Catalog) {
	before.mu.Lock()
	defer before.mu.Unlock()
	for _, s := range c.sources {
		old := before.source(s.ID)
		switch {
		case old == nil:
			continue
		case old.Upstream != s.Upstream:
			c.borrow(s, old)
			continue
		}
		s.state, s.session, s.err, s.failed, s.changes, s.last = old.state, old.session, old.err, old.failed, old.changes, old.last
		s.adopted = true
		if old.due > old.ended {
			s.due, s.since = s.begun+1, old.since
		}
		if old.listing != nil {
			c.inherit(s, old, old.borrowed)
		}
	}
}

// borrow shows the listing of the engine before until that of s has one of its own, or has given up. Catalog.mu of both must be held.
func (c *Catalog) borrow(s, old *source) {
	if old.listing != nil && !gone(s.state) && (s.listing == nil || s.borrowed) {
		c.inherit(s, old, true)
	}
}

// inherit makes the listing of the source before the listing of s, under its prefix and its rules. Catalog.mu of both must be
// held.
func (c *Catalog) inherit(s, old *source, borrowed bool) {
	s.listed, s.borrowed = old.listed, borrowed
	if !borrowed {
		s.settle()
	}
	if s.Prefix == old.Prefix && s.Verbatim == old.Verbatim {
		l := *old.listing
		l.shown = nil
		l.sift(c.cfg.Policy)
		s.listing = &l
	} else {
		s.listing = c.judge(s, old.listing, c.cfg.Secrets())
		if old.listing.redacted || old.listing.withheld > 0 {
			s.ask()
		}
	}
}

// Replace makes the catalog the one that clients see, in the place of the one before it. They are told if their tools differ, or
// if a server has told this catalog alone of a change. What the one before has listed meanwhile stays listed. Whoever still asks that one for a
// fresh list has it from this one, so that none is old for whom a notice is past: requests should meet this one only after
// Replace.
func (c *Catalog) Replace() {
	before := c.cfg.Before
	before.mu.Lock() // always before that of its heir
	defer before.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Before = nil // which must not live as long as this one
	c.served, before.served, before.heir = true, false, c
	untold := false
	for _, s := range c.sources {
		old := before.source(s.ID)
		switch {
		case old == nil:
		case !s.adopted:
			c.borrow(s, old)
		default:
			untold = untold || s.changes > old.changes && c.cfg.Policy.AllowsSome("", s.ID)
			c.succeed(s, old)
		}
	}
	c.rebuild()
	if untold || c.View().Digest != before.View().Digest {
		c.notify()
	}
}

// succeed takes over what the source before has come to know since s adopted it. Catalog.mu of both must be held.
func (c *Catalog) succeed(s, old *source) {
	s.owed = s.owed || old.owed
	if old.listing != nil && !gone(s.state) && (s.listing == nil || s.borrowed || s.listing.attempt < old.listing.attempt) {
		c.inherit(s, old, old.borrowed)
		s.last = old.last
		s.wake()
	}
}
