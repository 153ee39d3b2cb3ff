package catalog

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

// A server's own notice counts at once, also while its tools are listed, and for those who may see something of it alone.
func TestOwnNoticeCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hidden := newScriptOf("t"), newScriptOf("t")
		c := start(t, map[string]policy.Tools{"hidden": {Allow: []string{}}}, one(s), Source{ID: "hidden", Prefix: "hidden__", Upstream: hidden})
		wantTold(t, c, 1, "the first listing")
		_, next := c.Changes("me")
		release := s.holds()
		s.set(notice)
		wantTold(t, c, 2, "a notice")
		select {
		case <-next:
		default:
			t.Error("the channel is open after a notice")
		}
		s.set(notice)
		wantTold(t, c, 3, "a notice while the tools are listed")
		hidden.set(notice)
		wantTold(t, c, 3, "a notice of a server that the caller may see nothing of")
		s.set(func(st *upstream.Status) { st.Changes.Prompts++; st.Changes.Resources++; st.Changes.Updated++ })
		wantTold(t, c, 3, "notices of other kinds")
		s.set(func(st *upstream.Status) { st.State = upstream.Backoff; st.Changes.Tools++ })
		wantTold(t, c, 4, "the last notice of a session")
		release()
	})
}

// What a server has told before the catalog looks has nobody to hear it.
func TestEarlierNoticesCountNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf()
		s.status.Changes.Tools = 7
		c := start(t, nil, one(s))
		wantTold(t, c, 0, "an empty first listing")
		if got := s.count(); got != 1 {
			t.Errorf("listed %d times, want once", got)
		}
	})
}

// What the gateway makes itself counts only where the list of tools differs.
func TestOwnMakingCountsIfTheListDiffers(t *testing.T) {
	for name, cause := range map[string]func(s *script){
		"reconnect": func(s *script) {
			s.set(func(st *upstream.Status) { st.State = upstream.Backoff })
			synctest.Wait()
			s.set(reconnected)
		},
		"poll":  func(*script) { <-time.After(time.Minute) },
		"retry": func(s *script) { s.set(reconnected) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScriptOf("a", "b")
				source := one(s)
				source.Poll = time.Minute
				c := start(t, map[string]policy.Tools{"s": {Deny: []string{"denied"}}}, source)
				wantTold(t, c, 1, "the first listing")
				told := uint64(1)
				for _, row := range []struct {
					list []string
					news uint64
				}{{[]string{"a", "b"}, 0}, {[]string{"a", "b", "denied"}, 0}, {[]string{"b", "a"}, 1}, {[]string{"b"}, 1}, {[]string{"b"}, 0}} {
					if name == "retry" {
						s.change(func(s *script) { s.pages = nil })
						cause(s)
						<-time.After(pause)
						s.lists(row.list...)
						<-time.After(2 * time.Second)
					} else {
						s.lists(row.list...)
						cause(s)
						<-time.After(pause)
					}
					told += row.news
					wantTold(t, c, told, fmt.Sprint("a listing of ", row.list))
				}
			})
		})
	}
}

// The listeners of a server's notice are told once, unless one of them may have been served the old list since.
func TestListingAfterANoticeIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("a")
		c := start(t, nil, one(s))
		wantTold(t, c, 1, "the first listing")
		s.lists("b")
		s.set(notice)
		wantTold(t, c, 2, "a notice and its listing")
		<-time.After(pause)

		release := s.holds()
		s.lists("c")
		s.set(notice)
		wantTold(t, c, 3, "a notice")
		c.Fresh(t.Context(), "me") // gives up after 5 s
		release()
		wantTold(t, c, 4, "a listing that comes after a list was served without it")
		wantNames(t, c, "s__c")
		<-time.After(pause)

		s.change(func(s *script) { s.pages = nil })
		s.set(notice)
		wantTold(t, c, 5, "a notice whose listing fails")
		s.lists("d")
		<-time.After(time.Minute)
		wantTold(t, c, 6, "the listing that was tried again")

		s.lists("e")
		s.change(func(s *script) { s.delay = time.Second })
		for i := range uint64(2) {
			s.set(notice)
			wantTold(t, c, 7+i, "a notice")
			c.Fresh(t.Context(), "me")
			wantNames(t, c, "s__"+string('e'+rune(i)))
			wantTold(t, c, 7+i, "a list that has waited")
			s.lists("f")
			<-time.After(pause)
		}
	})
}

// Who reacts to the notice of a server that has never listed is told of its listing.
func TestNoticeBeforeTheFirstListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("a")
		s.status.State = upstream.Connecting
		c := start(t, nil, one(s))
		synctest.Wait()
		s.set(notice)
		wantTold(t, c, 1, "a notice")
		c.Fresh(t.Context(), "me")
		s.set(reconnected)
		wantNames(t, c, "s__a")
		wantTold(t, c, 2, "the first listing")
	})
}

// Fifty servers that tell of changes all the time make one notice a second for a listener that takes one a second, and the last
// is not lost.
func TestStormOfNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sources []Source
		var scripts []*script
		for i := range 50 {
			s := newScriptOf("t")
			scripts = append(scripts, s)
			sources = append(sources, Source{ID: fmt.Sprint("u", i), Prefix: fmt.Sprint("u", i, "__"), Upstream: s})
		}
		c := start(t, nil, sources...)
		synctest.Wait()
		sent, stop := 0, make(chan struct{})
		seen, next := c.Changes("me")
		listener := make(chan struct{})
		go func() {
			defer close(listener)
			for {
				select {
				case <-next:
				case <-stop:
					return
				}
				var now uint64
				if now, next = c.Changes("me"); now == seen {
					t.Error("the channel was closed without a notice")
				}
				seen = now
				sent++
				<-time.After(time.Second)
			}
		}()
		const seconds = 5
		for range seconds * 2 {
			for _, s := range scripts {
				s.set(notice)
			}
			<-time.After(time.Second / 2)
		}
		for _, s := range scripts {
			s.lists("last")
		}
		scripts[0].set(notice)
		<-time.After(3 * time.Second)
		close(stop)
		<-listener
		if last := told(c); seen != last || sent > seconds+2 || sent < seconds {
			t.Errorf("%d notices in %d s, the last seen %d of %d", sent, seconds+1, seen, last)
		}
		for i, s := range scripts {
			if s.count() > seconds+4 {
				t.Errorf("server %d was listed %d times in %d s", i, s.count(), seconds)
			}
			if s.most > 1 {
				t.Errorf("server %d was listed %d times at once", i, s.most)
			}
		}
	})
}
