package catalog

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

// heir is the catalog that is built to replace c, with what change makes of its configuration. It is not started.
func heir(t *testing.T, c *Catalog, change func(*Config)) *Catalog {
	t.Helper()
	synctest.Wait()
	cfg := c.cfg
	cfg.Sources = append([]Source(nil), cfg.Sources...)
	cfg.Before = c
	if change != nil {
		change(&cfg)
	}
	next := New(cfg)
	t.Cleanup(next.Close)
	return next
}

// replaced is the heir of c once it has taken c's place.
func replaced(t *testing.T, c *Catalog, change func(*Config)) *Catalog {
	t.Helper()
	next := heir(t, c, change)
	next.Start()
	synctest.Wait()
	next.Replace()
	c.Close()
	synctest.Wait()
	return next
}

func wantAsked(t *testing.T, s *script, want int, why string) {
	t.Helper()
	synctest.Wait()
	if got := s.count(); got != want {
		t.Errorf("asked for its tools %d times, want %d: %s", got, want, why)
	}
}

// An upstream that a reload has not changed keeps its listing without being asked again, and polls go on as they were.
func TestHeirListsNothingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("a", "b")
		source := one(s)
		source.Poll = time.Minute
		c := start(t, nil, source)
		wantNames(t, c, "s__a", "s__b")
		told := told(c)
		<-time.After(30 * time.Second)
		c = replaced(t, c, nil)
		wantNames(t, c, "s__a", "s__b")
		wantTold(t, c, told, "a reload that changes no tool")
		<-time.After(29 * time.Second)
		wantAsked(t, s, 1, "nothing has changed")
		<-time.After(2 * time.Second)
		wantAsked(t, s, 2, "a minute after the listing")
	})
}

// Another policy sifts the same listing, and those whose list differs are told at the switch.
func TestHeirSiftsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("a", "b")
		c := start(t, nil, one(s))
		wantNames(t, c, "s__a", "s__b")
		before := told(c)
		_, next := c.Changes("me")
		n := heir(t, c, func(cfg *Config) { cfg.Policy = policy.New(map[string]policy.Tools{"s": {Deny: []string{"a"}}}) })
		n.Start()
		wantNames(t, n, "s__b")
		wantTold(t, c, before, "a catalog that nobody sees yet")
		n.Replace()
		wantTold(t, n, before+1, "the switch")
		select {
		case <-next:
		default:
			t.Error("who listens to the catalog before has not been told")
		}
		wantAsked(t, s, 1, "the policy is the gateway's own")
	})
}

// A client that reacts to a notice has the list that it was told of, though the catalog that it asked is replaced meanwhile.
func TestListOutlastsAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("old")
		c := start(t, nil, one(s))
		wantNames(t, c, "s__old")
		s.lists("new")
		s.change(func(s *script) { s.delay = 2 * time.Second })
		s.set(notice)
		wantTold(t, c, 2, "a notice")
		listed := fresh(t, c)
		<-time.After(600 * time.Millisecond)
		n := replaced(t, c, nil)
		if got, after := listed(); got != "s__new" || after != 2600*time.Millisecond {
			t.Errorf("listed %s after %v", got, after)
		}
		wantTold(t, n, 2, "a list that has waited")
		if got, _ := fresh(t, c)(); got != "s__new" {
			t.Errorf("the catalog before gives %s", got)
		}
	})
}

// Who was served the old list after a notice is told of the new one, whichever catalog has served it.
func TestListingIsOwedAcrossAReload(t *testing.T) {
	for name, reload := range map[string]func(t *testing.T, c *Catalog, stale func()) *Catalog{
		"before it": func(t *testing.T, c *Catalog, stale func()) *Catalog {
			stale()
			return replaced(t, c, nil)
		},
		"during it": func(t *testing.T, c *Catalog, stale func()) *Catalog {
			n := heir(t, c, nil)
			n.Start()
			stale()
			n.Replace()
			c.Close()
			return n
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScriptOf("old")
				c := start(t, nil, one(s))
				wantNames(t, c, "s__old")
				release := s.holds()
				s.lists("new")
				s.set(notice)
				wantTold(t, c, 2, "a notice")
				n := reload(t, c, func() {
					if got, _ := fresh(t, c)(); got != "s__old" {
						t.Errorf("listed %s", got)
					}
				})
				wantTold(t, n, 2, "a reload")
				release()
				wantNames(t, n, "s__new")
				wantTold(t, n, 3, "the listing that was owed")
			})
		})
	}
}

// A notice that only the heir has heard is told at the switch, and its listing too, since nobody was told of it by then.
func TestNoticeBeforeTheSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("old")
		c := start(t, nil, one(s))
		wantNames(t, c, "s__old")
		n := heir(t, c, nil)
		n.Start()
		synctest.Wait()
		c.Close() // so that it hears nothing
		release := s.holds()
		s.lists("new")
		s.set(notice)
		wantTold(t, n, 1, "a notice to a catalog that nobody sees")
		n.Replace()
		wantTold(t, n, 2, "the switch")
		release()
		wantNames(t, n, "s__new")
		wantTold(t, n, 3, "the listing")
	})
}

// What the catalog before lists until the switch stays listed, and no listing that began earlier takes its place.
func TestLaterListingStaysAtTheSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("old")
		c := start(t, nil, one(s))
		wantNames(t, c, "s__old")
		n := heir(t, c, nil)
		hold := s.holds()
		s.lists("slow")
		n.mu.Lock()
		n.sources[0].ask()
		n.mu.Unlock()
		n.Start()
		wantAsked(t, s, 2, "the heir asks")
		s.change(func(s *script) { s.hold = nil })
		s.lists("called")
		go c.Relist(t.Context(), "s")
		wantNames(t, c, "s__called")
		wantTold(t, c, 2, "a listing that a call has asked for")
		n.Replace()
		c.Close()
		wantNames(t, n, "s__called")
		wantTold(t, n, 2, "a switch to the same tools")
		hold()
		wantNames(t, n, "s__called")
		wantTold(t, n, 2, "an earlier listing that ends")
	})
}

// A first listing that the catalog before has had meanwhile is one for the heir as well; what has left the list stays away.
func TestFirstListingDuringAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("t")
		release := s.holds()
		c := start(t, nil, one(s))
		next, left := heir(t, c, func(cfg *Config) {
			cfg.Changed = func(r Report) { t.Errorf("reported %+v, which the catalog before has", r) }
		}), heir(t, c, nil)
		release()
		wantNames(t, c, "s__t")
		left.sources[0].state = upstream.Verdict
		left.Replace()
		wantNames(t, left)
		awaited := make(chan struct{})
		go func() {
			defer close(awaited)
			next.Await(t.Context(), "s")
		}()
		synctest.Wait()
		began := time.Now()
		next.Replace()
		<-awaited
		if after := time.Since(began); after != 0 {
			t.Errorf("waited %v for a listing that is there", after)
		}
		next.Settled(t.Context(), "s")
		next.Start()
		s.set(reconnected)
		wantNames(t, next, "s__t")
	})
}

// A catalog that has been replaced tells nobody anything.
func TestReplacedCatalogIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("t")
		c := start(t, nil, one(s))
		n := heir(t, c, nil)
		n.Replace()
		before := told(n)
		s.set(notice)
		wantTold(t, n, before, "a notice that only the catalog before has heard")
	})
}

// Another prefix renames what is listed, just as the next listing will.
func TestPrefixChangesWithoutAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(map[string]string{"": `{"tools":[{"x":1,"name":"a","inputSchema":{"type":"object"}},{"name":"b"}]}`})
		c := start(t, nil, one(s))
		wantNames(t, c, "s__a", "s__b")
		release := s.holds()
		n := replaced(t, c, func(cfg *Config) { cfg.Sources[0].Prefix = "new__" })
		wantNames(t, n, "new__a", "new__b")
		if got := n.View().Tool("s", "a"); got.Public != "new__a" || string(got.JSON) != `{"x":1,"name":"new__a","inputSchema":{"type":"object"}}` {
			t.Errorf("%s: %s", got.Public, got.JSON)
		}
		wantTold(t, n, 2, "the switch")
		wantAsked(t, s, 1, "the tools are known")
		wantNames(t, c, "s__a", "s__b")
		release()
		s.set(reconnected)
		wantAsked(t, s, 2, "a new session")
		wantTold(t, n, 2, "a listing of the same tools")
	})
}

// Rules for secrets hold at once; only what was taken out by others has to be listed again, and is shown without it until then.
func TestRedactionChangesWithoutAGap(t *testing.T) {
	for name, test := range map[string]struct {
		page           string
		verbatim       bool // as it becomes
		meanwhile, end string
		asked          int
	}{
		"to redacted":                      {secretive, false, "s__plain s__says", "s__plain s__says", 1},
		"to verbatim, something hidden":    {`{"tools":[{"name":"plain"},{"name":"hunter22"}]}`, true, "s__plain", "s__plain s__hunter22", 2},
		"to verbatim, something taken out": {`{"tools":[{"name":"says","description":"hunter22"}]}`, true, "s__says", "s__says", 2},
		"to verbatim, nothing hidden":      {`{"tools":[{"name":"plain"}]}`, true, "s__plain", "s__plain", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(map[string]string{"": test.page})
				v := newVault("hunter22")
				c := New(Config{
					Sources: []Source{{ID: "s", Prefix: "s__", Upstream: s, Timeout: time.Minute, Verbatim: !test.verbatim}},
					Policy:  policy.New(map[string]policy.Tools{"s": {}}), ServerInfo: []byte(`{}`),
					Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Redact: v.redact, Secrets: v.version.Load,
				})
				t.Cleanup(c.Close)
				c.Start()
				synctest.Wait()
				release := s.holds()
				n := replaced(t, c, func(cfg *Config) { cfg.Sources[0].Verbatim = test.verbatim })
				wantNames(t, n, strings.Fields(test.meanwhile)...)
				if text := string(n.View().Page(0).Raw()); strings.Contains(text, "hunter22") {
					t.Errorf("served %s", text)
				}
				release()
				wantNames(t, n, strings.Fields(test.end)...)
				wantAsked(t, s, test.asked, name)
				if text := string(n.View().Page(0).Raw()); strings.Contains(text, "hunter22") != (test.asked == 2) {
					t.Errorf("served %s in the end", text)
				}
			})
		})
	}
}

// Calls that leave no place for the list are no failure of the server's: it is tried again soon, and waited for.
func TestListThatFindsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("t")
		full := &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.QueueFull}
		s.fails = full
		c := start(t, nil, one(s))
		synctest.Wait()
		if got := absent(c); got != `{"s":"listing"}` {
			t.Errorf("absent: %s", got)
		}
		settled := make(chan struct{})
		go func() {
			defer close(settled)
			c.Settled(t.Context(), "s")
		}()
		synctest.Wait()
		select {
		case <-settled:
			t.Error("it has settled without a listing")
		default:
		}
		<-time.After(10 * time.Second)
		if got := s.count(); got < 10 || got > 12 {
			t.Errorf("asked %d times in 10 s, want once a second", got)
		}
		s.change(func(s *script) { s.fails = nil })
		c.Await(t.Context(), "s")
		wantNames(t, c, "s__t")
		<-settled

		s.change(func(s *script) { s.fails = full })
		s.set(reconnected)
		<-time.After(10 * time.Second)
		wantNames(t, c, "s__t")
		s.lists("new")
		s.change(func(s *script) { s.fails = nil })
		<-time.After(pause)
		wantNames(t, c, "s__new")
	})
}
