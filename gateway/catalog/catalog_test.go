package catalog

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

func TestMergesAllPagesInConfigOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newScript(map[string]string{"": `{"tools":[` + tools("z", "y") + `],"nextCursor":"two"}`, "two": `{"tools":[` + tools("x") + `],"nextCursor":null}`})
		b := newScript(map[string]string{"": pageOf("m", "secret")})
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
		good, slow, dead, denied := newScript(map[string]string{"": pageOf("t")}), newScript(map[string]string{"": pageOf("t")}), newScript(nil), newScript(nil)
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
		s := newScript(map[string]string{"": pageOf("old")})
		c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: s})
		wantNames(t, c, "s__old")

		s.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		wantNames(t, c, "s__old") // kept through a reconnect

		s.mu.Lock()
		s.hold, s.pages = make(chan struct{}), map[string]string{"": pageOf("new")}
		s.mu.Unlock()
		s.set(func(st *upstream.Status) { st.State, st.Session = upstream.Live, 2 })
		synctest.Wait()
		s.set(func(st *upstream.Status) { st.Session = 3 }) // ended under the listing
		s.mu.Lock()
		s.pages[""] = pageOf("newest")
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

// What comes of a session that has ended is dropped, whatever has become of the server, and however its answer comes.
func TestEndedSessionPublishesNothing(t *testing.T) {
	for _, state := range []upstream.State{upstream.Backoff, upstream.Connecting, upstream.Verdict, upstream.Held, upstream.Closing, upstream.Closed} {
		t.Run(string(state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScriptOf("t")
				s.deaf = true
				release := s.holds()
				c := start(t, nil, one(s))
				synctest.Wait()
				s.set(func(st *upstream.Status) { st.State = state })
				release()
				wantNames(t, c)
			})
		})
	}
}

// A server that is given up on leaves the list, for good as far as the catalog knows; nothing of it is kept for a later session.
func TestGivenUpLeavesTheList(t *testing.T) {
	for state, reason := range map[upstream.State]string{
		upstream.Verdict: reasonGivenUp, upstream.Held: reasonHeld, upstream.Closing: reasonClosed, upstream.Closed: reasonClosed,
	} {
		t.Run(string(state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScriptOf("t")
				c := start(t, nil, one(s))
				wantNames(t, c, "s__t")
				wantTold(t, c, 1, "the first listing")
				s.set(func(st *upstream.Status) { st.State = state })
				wantNames(t, c)
				wantTold(t, c, 2, "the end")
				if got, want := absent(c), `{"s":"`+reason+`"}`; got != want {
					t.Errorf("absent: %s, want %s", got, want)
				}
				s.set(func(st *upstream.Status) { st.State = upstream.Live }) // a server that is released
				<-time.After(pause)
				wantNames(t, c, "s__t")
			})
		})
	}
}

// A listing on a session that has ended is not waited for: the next session's begins.
func TestEndedSessionHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("t")
		s.holds()
		c := start(t, nil, one(s))
		synctest.Wait()
		s.change(func(s *script) { s.hold = nil })
		s.set(reconnected)
		<-time.After(pause)
		wantNames(t, c, "s__t")
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
		"no second method":  {"": `{"tools":[` + tools("new") + `],"nextCursor":"a"}`, "a": "error -32601"},
		"cursor too long":   {"": `{"tools":[` + tools("new") + `],"nextCursor":"` + strings.Repeat("x", maxCursor) + `"}`, strings.Repeat("x", maxCursor): `{"tools":[]}`},
		"pages of 40 MiB":   {"": `{"pad":"` + strings.Repeat("x", 20<<20) + `","tools":[],"nextCursor":"a"}`, "a": `{"pad":"` + strings.Repeat("x", 20<<20) + `","tools":[]}`},
		"no tools":          {"": `{}`},
		"tools an object":   {"": `{"tools":{}}`},
		"tools twice":       {"": `{"tools":[],"tools":[]}`},
		"an error":          {"": "error -32603"},
		"over 32 MiB":       {"": `{"tools":[{"name":"a","description":"` + strings.Repeat("x", maxListing) + `"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(map[string]string{"": pageOf("good")})
				c := start(t, nil, Source{ID: "s", Prefix: "s__", Upstream: s})
				wantNames(t, c, "s__good")
				s.mu.Lock()
				s.pages = pages
				s.mu.Unlock()
				s.set(func(st *upstream.Status) { st.Changes.Tools++ })
				wantNames(t, c, "s__good")
				s.mu.Lock()
				s.pages = map[string]string{"": pageOf("better")}
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

// A listing that fails is tried again after pauses that grow; one on a new session is not made to wait for them.
func TestNewSessionIsListedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil)
		c := start(t, nil, one(s))
		<-time.After(10 * time.Minute)
		wantNames(t, c)
		asked := s.count()
		if asked < 20 || asked > 60 {
			t.Errorf("tried %d times in ten minutes, with pauses up to 30 s", asked)
		}
		tried := make(chan struct{}, 1)
		s.change(func(s *script) { s.onPage = func() { tried <- struct{}{} } })
		<-tried // a pause of up to 30 s begins
		synctest.Wait()
		s.change(func(s *script) { s.onPage = nil })
		s.lists("t")
		s.set(reconnected)
		<-time.After(pause)
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
		s := newScript(map[string]string{"": pageOf("a")})
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
		s.pages[""] = pageOf("b")
		s.mu.Unlock()
		c.Relist(t.Context(), "s")
		wantNames(t, c, "s__b")
	})
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(map[string]string{"": pageOf("a")})
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
		began := time.Now()
		failing.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		if <-listed || time.Since(began) != 0 {
			t.Error("listed by an upstream that is not up, or waited for it")
		}
		failing.set(reconnected)
		synctest.Wait()
		if d.Await(t.Context(), "s"); time.Since(began) != 0 {
			t.Error("waited for a listing that has failed")
		}
	})
}

func TestReportsOnlyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(map[string]string{"": pageOf("a", "b")})
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
