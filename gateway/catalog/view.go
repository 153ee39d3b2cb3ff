package catalog

import (
	"crypto/sha256"

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
	Digest [sha256.Size]byte // of all that a client may see
	pages  []wire.Object     // whole results, without nextCursor
	tools  map[string]*listing
	bare   map[string]bareName
}

// A bareName counts who has a tool of that name, before any policy.
type bareName struct {
	upstream string
	count    int
}

// Pages is how many pages the list has, at least one.
func (v *View) Pages() int { return len(v.pages) }

// Page is the result of tools/list for page i, but for nextCursor.
func (v *View) Page(i int) wire.Object { return v.pages[i] }

// Listed reports whether the upstream has a listing.
func (v *View) Listed(id string) bool { return v.tools[id] != nil }

// Tool is the upstream's tool of that name in its own words, or nil.
func (v *View) Tool(id, name string) *Tool {
	if l := v.tools[id]; l != nil {
		return l.byName[name]
	}
	return nil
}

// Owner is the one upstream that has a tool of that name, provided that it shows user interfaces: those call the tools
// of their server by the names that it knows.
func (v *View) Owner(name string) (id string, ok bool) {
	b := v.bare[name]
	return b.upstream, b.count == 1 && v.tools[b.upstream].app
}

// rebuild makes the view of what the sources hold now.
func (c *Catalog) rebuild() {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := &View{tools: map[string]*listing{}, bare: map[string]bareName{}}
	var shown []*Tool
	var absent []wire.Edit
	for _, s := range c.sources {
		s.mu.Lock()
		l, reason := s.listing, ""
		if l == nil {
			reason = s.absence()
		}
		s.mu.Unlock()
		if l == nil {
			if c.cfg.Policy.AllowsSome("", s.ID) {
				absent = append(absent, wire.Edit{Name: s.ID, Value: wire.AppendString(nil, reason)})
			}
			continue
		}
		v.tools[s.ID] = l
		for _, t := range l.tools {
			b := v.bare[t.Name]
			v.bare[t.Name] = bareName{s.ID, b.count + 1}
			if c.cfg.Policy.Allows("", s.ID, t.Name) {
				shown = append(shown, t)
			}
		}
	}
	v.paginate(shown, c.meta(absent))
	c.view.Store(v)
}

func (c *Catalog) meta(absent []wire.Edit) []byte {
	edits := []wire.Edit{{Name: mcp.MetaServerInfo, Value: c.cfg.ServerInfo}}
	if len(absent) > 0 {
		edits = append(edits, wire.Edit{Name: mcp.MetaAbsent, Value: wire.Object{}.AppendEdited(nil, absent...)})
	}
	return wire.Object{}.AppendEdited(nil, edits...)
}

func (v *View) paginate(shown []*Tool, meta []byte) {
	digest := sha256.New()
	for first := true; first || len(shown) > 0; first = false {
		page := shown[:fitting(shown)]
		shown = shown[len(page):]
		text := append([]byte(nil), `{"tools":[`...)
		for i, t := range page {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(text, t.JSON...)
		}
		text = append(text, `],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":`...)
		text = append(append(text, meta...), '}')
		digest.Write(text)
		// The text is made of parsed parts alone.
		o, _ := wire.ParseObject(text)
		v.pages = append(v.pages, o)
	}
	digest.Sum(v.Digest[:0])
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
