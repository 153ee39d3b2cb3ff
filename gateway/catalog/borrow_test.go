package catalog

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

// connecting is an engine that has not connected yet.
func connecting(names ...string) *script {
	s := newScriptOf(names...)
	s.status.State, s.status.Session = upstream.Connecting, 0
	return s
}

// servedBy has another engine serve the first source.
func servedBy(s *script) func(*Config) {
	return func(cfg *Config) { cfg.Sources[0].Upstream = s }
}

// What an upstream has listed is shown until another engine of it has listed for itself, which is told of where it differs.
func TestNothingIsMissedUntilAnotherEngineHasListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, nil, one(newScriptOf("a", "b")))
		before := told(c)
		same, reports := connecting("a", "b"), 0
		c = replaced(t, c, func(cfg *Config) {
			servedBy(same)(cfg)
			cfg.Changed = func(Report) { reports++ }
		})
		wantNames(t, c, "s__a", "s__b")
		if got := absent(c); got != "" {
			t.Errorf("absent is %s", got)
		}
		release := same.holds()
		same.set(reconnected)
		wantNames(t, c, "s__a", "s__b")
		if reports != 0 {
			t.Errorf("%d reports of what another engine has listed", reports)
		}
		release()
		wantNames(t, c, "s__a", "s__b")
		wantTold(t, c, before, "a reload that changes no tool")
		wantAsked(t, same, 1, "it lists for itself")
		if reports != 1 {
			t.Errorf("%d reports of its own listing", reports)
		}

		other := connecting("b", "c")
		c = replaced(t, c, servedBy(other))
		wantNames(t, c, "s__a", "s__b")
		wantTold(t, c, before, "the switch")
		other.set(reconnected)
		wantNames(t, c, "s__b", "s__c")
		wantTold(t, c, before+1, "another list")
		other.lists("d")
		other.set(notice)
		wantNames(t, c, "s__d") // at once, as after any first listing
	})
}

// A borrowed listing stays while the engine is trying to connect, and leaves with one that has given up.
func TestABorrowedListingLeavesWithItsUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := connecting("new")
		c := replaced(t, start(t, nil, one(newScriptOf("old"))), servedBy(other))
		other.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		wantNames(t, c, "s__old")
		other.set(func(st *upstream.Status) { st.State = upstream.Verdict })
		wantNames(t, c)
		if got := absent(c); !strings.Contains(got, reasonGivenUp) {
			t.Errorf("absent is %s", got)
		}
		next := connecting("next")
		c = replaced(t, c, servedBy(next))
		wantNames(t, c)

		c = start(t, nil, one(newScriptOf("old")))
		n := heir(t, c, servedBy(next))
		n.Start()
		next.set(func(st *upstream.Status) { st.State = upstream.Verdict })
		wantNames(t, n)
		n.Replace()
		wantNames(t, n)
	})
}

// A borrowed listing is handed on by a reload that keeps the engine, which lists for itself nevertheless, once.
func TestABorrowedListingOutlastsAReload(t *testing.T) {
	for name, when := range map[string]func(next *script, reload func()){
		"before it connects": func(next *script, reload func()) { reload(); next.set(reconnected) },
		"after it":           func(next *script, reload func()) { release := next.holds(); next.set(reconnected); reload(); release() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next := connecting("new")
				c := replaced(t, start(t, nil, one(newScriptOf("old"))), servedBy(next))
				when(next, func() {
					c = replaced(t, c, nil)
					wantNames(t, c, "s__old")
				})
				wantNames(t, c, "s__new")
			})
		})
	}
}

// What the engine before lists at the last moment takes no place of what the other has listed for itself, or lists.
func TestTheListingOfAnotherEngineIsTheNewer(t *testing.T) {
	for name, run := range map[string]func(release, switched, relist func()){
		"listed before": func(release, switched, relist func()) { release(); relist(); switched() },
		"lists after":   func(release, switched, relist func()) { relist(); switched(); release() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, other := newScriptOf("old"), newScriptOf("new")
				c := start(t, nil, one(old))
				n := heir(t, c, servedBy(other))
				release := other.holds()
				n.Start()
				wantNames(t, n, "s__old")
				run(func() { release(); wantNames(t, n, "s__new") }, n.Replace, func() {
					<-time.After(2 * time.Second)
					old.lists("older")
					old.set(notice)
					wantNames(t, c, "s__older")
				})
				wantNames(t, n, "s__new")
				wantNames(t, replaced(t, n, nil), "s__new")
			})
		})
	}
}

// What is borrowed is the last that the engine before has listed, and gives way to what that which borrowed it lists, though that began
// earlier.
func TestTheLastListingIsBorrowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, other := newScriptOf("old"), newScriptOf("new")
		c := start(t, nil, one(old))
		n := heir(t, c, servedBy(other))
		release := other.holds()
		n.Start()
		<-time.After(2 * time.Second)
		old.lists("older")
		old.set(notice)
		wantNames(t, c, "s__older")
		wantNames(t, n, "s__old")
		n.Replace()
		wantNames(t, n, "s__older")

		last := heir(t, n, nil)
		wantNames(t, last, "s__older")
		release()
		wantNames(t, n, "s__new")
		last.Replace()
		wantNames(t, last, "s__new")
	})
}

// What went wrong with an engine's own listing is told, though another is shown.
func TestAFailureBehindABorrowedListingIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := connecting("new")
		var last Report
		c := replaced(t, start(t, nil, one(newScriptOf("old"))), func(cfg *Config) {
			servedBy(other)(cfg)
			cfg.Changed = func(r Report) { last = r }
		})
		other.change(func(s *script) { s.fails = errors.New("not now") })
		other.set(reconnected)
		wantNames(t, c, "s__old")
		if last.Err == nil || !last.Listed {
			t.Errorf("reported %+v", last)
		}
		other.change(func(s *script) { s.fails = nil })
		<-time.After(2 * time.Second)
		wantNames(t, c, "s__new")
	})
}

// A borrowed listing follows the prefix and the rules of the source that shows it.
func TestABorrowedListingIsJudgedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replaced(t, start(t, nil, one(newScriptOf("a", "b"))), func(cfg *Config) {
			servedBy(connecting())(cfg)
			cfg.Sources[0].Prefix = "other__"
			cfg.Policy = policy.New(map[string]policy.Tools{"s": {Deny: []string{"b"}}})
		})
		wantNames(t, c, "other__a")
	})
}

// A borrowed listing says nothing of the engine that shows it: whoever waits for that one's own is not told that it is there.
func TestABorrowedListingIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := connecting("new")
		c := replaced(t, start(t, nil, one(newScriptOf("old"))), servedBy(other))
		began := time.Now()
		go func() {
			<-time.After(3 * time.Second)
			other.set(reconnected)
		}()
		c.Relist(t.Context(), "s")
		wantNames(t, c, "s__new")
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("waited %v for its own listing", waited)
		}

		down := connecting()
		c = replaced(t, c, servedBy(down))
		settled := false
		go func() { c.Settled(t.Context()); settled = true }()
		synctest.Wait()
		if settled {
			t.Error("the engine has settled before it has connected")
		}
		down.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		began = time.Now()
		c.Relist(t.Context(), "s")
		if synctest.Wait(); !settled || time.Since(began) != 0 {
			t.Errorf("one that cannot connect has settled: %v, and was waited for %v", settled, time.Since(began))
		}
	})
}
