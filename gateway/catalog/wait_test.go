package catalog

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

// fresh asks for a list as a client does, and gives its names, and how long that took, when it has it.
func fresh(t *testing.T, c *Catalog) (listed func() (names string, after time.Duration)) {
	t.Helper()
	began := time.Now()
	got := make(chan *View)
	var after time.Duration
	go func() {
		v := c.Fresh(t.Context(), "me")
		after = time.Since(began)
		got <- v
	}()
	return func() (string, time.Duration) {
		v := <-got
		return strings.Join(names(t, v), " "), after
	}
}

// A list waits for the listing that began after the notice, not for one that ran then.
func TestListIsFreshAfterANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("old")
		c := start(t, nil, one(s))
		wantNames(t, c, "s__old")
		s.change(func(s *script) { s.delay = 500 * time.Millisecond })
		s.set(notice)
		<-time.After(100 * time.Millisecond) // the listing that runs has read the old list
		s.set(notice)
		synctest.Wait()
		listed := fresh(t, c)
		<-time.After(450 * time.Millisecond)
		s.lists("new")
		if got, after := listed(); got != "s__new" || after != 400*time.Millisecond+pause+500*time.Millisecond {
			t.Errorf("listed %s after %v", got, after)
		}
		if got, after := fresh(t, c)(); got != "s__new" || after != 0 {
			t.Errorf("listed %s after %v, with nothing to wait for", got, after)
		}
	})
}

// One notice is waited for 5 s, by all requests together, and those that follow while it is prolong nothing.
func TestListWaitsFiveSecondsOnceForANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("old")
		c := start(t, nil, one(s))
		wantNames(t, c, "s__old")
		release := s.holds()
		s.set(notice)
		<-time.After(3 * time.Second)
		s.set(notice)
		synctest.Wait()
		if got, after := fresh(t, c)(); got != "s__old" || after != 2*time.Second {
			t.Errorf("listed %s after %v, want the last good list after 2s", got, after)
		}
		s.set(notice)
		synctest.Wait()
		if _, after := fresh(t, c)(); after != 0 {
			t.Errorf("a second list waited for %v", after)
		}
		// What runs has begun after the first of three notices. The second was at 3 s.
		<-time.After(2 * time.Second)
		s.lists("new")
		release()
		synctest.Wait()
		s.holds()
		if _, after := fresh(t, c)(); after != time.Second {
			t.Errorf("waited for %v, want 1s: the notice came 7 s ago, and the listing after it begins in a second", after)
		}
	})
}

// The 5 s count from the first notice that the running listing did not follow.
func TestListWaitsForTheNoticeOfTheNextListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("old")
		c := start(t, nil, one(s))
		wantNames(t, c, "s__old")
		release := s.holds()
		s.set(notice)
		<-time.After(10 * time.Second)
		s.set(notice)
		synctest.Wait()
		if _, after := fresh(t, c)(); after != 0 {
			t.Errorf("waited for %v, while the first notice is waited for in vain", after)
		}
		release()
		s.holds()
		<-time.After(time.Second)
		if _, after := fresh(t, c)(); after != 4*time.Second {
			t.Errorf("waited for %v, want 4s: the second notice is 1 s old", after)
		}
	})
}

// What a list does not wait for: a first listing, a session that has ended, a server that the caller may see nothing of, and anything
// beyond its own end.
func TestListWaitsForNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, starting, hidden := newScriptOf("t"), newScriptOf("t"), newScriptOf("t")
		s.hold, starting.hold = nil, make(chan struct{})
		c := start(t, map[string]policy.Tools{"hidden": {Deny: []string{"*"}}}, one(s),
			Source{ID: "starting", Prefix: "starting__", Upstream: starting}, Source{ID: "hidden", Prefix: "hidden__", Upstream: hidden})
		wantNames(t, c, "s__t")
		hidden.holds()
		hidden.set(notice)
		starting.set(notice)
		synctest.Wait()
		if got, after := fresh(t, c)(); got != "s__t" || after != 0 {
			t.Errorf("listed %s after %v", got, after)
		}
		s.holds()
		s.set(notice)
		synctest.Wait()
		listed := fresh(t, c)
		<-time.After(time.Second)
		s.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		if got, after := listed(); got != "s__t" || after != time.Second {
			t.Errorf("listed %s after %v, want after 1s: the session has ended", got, after)
		}
		if _, after := fresh(t, c)(); after != 0 {
			t.Errorf("waited for %v without a session", after)
		}
		// A notice that no listing follows any more: the session ends before one may begin.
		s.change(func(s *script) { s.hold = nil })
		s.set(reconnected)
		<-time.After(pause)
		synctest.Wait()
		s.set(notice)
		synctest.Wait()
		listed = fresh(t, c)
		<-time.After(pause / 2)
		s.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		if _, after := listed(); after != pause/2 {
			t.Errorf("waited for %v, want until the session ended", after)
		}
	})
}

// What waits in a catalog ends with it, and with the request.
func TestWaitsEndWithCloseAndTheRequest(t *testing.T) {
	type wait = func(ctx context.Context, c *Catalog)
	for name, wait := range map[string]wait{
		"await":  func(ctx context.Context, c *Catalog) { c.Await(ctx, "first") },
		"relist": func(ctx context.Context, c *Catalog) { c.Relist(ctx, "s") },
		"list":   func(ctx context.Context, c *Catalog) { c.Fresh(ctx, "me") },
	} {
		for _, end := range []string{"close", "request"} {
			t.Run(name+" "+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, first := newScriptOf("t"), newScriptOf("t")
					first.hold = make(chan struct{})
					c := start(t, nil, one(s), Source{ID: "first", Prefix: "first__", Upstream: first})
					synctest.Wait()
					s.holds()
					s.set(notice)
					synctest.Wait()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					began, ended := time.Now(), make(chan struct{})
					go func() { wait(ctx, c); close(ended) }()
					<-time.After(time.Second)
					if end == "close" {
						c.Close()
					} else {
						cancel()
					}
					<-ended
					if after := time.Since(began); after != time.Second {
						t.Errorf("ended after %v", after)
					}
					c.Close()
					wait(t.Context(), c)
					if after := time.Since(began); after != time.Second {
						t.Errorf("a wait in a closed catalog took %v", after-time.Second)
					}
				})
			})
		}
	}
}

func TestWaitsLastAsLongAsTheCallMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, first := newScriptOf("t"), newScriptOf("t")
		first.hold = make(chan struct{})
		c := start(t, nil, one(s), Source{ID: "first", Prefix: "first__", Upstream: first})
		synctest.Wait()
		s.holds()
		took := func(f func()) time.Duration { began := time.Now(); f(); return time.Since(began) }
		two := upstream.WithWait(t.Context(), time.Now().Add(2*time.Second))
		if got := took(func() { c.Await(two, "first") }); got != 2*time.Second {
			t.Errorf("Await took %v, want 2s", got)
		}
		if got := took(func() { c.Await(two, "first"); c.Relist(two, "s") }); got != 0 {
			t.Errorf("a call that has waited enough waited for %v", got)
		}
		if got := took(func() { c.Await(t.Context(), "first") }); got != 5*time.Second {
			t.Errorf("Await took %v, want 5s", got)
		}
		if got := took(func() { c.Relist(t.Context(), "s") }); got != 5*time.Second {
			t.Errorf("Relist took %v, want 5s", got)
		}
	})
}

// Many calls share the listing that one has asked for, or that a notice has brought about; the latter uses up no wish.
func TestRelistIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("a")
		c := start(t, nil, one(s))
		wantNames(t, c, "s__a")
		ask := func(listed chan<- bool) {
			c.Relist(t.Context(), "s")
			listed <- c.View().Tool("s", "b") != nil
		}
		listed := make(chan bool)
		s.lists("b")
		release := s.holds()
		s.set(notice)
		synctest.Wait()
		go ask(listed)
		synctest.Wait()
		release()
		if !<-listed {
			t.Error("refused while the listing that follows a notice was on its way")
		}
		s.lists("a")
		c.Relist(t.Context(), "s")
		wantNames(t, c, "s__a")

		<-time.After(relistInterval)
		release = s.holds()
		s.lists("b")
		before := s.count()
		for range 3 {
			go ask(listed)
		}
		<-time.After(time.Second)
		release()
		for range 3 {
			if !<-listed {
				t.Error("refused while the listing that another call asked for was on its way")
			}
		}
		if got := s.count() - before; got != 1 {
			t.Errorf("three wishes made %d listings, want 1", got)
		}
	})
}

// A wish during a listing is for one that begins after it; one without a session is for nothing.
func TestRelistBeginsAfterTheWish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("a")
		s.delay = time.Second
		source := one(s)
		source.Poll = time.Minute
		c := start(t, nil, source)
		<-time.After(time.Second)
		wantNames(t, c, "s__a")
		<-time.After(time.Minute + time.Second/2)
		done := make(chan time.Time)
		go func() { c.Relist(t.Context(), "s"); done <- time.Now() }()
		began := time.Now()
		if got := (<-done).Sub(began); got != 3*time.Second/2 {
			t.Errorf("the listing ended %v after the wish, want 1.5s", got)
		}
		<-time.After(relistInterval)
		s.holds()
		go func() { c.Relist(t.Context(), "s"); done <- time.Now() }()
		<-time.After(time.Second)
		s.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		<-done
		synctest.Wait()
		began = time.Now()
		c.Relist(t.Context(), "s")
		c.Relist(t.Context(), "unknown")
		if time.Since(began) != 0 {
			t.Error("waited for a listing that nobody is asked for")
		}
		<-time.After(relistInterval)
		c.Relist(t.Context(), "s")
		s.change(func(s *script) { s.hold = nil })
		s.set(reconnected)
		<-time.After(pause + s.delay)
		s.lists("b")
		c.Relist(t.Context(), "s")
		wantNames(t, c, "s__b") // what was asked for without a session has used up nothing
	})
}

// A wish that a session's end leaves behind within the pause is not waited for either.
func TestRelistEndsWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("a")
		c := start(t, nil, one(s))
		synctest.Wait()
		s.set(notice)
		synctest.Wait()
		s.set(notice) // is followed after a pause
		synctest.Wait()
		ended := make(chan time.Duration)
		began := time.Now()
		go func() { c.Relist(t.Context(), "s"); ended <- time.Since(began) }()
		<-time.After(pause / 2)
		s.set(func(st *upstream.Status) { st.State = upstream.Backoff })
		if got := <-ended; got != pause/2 {
			t.Errorf("ended after %v", got)
		}
	})
}

// A session that ends while its tools are listed is no failed listing: the next one's is on its way. One that failed on
// the session before says nothing of this one either.
func TestAwaitOutlastsASession(t *testing.T) {
	for name, pages := range map[string]map[string]string{"that ends": {"": pageOf("old")}, "that fails": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(pages)
				if pages != nil {
					s.hold = make(chan struct{})
				}
				c := start(t, nil, one(s))
				synctest.Wait()
				s.change(func(s *script) { s.hold = nil })
				s.lists("new")
				s.set(reconnected)
				synctest.Wait()
				began := time.Now()
				c.Await(t.Context(), "s")
				if !c.View().Listed("s") || time.Since(began) > pause {
					t.Errorf("listed %v after %v", c.View().Listed("s"), time.Since(began))
				}
			})
		})
	}
}
