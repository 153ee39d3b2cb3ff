package catalog

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/upstream"
)

func TestSettled(t *testing.T) {
	for name, row := range map[string]struct {
		begin   func(*script)
		settles func(*script)
	}{
		"listed":  {func(s *script) { s.hold = make(chan struct{}) }, func(s *script) { close(s.hold) }},
		"failed":  {func(s *script) { s.hold, s.pages = make(chan struct{}), nil }, func(s *script) { close(s.hold) }},
		"backoff": {func(s *script) { s.status.State = upstream.Connecting }, func(s *script) { s.set(func(st *upstream.Status) { st.State = upstream.Backoff }) }},
		"verdict": {func(s *script) { s.status.State = upstream.Connecting }, func(s *script) { s.set(func(st *upstream.Status) { st.State = upstream.Verdict }) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScriptOf("t")
				row.begin(s)
				c := start(t, nil, one(s))
				grace, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				c.Settled(grace)
				if grace.Err() == nil {
					t.Error("settled before anything has come of the upstream")
				}
				row.settles(s)
				synctest.Wait()
				c.Settled(t.Context())
			})
		})
	}
}

// Close waits for a listing that does not end at once.
func TestCloseWaitsForTheListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptOf("t")
		s.deaf = true
		release := s.holds()
		c := start(t, nil, one(s))
		synctest.Wait()
		closed := make(chan struct{})
		go func() { c.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("closed while a listing ran")
		default:
		}
		release()
		<-closed
		wantNames(t, c)
		c.Close()
	})
}

// A listing that Close has ended is no failure of the server's, and is not told as one.
func TestCloseIsNoFailure(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			s := newScriptOf("t")
			s.hold = make(chan struct{})
			var out strings.Builder
			c := startRedacted(t, newVault("unknown"), &out, one(s))
			synctest.Wait()
			// The loop finds both the end of the catalog and that of its listing.
			s.change(func(s *script) {
				s.onState = func() {
					c.stop()
					<-time.After(time.Millisecond)
				}
			})
			s.set(func(st *upstream.Status) { st.Changes.Prompts++ })
			synctest.Wait()
			c.Close()
			if out.Len() > 0 {
				t.Errorf("logged %s", out.String())
			}
		})
	}
}
