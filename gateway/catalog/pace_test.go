package catalog

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/upstream"
)

// Servers that do something whenever they are asked are asked once a second, and a second server does not feel it.
func TestFaultyServersDoNotSpin(t *testing.T) {
	const minute = 60
	for name, test := range map[string]struct {
		misbehave func(*script)
		most      int // listings in a minute
		kept      bool
	}{
		"changes its tools on each list": {func(s *script) {
			n := 0
			s.onPage = func() {
				n++
				s.lists(fmt.Sprint("t", n))
				s.set(notice)
			}
		}, minute + 2, true},
		"loses its session on each list": {func(s *script) { s.onPage = func() { s.set(reconnected) } }, minute + 2, false},
		"loses its session on a second list": {func(s *script) {
			n := 0
			s.onPage = func() {
				if n++; n%2 == 0 {
					s.set(reconnected)
				} else {
					s.set(notice)
				}
			}
		}, minute + 2, true},
		"fails each list":              {func(s *script) { s.pages = nil }, 20, false},
		"fails, and changes its tools": {func(s *script) { s.pages = nil; s.onPage = func() { s.set(notice) } }, minute + 2, false},
		"repeats a cursor, and its tools too": {func(s *script) {
			s.pages[""] = `{"tools":[` + tools("t") + `],"nextCursor":""}`
			s.onPage = func() { s.set(notice) }
		}, 2*minute + 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good, bad := newScriptOf("t"), newScriptOf("t")
				test.misbehave(bad)
				c := start(t, nil, Source{ID: "good", Prefix: "good__", Upstream: good}, Source{ID: "bad", Prefix: "bad__", Upstream: bad})
				<-time.After(minute * time.Second)
				synctest.Wait()
				if got := bad.count(); got > test.most || got < 2 {
					t.Errorf("%d listings in a minute, want 2 to %d", got, test.most)
				}
				if got := good.count(); got != 1 {
					t.Errorf("the other server was listed %d times", got)
				}
				if c.View().Listed("bad") != test.kept || !c.View().Listed("good") {
					t.Errorf("listed: %v and %v", c.View().Listed("bad"), c.View().Listed("good"))
				}
			})
		})
	}
}

// A server that restarts every second keeps its last list, whether a listing fits into a session or not.
func TestServerThatRestartsEverySecond(t *testing.T) {
	for name, delay := range map[string]time.Duration{"lists at once": 0, "lists too slowly": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScriptOf("t")
				c := start(t, nil, one(s))
				wantNames(t, c, "s__t")
				s.change(func(s *script) { s.delay = delay })
				for range 60 {
					s.set(func(st *upstream.Status) { st.State = upstream.Backoff })
					<-time.After(time.Second / 2)
					s.set(func(st *upstream.Status) { st.State = upstream.Connecting })
					s.set(reconnected)
					<-time.After(time.Second / 2)
					wantNames(t, c, "s__t")
				}
				if got := s.count(); got > 62 {
					t.Errorf("%d listings in a minute of sessions", got)
				}
				if s.most > 1 {
					t.Errorf("%d listings at once", s.most)
				}
				wantTold(t, c, 1, "a minute of restarts with the same tools")
			})
		})
	}
}

func TestAHundredPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := map[string]string{}
		var want []string
		cursor := ""
		for i := range maxPages {
			name := fmt.Sprint("t", i)
			want = append(want, "s__"+name)
			next := fmt.Sprint("c", i)
			pages[cursor] = `{"tools":[` + tools(name) + `],"nextCursor":"` + next + `"}`
			if i == maxPages-1 {
				pages[cursor] = pageOf(name)
			}
			cursor = next
		}
		c := start(t, nil, one(newScript(pages)))
		wantNames(t, c, want...)
	})
}

// The first notice after a first listing is followed at once: many servers send one as soon as they are up.
func TestFirstNoticeIsFollowedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("a")
		c := start(t, nil, one(s))
		wantNames(t, c, "s__a")
		s.lists("b")
		s.set(notice)
		wantNames(t, c, "s__b")
		s.lists("c")
		s.set(notice)
		wantNames(t, c, "s__b")
		<-time.After(pause)
		wantNames(t, c, "s__c")
	})
}

func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polled, not := newScriptOf("t"), newScriptOf("t")
		source := one(polled)
		source.Poll = time.Minute
		start(t, nil, source, Source{ID: "not", Prefix: "not__", Upstream: not})
		<-time.After(10*time.Minute + time.Second)
		if got, other := polled.count(), not.count(); got != 11 || other != 1 {
			t.Errorf("listed %d and %d times in ten minutes, want 11 and 1", got, other)
		}
		polled.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		<-time.After(10 * time.Minute)
		if got := polled.count(); got != 11 {
			t.Errorf("listed %d times without a session", got-11)
		}
	})
}

// A server that never ends a page is given up on after the listing's time, and asked again.
func TestListingHasATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("t")
		release := s.holds()
		source := one(s)
		source.Timeout = time.Minute
		c := start(t, nil, source)
		<-time.After(59 * time.Second)
		wantNames(t, c)
		if got := absent(c); got != `{"s":"listing"}` {
			t.Errorf("absent: %s", got)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if got := absent(c); got != `{"s":"list-failed"}` {
			t.Errorf("absent: %s", got)
		}
		release()
		<-time.After(time.Minute)
		wantNames(t, c, "s__t")
	})
}
