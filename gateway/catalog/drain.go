package catalog

import (
	"context"
	"errors"
	"fmt"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

const (
	maxPages   = 100
	maxTools   = 100_000
	maxListing = 32 << 20 // bytes of one upstream's pages together
	maxCursor  = 64 << 10 // bytes
)

// drain reads all pages, or none. What has not changed it takes from the listing before.
func (c *Catalog) drain(ctx context.Context, s *source, before *listing) (*listing, error) {
	out := newListing(s.ID)
	if err := c.pages(ctx, s, out); err != nil {
		return nil, fmt.Errorf("listing the tools of %q: %w", s.ID, err)
	}
	out.reuse(before)
	out.sift(c.cfg.Policy)
	return out, nil
}

func (c *Catalog) pages(ctx context.Context, s *source, out *listing) error {
	out.secrets = c.cfg.Secrets()
	seen := map[string]bool{}
	size := 0
	var cursor []byte
	for range maxPages {
		resp, err := s.Upstream.Call(ctx, &upstream.Request{Method: mcp.MethodToolsList, Params: cursorParams(cursor)})
		if err != nil {
			if e, ok := errors.AsType[*wire.Error](err); ok && e.Code == wire.CodeMethodNotFound && cursor == nil {
				return nil // a server without tools is healthy
			}
			return err
		}
		if size += len(resp.Result.Raw()); size > maxListing {
			return fmt.Errorf("its pages are over %d MiB", maxListing>>20)
		}
		if err := c.addPage(s, out, resp); err != nil {
			return err
		}
		next, ok := resp.Result.Value("nextCursor")
		if !ok || string(next) == "null" {
			return nil
		}
		if next[0] != '"' || len(next) > maxCursor || seen[string(next)] {
			return errors.New("the server repeats a cursor, or gives one that is no string or too long")
		}
		seen[string(next)] = true
		cursor = next
	}
	return fmt.Errorf("more than %d pages", maxPages)
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
		c.admit(s, out, tool)
	}
	return nil
}

// admit adds the tool to the listing as clients may read it, or leaves it out where they may not.
func (c *Catalog) admit(s *source, out *listing, t *Tool) {
	clean, ok := c.redact(s, t)
	if !ok {
		out.withheld++
		return
	}
	out.redacted = out.redacted || clean != t
	out.add(clean)
}

// redact is the tool as clients may read it; ok is false where they may not.
func (c *Catalog) redact(s *source, t *Tool) (clean *Tool, ok bool) {
	if s.Verbatim {
		return t, true
	}
	text, ok := c.cfg.Redact(t.JSON)
	if !ok || len(text) == len(t.JSON) && &text[0] == &t.JSON[0] {
		return t, ok
	}
	clean = new(*t)
	clean.JSON = text
	clean.seal()
	return clean, true
}

// judged is the view, after all of it was judged with the secrets as they are now. What a secret that is no longer known has taken
// out stays so until the next listing.
func (c *Catalog) judged() *View {
	v := c.View()
	if secrets := c.cfg.Secrets(); v.judgedWith(secrets) {
		return v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	secrets := c.cfg.Secrets()
	for _, s := range c.sources {
		if s.listing != nil && s.listing.secrets != secrets {
			now := c.judge(s, s.listing, secrets)
			c.logLeftOut(s, now)
			s.listing = now
		}
	}
	if c.rebuild() {
		c.notify()
	}
	return c.View()
}

// judge is a listing of the source's upstream under its prefix, with what is now secret taken out of it as well.
func (c *Catalog) judge(s *source, before *listing, secrets uint64) *listing {
	now := newListing(s.ID)
	now.revision, now.attempt, now.redacted, now.secrets = before.revision, before.attempt, before.redacted, secrets
	now.invalid, now.leftOut, now.withheld = before.invalid, before.leftOut, before.withheld
	for _, t := range before.tools {
		c.admit(s, now, t.under(s.Prefix))
	}
	now.sift(c.cfg.Policy)
	return now
}

// logLeftOut names the tools that cannot be offered, each once for as long as it stays so, and counts those whose names nobody may
// read. Catalog.mu must be held.
func (c *Catalog) logLeftOut(s *source, now *listing) {
	before := s.listing
	for name, err := range now.leftOut {
		if before == nil || before.leftOut[name] == nil {
			c.cfg.Log.Warn("left out a tool that cannot be offered", "upstream", s.ID, "tool", name, "error", err)
		}
	}
	if now.withheld > 0 && (before == nil || before.withheld != now.withheld) {
		c.cfg.Log.Warn("left out tools whose definitions have names that hold a credential", "upstream", s.ID, "tools", now.withheld)
	}
}
