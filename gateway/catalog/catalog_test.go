package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

// A script is an upstream that a test writes: its state, and what it answers to tools/list by cursor.
type script struct {
	mu      sync.Mutex
	status  upstream.Status
	changed chan struct{}
	pages   map[string]string // by cursor, "" is the first; a missing one is an error
	hold    chan struct{}     // a listing waits for it; nil does not
	asked   int
}

func newScript(pages map[string]string) *script {
	return &script{changed: make(chan struct{}), pages: pages, status: upstream.Status{State: upstream.Live, Session: 1, Revision: mcp.LegacyLatest}}
}

func (s *script) set(change func(*upstream.Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *script) Status() (upstream.Status, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, s.changed
}

func (s *script) Call(ctx context.Context, req *upstream.Request) (*upstream.Response, error) {
	s.mu.Lock()
	s.asked++
	hold := s.hold
	cursor, _ := req.Params.String("cursor")
	page, ok := s.pages[cursor]
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if !ok {
		return nil, errors.New("no such page")
	}
	if code, isError := strings.CutPrefix(page, "error "); isError {
		n, _ := wire.Int([]byte(code))
		return nil, &wire.Error{Code: n, Message: "scripted"}
	}
	o, err := wire.ParseObject([]byte(page))
	return &upstream.Response{Result: o, Type: mcp.ResultComplete, Revision: mcp.LegacyLatest}, err
}

func (s *script) Close() error { return nil }

func tools(names ...string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"name":%q,"inputSchema":{"type":"object"}}`, n)
	}
	return b.String()
}

func page(names ...string) string { return `{"tools":[` + tools(names...) + `]}` }

func start(t *testing.T, rules map[string]policy.Tools, sources ...Source) *Catalog {
	t.Helper()
	if rules == nil {
		rules = map[string]policy.Tools{}
	}
	for i := range sources {
		if sources[i].Timeout == 0 {
			sources[i].Timeout = time.Minute
		}
		if _, ok := rules[sources[i].ID]; !ok {
			rules[sources[i].ID] = policy.Tools{}
		}
	}
	c := New(Config{Sources: sources, Policy: policy.New(rules), ServerInfo: []byte(`{"name":"g"}`), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	c.Start()
	t.Cleanup(c.Close)
	return c
}

// names are the public names on all pages, in order.
func names(t *testing.T, v *View) []string {
	t.Helper()
	var out []string
	for i := range v.Pages() {
		raw, _ := v.Page(i).Value("tools")
		elements, ok := wire.Elements(raw, 1<<20)
		if !ok {
			t.Fatalf("page %d is no list: %s", i, v.Page(i).Raw())
		}
		for _, e := range elements {
			o, err := wire.ParseObject(e)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := o.String("name")
			out = append(out, name)
		}
	}
	return out
}

func wantNames(t *testing.T, c *Catalog, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := names(t, c.View()); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("listed %q, want %q", got, want)
	}
}

func absent(c *Catalog) string {
	meta, _ := c.View().Page(0).Object("_meta")
	raw, _ := meta.Value(mcp.MetaAbsent)
	return string(raw)
}

func TestMergesAllPagesInConfigOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newScript(map[string]string{"": `{"tools":[` + tools("z", "y") + `],"nextCursor":"two"}`, "two": `{"tools":[` + tools("x") + `],"nextCursor":null}`})
		b := newScript(map[string]string{"": page("m", "secret")})
		c := start(t, map[string]policy.Tools{"b": {Deny: []string{"sec*"}}},
			Source{ID: "b", Prefix: "b__", Upstream: b}, Source{ID: "a", Prefix: "a__", Upstream: a})
		wantNames(t, c, "b__m", "a__z", "a__y", "a__x")
		if got := absent(c); got != "" {
			t.Errorf("absent: %s", got)
		}
		if c.View().Tool("b", "secret") == nil || c.View().Tool("b", "none") != nil {
			t.Error("the listing does not hold just what the server has")
		}
	})
}

func TestSlowAndDeadUpstreamsDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, slow, dead, denied := newScript(map[string]string{"": page("t")}), newScript(map[string]string{"": page("t")}), newScript(nil), newScript(nil)
		slow.hold = make(chan struct{})
		dead.status = upstream.Status{State: upstream.Verdict, Err: errors.New("speaks another revision")}
		denied.status = dead.status
		c := start(t, map[string]policy.Tools{"denied": {Allow: []string{}}},
			Source{ID: "slow", Prefix: "slow__", Upstream: slow}, Source{ID: "dead", Prefix: "dead__", Upstream: dead},
			Source{ID: "denied", Prefix: "denied__", Upstream: denied}, Source{ID: "good", Prefix: "good__", Upstream: good})
		wantNames(t, c, "good__t")
		if got, want := absent(c), `{"slow":"listing","dead":"given-up"}`; got != want {
			t.Errorf("absent: %s, want %s", got, want)
		}
		close(slow.hold)
		wantNames(t, c, "slow__t", "good__t")
	})
}

func TestListingBelongsToItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(map[string]string{"": page("old")})
		c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: s})
		wantNames(t, c, "s__old")

		s.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		wantNames(t, c, "s__old") // kept through a reconnect

		s.mu.Lock()
		s.hold, s.pages = make(chan struct{}), map[string]string{"": page("new")}
		s.mu.Unlock()
		s.set(func(st *upstream.Status) { st.State, st.Session = upstream.Live, 2 })
		synctest.Wait()
		s.set(func(st *upstream.Status) { st.Session = 3 }) // ended under the listing
		s.mu.Lock()
		s.pages[""] = page("newest")
		s.mu.Unlock()
		close(s.hold)
		<-time.After(time.Minute) // of the bubble: past every retry
		wantNames(t, c, "s__newest")

		s.set(func(st *upstream.Status) { st.State = upstream.Held })
		wantNames(t, c)
		if got := absent(c); got != `{"s":"held"}` {
			t.Errorf("absent: %s", got)
		}
	})
}

func TestEndedSessionPublishesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(map[string]string{"": page("t")})
		s.hold = make(chan struct{})
		c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: s})
		synctest.Wait()
		s.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		close(s.hold)
		wantNames(t, c)
	})
}

func TestBadListsKeepTheLastGoodOne(t *testing.T) {
	endless := map[string]string{"": `{"tools":[],"nextCursor":"0"}`}
	for i := range 2 * maxPages {
		endless[fmt.Sprint(i)] = fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, i+1)
	}
	endless[fmt.Sprint(2*maxPages)] = `{"tools":[]}`
	for name, pages := range map[string]map[string]string{
		"repeated cursor":   {"": `{"tools":[],"nextCursor":"a"}`, "a": `{"tools":[],"nextCursor":"a"}`},
		"a page for ever":   endless,
		"cursor a number":   {"": `{"tools":[],"nextCursor":1}`},
		"second page fails": {"": `{"tools":[` + tools("new") + `],"nextCursor":"a"}`},
		"no tools":          {"": `{}`},
		"tools an object":   {"": `{"tools":{}}`},
		"tools twice":       {"": `{"tools":[],"tools":[]}`},
		"an error":          {"": "error -32603"},
		"over 32 MiB":       {"": `{"tools":[{"name":"a","description":"` + strings.Repeat("x", maxListing) + `"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(map[string]string{"": page("good")})
				c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: s})
				wantNames(t, c, "s__good")
				s.mu.Lock()
				s.pages = pages
				s.mu.Unlock()
				s.set(func(st *upstream.Status) { st.Changes.Tools++ })
				wantNames(t, c, "s__good")
				s.mu.Lock()
				s.pages = map[string]string{"": page("better")}
				if s.asked > 110 {
					t.Errorf("asked %d times for a list that has no end", s.asked)
				}
				s.mu.Unlock()
				<-time.After(time.Minute)
				wantNames(t, c, "s__better")
			})
		})
	}
}

// A listing that failed is tried again after a pause; one on a new session is not made to wait for it.
func TestNewSessionIsListedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil)
		c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: s})
		wantNames(t, c)
		s.mu.Lock()
		s.pages = map[string]string{"": page("t")}
		s.mu.Unlock()
		s.set(func(st *upstream.Status) { st.Session++ })
		wantNames(t, c, "s__t")
	})
}

func TestEmptyCursorIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(map[string]string{"": `{"tools":[` + tools("a") + `],"nextCursor":""}`})
		c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: s})
		synctest.Wait()
		s.mu.Lock()
		asked := s.asked
		s.mu.Unlock()
		if asked < 2 {
			t.Errorf("the list was asked for %d times; an empty cursor leads to a second page", asked)
		}
		_ = c
	})
}

func TestServerWithoutToolsIsHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: newScript(map[string]string{"": "error -32601"})})
		wantNames(t, c)
		if got := absent(c); got != "" {
			t.Errorf("absent: %s", got)
		}
	})
}

func TestInvalidToolsAreLeftOut(t *testing.T) {
	const list = `{"tools":[{"name":"ok","inputSchema":{"type":"object"}},{"name":"ok"},{"title":"nameless"},{"name":""},7,{"name":"first","name":"second"},{"name":"\u001b[2J"},{"name":"a\ud800"},{"name":"LONG"},
		{"name":"task","execution":{"taskSupport":"required"}},{"name":"header","inputSchema":{"x-mcp-header":"A","n":1.0}}]}`
	synctest.Test(t, func(t *testing.T) {
		list := strings.Replace(list, "LONG", strings.Repeat("x", maxName+1), 1)
		overHTTP := start(t, nil, Source{ID: "s", Prefix: "s__", OverHTTP: true, Upstream: newScript(map[string]string{"": list})})
		wantNames(t, overHTTP, "s__ok")
		overStdio := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: newScript(map[string]string{"": list})})
		wantNames(t, overStdio, "s__ok", "s__header")
		if got, want := string(overStdio.View().Tool("s", "header").JSON), `{"name":"s__header","inputSchema":{"n":1.0}}`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestAToolThatIsLeftOutIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(map[string]string{"": `{"tools":[{"name":"bad","execution":{"taskSupport":"required"}},{"name":"good"}]}`})
		var out strings.Builder
		c := New(Config{
			Sources: []Source{{ID: "s", Prefix: "s__", Upstream: s, Timeout: time.Minute}}, Policy: policy.New(map[string]policy.Tools{"s": {}}),
			ServerInfo: []byte(`{}`), Log: slog.New(slog.NewTextHandler(&out, nil)),
		})
		c.Start()
		for range 3 {
			synctest.Wait()
			s.set(func(st *upstream.Status) { st.Changes.Tools++ })
		}
		synctest.Wait()
		c.Close()
		if got := strings.Count(out.String(), "tool=bad"); got != 1 {
			t.Errorf("logged %d times in four listings, want once:\n%s", got, out.String())
		}
	})
}

func TestRelistAtMostEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(map[string]string{"": page("a")})
		c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: s})
		synctest.Wait()
		s.mu.Lock()
		before := s.asked
		s.mu.Unlock()
		for range 10 {
			c.Relist(t.Context(), "s")
		}
		s.mu.Lock()
		got := s.asked - before
		s.mu.Unlock()
		if got != 1 {
			t.Errorf("ten wishes made %d listings, want 1", got)
		}
		<-time.After(relistInterval)
		s.mu.Lock()
		s.pages[""] = page("b")
		s.mu.Unlock()
		c.Relist(t.Context(), "s")
		wantNames(t, c, "s__b")
	})
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(map[string]string{"": page("a")})
		s.status.State = upstream.Connecting
		c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: s})
		c.Await(t.Context(), "unknown") // has nothing to wait for
		listed := make(chan bool)
		go func() {
			c.Await(t.Context(), "s")
			listed <- c.View().Listed("s")
		}()
		synctest.Wait()
		s.set(func(st *upstream.Status) { st.State = upstream.Live })
		if !<-listed {
			t.Error("the wait ended before the listing")
		}
		go func() {
			c.Await(t.Context(), "s")
			listed <- c.View().Listed("s")
		}()
		if !<-listed {
			t.Error("a listing was there already")
		}
		failing := newScript(nil)
		failing.status.State = upstream.Connecting
		d := start(t, nil, Source{ID: "s", Upstream: failing})
		go func() {
			d.Await(t.Context(), "s")
			listed <- d.View().Listed("s")
		}()
		synctest.Wait()
		failing.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		if <-listed {
			t.Error("listed by an upstream that is not up")
		}
	})
}

func TestOwnPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []string
		for i := range 2*PageSize + 1 {
			all = append(all, fmt.Sprint("t", i))
		}
		c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: newScript(map[string]string{"": page(all...)})})
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
	const app = `{"tools":[{"name":"show","_meta":{"ui":{"resourceUri":"ui://x"}}},{"name":"shared"},{"name":"helper"}]}`
	synctest.Test(t, func(t *testing.T) {
		c := start(t, nil, Source{ID: "app", Prefix: "app__", Upstream: newScript(map[string]string{"": app})},
			Source{ID: "plain", Prefix: "plain__", Upstream: newScript(map[string]string{"": page("shared", "other")})})
		synctest.Wait()
		for name, want := range map[string]string{"show": "app", "helper": "app", "shared": "", "other": "", "none": ""} {
			id, ok := c.View().Owner(name)
			if (want != "") != ok || ok && id != want {
				t.Errorf("%s belongs to %q, %v; want %q", name, id, ok, want)
			}
		}
	})
}

func TestReportsOnlyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(map[string]string{"": page("a", "b")})
		s.status.State = upstream.Connecting
		var mu sync.Mutex
		var got []string
		c := New(Config{
			Sources: []Source{{ID: "s", Prefix: "s__", Upstream: s, Timeout: time.Minute}},
			Policy:  policy.New(map[string]policy.Tools{"s": {Deny: []string{"b"}}}), ServerInfo: []byte(`{}`), Log: slog.New(slog.DiscardHandler),
			Changed: func(r Report) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprintf("%s %s %q %d/%d", r.ID, r.State, r.Reason, r.Shown, r.Denied))
			},
		})
		c.Start()
		defer c.Close()
		for _, state := range []upstream.State{
			upstream.Backoff, upstream.Connecting, upstream.Backoff, upstream.Connecting, upstream.Live, upstream.Backoff, upstream.Connecting, upstream.Live,
		} {
			synctest.Wait()
			s.set(func(st *upstream.Status) { st.State = state })
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := []string{
			`s backoff "reconnecting" 0/0`, `s live "" 1/1`, `s backoff "" 1/1`, `s live "" 1/1`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("reported\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
