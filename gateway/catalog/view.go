package catalog

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"sync"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// PageSize is how many tools one page holds; many clients never ask for a second. A page that has pageBytes is full as well.
const (
	PageSize  = 1000
	pageBytes = 8 << 20
)

// Why an upstream contributes nothing. The list is closed: no text of a server or an error gets to a client by it.
const (
	reasonConnecting   = "connecting"
	reasonListing      = "listing"
	reasonListFailed   = "list-failed"
	reasonReconnecting = "reconnecting"
	reasonGivenUp      = "given-up"
	reasonHeld         = "held"
	reasonClosed       = "closed"
)

// absence is the reason for which the source contributes nothing. Its mutex must be held.
func (s *source) absence() string {
	switch s.state {
	case upstream.Live:
		if s.failed {
			return reasonListFailed
		}
		return reasonListing
	case upstream.Backoff:
		return reasonReconnecting
	case upstream.Verdict:
		return reasonGivenUp
	case upstream.Held:
		return reasonHeld
	case upstream.Closing, upstream.Closed:
		return reasonClosed
	}
	return reasonConnecting
}

// A View is all that the catalog held at one moment. It is immutable.
type View struct {
	Digest   [sha256.Size]byte // of the tools on all pages; who is absent is no reason to start paging over
	listings []*listing        // in config order
	byID     map[string]*listing
	shown    []*Tool // on all pages
	pages    []*page
	meta     []byte // JSON text of every page's _meta
}

// A page is one result of tools/list, which is put together when a client first asks for it.
type page struct {
	tools  []*Tool
	sum    [sha256.Size]byte // of the tools
	result func() wire.Object
}

// Pages is how many pages the list has, at least one.
func (v *View) Pages() int { return len(v.pages) }

// Page is the result of tools/list for page i, but for nextCursor.
func (v *View) Page(i int) wire.Object { return v.pages[i].result() }

// Listed reports whether the upstream has a listing.
func (v *View) Listed(id string) bool { return v.byID[id] != nil }

// Tool is the upstream's tool of that name in its own words, or nil.
func (v *View) Tool(id, name string) *Tool {
	if l := v.byID[id]; l != nil {
		return l.byName[name]
	}
	return nil
}

// Owner is the one upstream that has a tool of that name, counted before any policy, provided that it shows user interfaces: those
// call the tools of their server by the names that it knows.
func (v *View) Owner(name string) (id string, ok bool) {
	var owner *listing
	for _, l := range v.listings {
		if l.byName[name] != nil {
			if owner != nil {
				return "", false
			}
			owner = l
		}
	}
	if owner == nil || !owner.app {
		return "", false
	}
	return owner.id, true
}

// judgedWith reports whether nothing of the view was judged with other secrets.
func (v *View) judgedWith(secrets uint64) bool {
	for _, l := range v.listings {
		if l.secrets != secrets {
			return false
		}
	}
	return true
}

// rebuild makes the view of what the sources hold now, and reports whether the tools that clients see are others. What has not changed is
// taken from the view before. Catalog.mu must be held.
func (c *Catalog) rebuild() (differs bool) {
	before := c.view.Load()
	v := &View{byID: map[string]*listing{}}
	var absent []wire.Edit
	for _, s := range c.sources {
		if l := s.listing; l != nil {
			v.listings = append(v.listings, l)
			v.byID[s.ID] = l
		} else if c.cfg.Policy.AllowsSome("", s.ID) {
			absent = append(absent, wire.Edit{Name: s.ID, Value: wire.AppendString(nil, s.absence())})
		}
	}
	v.meta = c.meta(absent)
	if slices.Equal(v.listings, before.listings) && bytes.Equal(v.meta, before.meta) {
		return false
	}
	for _, l := range v.listings {
		v.shown = append(v.shown, l.shown...)
	}
	v.paginate(before)
	c.view.Store(v)
	return !slices.Equal(v.shown, before.shown)
}

func (c *Catalog) meta(absent []wire.Edit) []byte {
	edits := []wire.Edit{{Name: mcp.MetaServerInfo, Value: c.cfg.ServerInfo}}
	if len(absent) > 0 {
		edits = append(edits, wire.Edit{Name: mcp.MetaAbsent, Value: wire.Object{}.AppendEdited(nil, absent...)})
	}
	return wire.Object{}.AppendEdited(nil, edits...)
}

func (v *View) paginate(before *View) {
	digest := sha256.New()
	sameMeta := bytes.Equal(v.meta, before.meta)
	for rest := v.shown; len(v.pages) == 0 || len(rest) > 0; {
		p := &page{tools: rest[:fitting(rest)]}
		rest = rest[len(p.tools):]
		if i := len(v.pages); i < len(before.pages) && sameMeta && slices.Equal(p.tools, before.pages[i].tools) {
			p = before.pages[i]
		} else {
			p.prepare(v.meta)
		}
		digest.Write(p.sum[:])
		v.pages = append(v.pages, p)
	}
	digest.Sum(v.Digest[:0])
}

func (p *page) prepare(meta []byte) {
	sum := sha256.New()
	for _, t := range p.tools {
		sum.Write(t.sum[:])
	}
	sum.Sum(p.sum[:0])
	tools := p.tools
	p.result = sync.OnceValue(func() wire.Object { return list(tools, meta) })
}

func list(tools []*Tool, meta []byte) wire.Object {
	size := 2
	for _, t := range tools {
		size += len(t.JSON) + 1
	}
	text := append(make([]byte, 0, size), '[')
	for i, t := range tools {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, t.JSON...)
	}
	return wire.Object{}.With(
		wire.Edit{Name: "tools", Value: append(text, ']')},
		wire.Edit{Name: "resultType", Value: []byte(`"complete"`)},
		wire.Edit{Name: "ttlMs", Value: []byte(`0`)},
		wire.Edit{Name: "cacheScope", Value: []byte(`"private"`)},
		wire.Edit{Name: "_meta", Value: meta})
}

// fitting is how many of the tools go on one page, at least one.
func fitting(tools []*Tool) int {
	size := 0
	for i, t := range tools {
		if size += len(t.JSON); i == PageSize || i > 0 && size > pageBytes {
			return i
		}
	}
	return len(tools)
}
