package upstreamtest

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
)

// A footprint is what this process holds.
type footprint struct{ goroutines, descriptors int }

// holds counts. Where there is no /proc, descriptors are not counted.
func holds() footprint {
	open, _ := os.ReadDir("/proc/self/fd")
	return footprint{runtime.NumGoroutine(), len(open)}
}

// within reports whether f is no more than most, but for spare of each.
func (f footprint) within(most footprint, spare int) bool {
	return f.goroutines <= most.goroutines+spare && f.descriptors <= most.descriptors+spare
}

// wantFootprint waits until this process holds no more than most, but for spare of each.
func wantFootprint(t *testing.T, most footprint, spare int) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // for what ends beside the engine
	defer cancel()
	for now := holds(); !now.within(most, spare); now = holds() {
		select {
		case <-again.C:
		case <-ctx.Done():
			stacks := make([]byte, 1<<20)
			t.Errorf("left: %+v, want at most %+v and %d\n%s", now, most, spare, stacks[:runtime.Stack(stacks, true)])
			return
		}
	}
}

// Every kind of change that a server tells is counted.
func testChanges(t *testing.T, tr Transport) {
	u := start(t, tr, func(r *Request) {
		r.Announce(r.Name())
		r.Result("")
	})
	kinds := map[string]func(upstream.Changes) uint64{
		mcp.NotificationToolsChanged:     func(c upstream.Changes) uint64 { return c.Tools },
		mcp.NotificationPromptsChanged:   func(c upstream.Changes) uint64 { return c.Prompts },
		mcp.NotificationResourcesChanged: func(c upstream.Changes) uint64 { return c.Resources },
	}
	if tr.Revision != mcp.Modern { // where it is not asked for
		kinds[mcp.NotificationResourceUpdated] = func(c upstream.Changes) uint64 { return c.Updated }
	}
	status, _ := u.Status()
	for method, counted := range kinds {
		before := counted(status.Changes)
		(<-call(t.Context(), u, method, "{}")).result(t, tr, "")
		for {
			status, changed := u.Status()
			if counted(status.Changes) > before {
				break
			}
			select {
			case <-changed:
			case <-t.Context().Done():
				t.Fatalf("%s was not counted: %+v", method, status.Changes)
			}
		}
	}
}

// A server that ends its direction of the connection, and still reads, has left all the same.
func testHalfClosed(t *testing.T, tr Transport) {
	u := start(t, tr, func(r *Request) {
		if r.Name() == "fatal" {
			r.Sender.(HalfCloser).HalfClose()
			return
		}
		r.Result("")
	})
	for range 3 {
		Await(t, u, upstream.Live)
		(<-call(t.Context(), u, "fatal", "{}")).failed(t, upstream.NoResponse, upstream.ConnectionLost)
		again(t, tr, u)
	}
}

// again makes a call once the upstream is back.
func again(t *testing.T, tr Transport, u upstream.Upstream) {
	t.Helper()
	for {
		Await(t, u, upstream.Live)
		d := <-call(t.Context(), u, "any", "{}")
		if e, ok := errors.AsType[*upstream.Error](d.err); ok && e.Outcome == upstream.NotSent {
			continue
		}
		d.result(t, tr, "")
		return
	}
}

// However often a server goes and comes back, nothing gathers.
func testReconnects(t *testing.T, tr Transport) {
	rounds := 1_000
	if tr.Costly {
		rounds = 20
	}
	u := start(t, tr, func(r *Request) {
		if r.Name() == "fatal" {
			r.lose()
			return
		}
		r.Result("")
	})
	var warm footprint
	for i := range rounds {
		if i == 10 {
			warm = holds()
		}
		<-call(t.Context(), u, "fatal", "{}")
		again(t, tr, u)
	}
	wantFootprint(t, warm, 4)
}

// Close ends what waits for a connection, the attempt to make it, and what that has begun; and so does a second one beside it.
func testCloseDuringAConnect(t *testing.T, tr Transport) {
	u, taken := tr.Mute(t)
	waits := call(t.Context(), u, "any", "{}")
	<-taken
	var closing sync.WaitGroup
	for range 2 {
		closing.Go(func() {
			if err := u.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	closing.Wait()
	(<-waits).failed(t, upstream.NotSent, upstream.ClosedByGateway)
	if status, _ := u.Status(); status.State != upstream.Closed {
		t.Errorf("state %s", status.State)
	}
}

// quiesce is what engines have beside the interface.
func quiesce(t *testing.T, u upstream.Upstream) {
	t.Helper()
	q, ok := u.(interface{ Quiesce() })
	if !ok {
		t.Fatal("the engine has no Quiesce")
	}
	q.Quiesce()
}

func testQuiesceDuringAConnect(t *testing.T, tr Transport) {
	u, taken := tr.Mute(t)
	waits := call(t.Context(), u, "any", "{}")
	<-taken
	quiesce(t, u)
	(<-waits).failed(t, upstream.NotSent, upstream.ClosedByGateway)
	(<-call(t.Context(), u, "any", "{}")).failed(t, upstream.NotSent, upstream.ClosedByGateway)
	if err := u.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// What is connected goes on, in flight and anew, until it is lost. Then nothing connects any more.
func testQuiesceWhileCallsRun(t *testing.T, tr Transport) {
	arrived, release := make(chan struct{}), make(chan struct{})
	u := start(t, tr, func(r *Request) {
		if r.Name() == "runs" {
			close(arrived)
			r.Wait(release)
		}
		r.Result("")
	})
	runs := call(t.Context(), u, "runs", "{}")
	<-arrived
	quiesce(t, u)
	(<-call(t.Context(), u, "later", "{}")).result(t, tr, "")
	close(release)
	(<-runs).result(t, tr, "")
	if status, _ := u.Status(); status.State != upstream.Live || status.Session != 1 {
		t.Errorf("status %+v", status)
	}
}
