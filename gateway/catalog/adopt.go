package catalog

// adopt takes over what the catalog before has of the upstreams that are the same in both: nothing of theirs is listed again for
// it.
func (c *Catalog) adopt(before *Catalog) {
	before.mu.Lock()
	defer before.mu.Unlock()
	for _, s := range c.sources {
		old := before.source(s.ID)
		if old == nil || old.Upstream != s.Upstream || old.Prefix != s.Prefix || old.OverHTTP != s.OverHTTP || old.Verbatim != s.Verbatim {
			continue
		}
		s.state, s.session, s.err, s.failed, s.changes, s.last = old.state, old.session, old.err, old.failed, old.changes, old.last
		s.adopted = true
		if old.due > old.ended {
			s.due, s.since = s.begun+1, old.since
		}
		if old.listing == nil {
			continue
		}
		l := *old.listing
		l.shown = nil
		l.sift(c.cfg.Policy)
		s.listing = &l
		s.settle()
	}
}
