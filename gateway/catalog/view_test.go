package catalog

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

// first is where a page's text lies.
func first(v *View, page int) *byte { return &v.Page(page).Raw()[0] }

// Pages are put together once, and again only where their own tools change.
func TestPagesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []string
		for i := range PageSize {
			many = append(many, fmt.Sprint("t", i))
		}
		big, small, down := newScriptOf(many...), newScriptOf("a"), newScript(nil)
		down.status.State = upstream.Connecting
		c := start(t, nil, Source{ID: "big", Prefix: "big__", Upstream: big}, Source{ID: "small", Prefix: "small__", Upstream: small},
			Source{ID: "down", Prefix: "down__", Upstream: down})
		synctest.Wait()
		v := c.View()
		if once := first(v, 0); v.Pages() != 2 || first(v, 0) != once {
			t.Fatalf("%d pages, or one that is put together at each request", v.Pages())
		}
		c.Relist(t.Context(), "big")
		c.Relist(t.Context(), "small")
		if big.count() != 2 || small.count() != 2 {
			t.Errorf("listed %d and %d times, want 2", big.count(), small.count())
		}
		if c.View() != v && (first(c.View(), 0) != first(v, 0) || first(c.View(), 1) != first(v, 1)) {
			t.Error("the same tools led to another page")
		}
		if c.View().Digest != v.Digest {
			t.Error("the same tools led to another digest")
		}

		small.lists("a", "b")
		small.set(notice)
		<-time.After(pause)
		synctest.Wait()
		changed := c.View()
		if first(changed, 0) != first(v, 0) || first(changed, 1) == first(v, 1) || changed.Digest == v.Digest {
			t.Error("a change reaches a page that it does not concern, or not its own")
		}

		down.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		synctest.Wait()
		if first(c.View(), 0) == first(v, 0) || c.View().Digest != changed.Digest {
			t.Error("who is absent is not told, or ends all cursors")
		}
		if got := absent(c); got != `{"down":"reconnecting"}` {
			t.Errorf("absent: %s", got)
		}
		v = c.View()
		small.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		synctest.Wait()
		if c.View() != v {
			t.Error("a state that no client sees made another view")
		}
	})
}

// The order of tools is part of what clients see, as their definitions are.
func TestDigestTellsListsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[[32]byte]string{}
		for _, list := range []string{
			pageOf(), pageOf("a"), pageOf("b"), pageOf("a", "b"), pageOf("b", "a"), `{"tools":[{"name":"a"}]}`, `{"tools":[{"name":"a","title":"A"}]}`,
		} {
			c := start(t, nil, one(newScript(map[string]string{"": list})))
			synctest.Wait()
			if other, ok := seen[c.View().Digest]; ok {
				t.Errorf("%s and %s have one digest", list, other)
			}
			seen[c.View().Digest] = list
			again := start(t, nil, one(newScript(map[string]string{"": list})))
			synctest.Wait()
			if again.View().Digest != c.View().Digest {
				t.Errorf("another replica has another digest for %s", list)
			}
		}
	})
}

// A tool whose definition stays, but which wants other headers since its secrets went, is another tool.
func TestAToolIsReusedWholeOrNotAtAll(t *testing.T) {
	before, now := newListing("s"), newListing("s")
	tool := func(header string) *Tool {
		s := newSource(Source{ID: "s", OverHTTP: true})
		out, err := readTool([]byte(`{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"`+header+`"}}}}`), s)
		if err != nil {
			t.Fatal(err)
		}
		out.JSON = []byte(`{}`)
		return out
	}
	before.add(tool("A"))
	now.add(tool("B"))
	now.reuse(before)
	if now.tools[0] == before.tools[0] || now.byName["t"] != now.tools[0] {
		t.Error("took over a tool that wants another header")
	}
	same := newListing("s")
	same.add(tool("A"))
	same.reuse(before)
	if same.tools[0] != before.tools[0] || same.byName["t"] != before.tools[0] {
		t.Error("did not take over the same tool")
	}
}

func TestOwnPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []string
		for i := range 2*PageSize + 1 {
			all = append(all, fmt.Sprint("t", i))
		}
		c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: newScript(map[string]string{"": pageOf(all...)})})
		synctest.Wait()
		if got := c.View().Pages(); got != 3 {
			t.Fatalf("%d pages, want 3", got)
		}
		if got := len(names(t, c.View())); got != len(all) {
			t.Errorf("%d tools on all pages, want %d", got, len(all))
		}
		large := `"description":"` + strings.Repeat("x", pageBytes/2) + `"`
		d := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: newScript(map[string]string{
			"": `{"tools":[{"name":"a",` + large + `},{"name":"b",` + large + `},{"name":"c"}]}`,
		})})
		wantNames(t, d, "s__a", "s__b", "s__c")
		if got := d.View().Pages(); got != 2 {
			t.Errorf("%d pages of 8 MiB at most, want 2", got)
		}
	})
}

func TestOwnerOfABareName(t *testing.T) {
	const app = `{"tools":[{"name":"show","_meta":{"ui":{"resourceUri":"ui://x"}}},{"name":"shared"},{"name":"also"},{"name":"helper"}]}`
	synctest.Test(t, func(t *testing.T) {
		c := start(t, nil, Source{ID: "first", Prefix: "first__", Upstream: newScriptOf("shared")},
			Source{ID: "app", Prefix: "app__", Upstream: newScript(map[string]string{"": app})}, Source{ID: "plain", Prefix: "plain__", Upstream: newScript(map[string]string{"": pageOf("also", "other")})})
		synctest.Wait()
		for name, want := range map[string]string{"show": "app", "helper": "app", "shared": "", "also": "", "other": "", "none": ""} {
			id, ok := c.View().Owner(name)
			if (want != "") != ok || ok && id != want {
				t.Errorf("%s belongs to %q, %v; want %q", name, id, ok, want)
			}
		}
	})
}

// large is a catalog of 5,000 tools of 50 upstreams, listed once.
func large(b *testing.B) *Catalog {
	var sources []Source
	rules := map[string]policy.Tools{}
	for i := range 50 {
		id := fmt.Sprint("u", i)
		rules[id] = policy.Tools{}
		sources = append(sources, Source{ID: id, Prefix: id + "__"})
	}
	c := New(Config{Sources: sources, Policy: policy.New(rules), ServerInfo: []byte(`{}`), Log: slog.New(slog.DiscardHandler)})
	for _, s := range c.sources {
		c.take(s, func() bool { s.listing = hundred(c, s, "a"); return false })
	}
	return c
}

func hundred(c *Catalog, s *source, word string) *listing {
	l := newListing(s.ID)
	for i := range 100 {
		raw := fmt.Sprintf(`{"name":"tool%d","description":%q,"inputSchema":{"type":"object"}}`, i, strings.Repeat(word, 1500))
		t, _ := readTool([]byte(raw), s)
		l.add(t)
	}
	l.reuse(s.listing)
	l.sift(c.cfg.Policy)
	return l
}

// BenchmarkChange is what one upstream's new list costs, served included.
func BenchmarkChange(b *testing.B) {
	c := large(b)
	s := c.sources[25]
	lists := []*listing{hundred(c, s, "b"), hundred(c, s, "c")}
	b.ReportAllocs()
	for i := range b.N {
		c.take(s, func() bool { s.listing = lists[i%2]; return false })
		for p := range c.View().Pages() {
			c.View().Page(p)
		}
	}
}

func BenchmarkList(b *testing.B) {
	c := large(b)
	b.ReportAllocs()
	for b.Loop() {
		v := c.Fresh(b.Context(), "me")
		for p := range v.Pages() {
			v.Page(p)
		}
	}
}
