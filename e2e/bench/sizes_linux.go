package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A size is how much a gateway has behind it.
type size struct{ upstreams, tools int }

func (z size) String() string {
	if z.upstreams == 1 {
		return fmt.Sprintf("%d tools of 1 upstream", z.tools)
	}
	return fmt.Sprintf("%d tools of %d upstreams", z.tools, z.upstreams)
}

// calls measures one call with few and many upstreams and tools.
func (s *scaling) calls(ctx context.Context) error {
	small := kinds()[0]
	many := &cell{call: small.name, connections: 16}
	alone := &cell{call: small.name, connections: 1}
	sizes := []size{{1, 10}, {10, 100}, {50, 500}, {200, 2_000}, {1, 100}, {1, 1_000}, {1, 10_000}}
	for _, z := range sizes {
		p, _, err := s.gateway(ctx, z.upstreams, z.tools/z.upstreams, "")
		if err != nil {
			return err
		}
		t, err := prepare(ctx, z.String(), p.address, small.modern(p.address, s.key, fmt.Sprintf("u%d__small", z.upstreams-1)), small.verify)
		if err != nil {
			return err
		}
		defer t.close()
		many.series = append(many.series, &series{peer: z.String(), process: p, target: t})
		alone.series = append(alone.series, &series{peer: z.String(), process: p, target: t})
	}
	for _, c := range []*cell{many, alone} {
		if err := c.measure(ctx, s.rounds, s.each); err != nil {
			return err
		}
	}
	s.found(fmt.Sprintf("a call, %v: CPU", sizes[0]), many.series[0].median(cpu), "µs", 0)
	s.found(fmt.Sprintf("a call, %v: p50", sizes[0]), alone.series[0].median(p50), "µs", 0)
	for i, z := range sizes[1:] {
		s.found(fmt.Sprintf("a call, %v: CPU", z), many.series[i+1].ratio(cpu, many.series[0]), "×", goalFlat)
		s.found(fmt.Sprintf("a call, %v: p50", z), alone.series[i+1].ratio(p50, alone.series[0]), "×", goalFlat)
	}
	return nil
}

// lists measures all pages of a long list against a ReverseProxy that passes the same bytes on.
func (s *scaling) lists(ctx context.Context) error {
	z := size{50, 5_000}
	p, _, err := s.gateway(ctx, z.upstreams, z.tools/z.upstreams, "")
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, "pages")
	cursors, bytes, err := s.walk(p.address, dir)
	if err != nil {
		return err
	}
	server, err := s.begin(start(ctx, "the pages", role("page", "-dir", dir)))
	if err != nil {
		return err
	}
	proxied, err := s.begin(start(ctx, reverseProxy, role("proxy", "-to", server.address)))
	if err != nil {
		return err
	}
	var ours, theirs [2]float64 // CPU and p50, the sums of all pages
	for n, cursor := range cursors {
		c := &cell{call: fmt.Sprintf("page %d of tools/list", n+1), connections: 16}
		for _, peer := range []*process{proxied, p} {
			t, err := prepare(ctx, peer.name+", "+c.call, peer.address, listRequest(peer.address, s.key, cursor), func(id, []byte) error { return nil })
			if err != nil {
				return err
			}
			defer t.close()
			// The cursor that a page ends with is sealed anew each time.
			t.sameSize = peer == p && n+1 < len(cursors)
			c.series = append(c.series, &series{peer: peer.name, process: peer, target: t})
		}
		if err := c.measure(ctx, s.rounds, s.each); err != nil {
			return err
		}
		for i, m := range []measure{cpu, p50} {
			theirs[i] += c.series[0].median(m)
			ours[i] += c.series[1].median(m)
		}
	}
	s.found(fmt.Sprintf("tools/list, %v, %d pages: size", z, len(cursors)), float64(bytes), "bytes", 0)
	s.found(fmt.Sprintf("tools/list, %v: CPU", z), ours[0], "µs", 0)
	s.found(fmt.Sprintf("tools/list, %v: CPU to a ReverseProxy's", z), ours[0]/theirs[0], "×", goalList)
	s.found(fmt.Sprintf("tools/list, %v: p50 to a ReverseProxy's", z), ours[1]/theirs[1], "×", 0)
	return nil
}

// listRequest asks for the page of a cursor, which is as it stands in JSON; without one for the first.
func listRequest(address, key, cursor string) []byte {
	if cursor != "" {
		cursor = `"cursor":` + cursor + `,`
	}
	body := `{"jsonrpc":"2.0","id":` + hole + `,"method":"tools/list","params":{` + cursor + `"_meta":{` + modernMeta + `}}}`
	return request(address, key, body, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
}

// maxPages bounds a walk.
const maxPages = 100

// walk asks for all pages of the tools and keeps them in dir as the role page wants them. It gives the cursor of each and the
// size of all.
func (s *scaling) walk(address, dir string) (cursors []string, size int, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, 0, err
	}
	cursor := ""
	for n := range maxPages {
		i := nextID()
		c, err := dial(address, newTemplate(listRequest(address, s.key, cursor), hole))
		if err != nil {
			return nil, 0, err
		}
		var text []byte
		err = c.call(i, func(part []byte) error { text = append(text, part...); return nil })
		c.conn.Close()
		if err != nil {
			return nil, 0, fmt.Errorf("page %d of tools/list: %w", n+1, err)
		}
		kept := cursor + "\n" + strings.ReplaceAll(string(text), i.String(), hole)
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), []byte(kept), 0o600); err != nil {
			return nil, 0, err
		}
		cursors, size = append(cursors, cursor), size+len(text)
		if cursor = string(member(member(text, "result"), "nextCursor")); cursor == "" {
			return cursors, size, nil
		}
	}
	return nil, 0, fmt.Errorf("tools/list has more than %d pages", maxPages)
}
