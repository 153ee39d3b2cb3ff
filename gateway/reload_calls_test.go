package gateway

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/gateway/config"
	"mcp-gateway/gateway/front"
	"mcp-gateway/upstream"
)

// A call that was not sent since its upstream was stopped goes to the heir, and one that was sent runs to its end.
func TestCallsDuringAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "upstreams: {a: {command: a}}"
		release := make(chan struct{})
		g, _ := reloading(t, &text, func(r *runner) {
			if r.name != "a1" {
				return
			}
			r.call = func(ctx context.Context, req *upstream.Request) (*upstream.Response, error) {
				if req.Target == "t" {
					<-release
					return result(`{"content":[],"by":"a1"}`), nil
				}
				return nil, &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.ClosedByGateway}
			}
		})
		running := make(chan string, 1)
		go func() { running <- string(callTool(t, g, `{"name":"a__t"}`).Result.Raw()) }()
		synctest.Wait()
		old := g.snapshot.Load().members[0]
		text = "upstreams: {a: {command: b}}"
		if _, err := g.Reload(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := old.Call(t.Context(), &upstream.Request{Target: "other"}); !unsentForReload(err) {
			t.Errorf("a call that comes too late: %v", err)
		}
		close(release)
		if got := <-running; !strings.Contains(got, "a1") {
			t.Errorf("the running call: %s", got)
		}
	})
}

// A call of a process that was stopped for another waits for that one as long as it may: nobody need notice a reload. One that a
// reload has nothing to do with is told soon.
func TestCallsWaitForAChangedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "upstreams: {a: {command: a, timeout: 60s}, b: {url: 'http://b/', timeout: 60s}}"
		waits := map[string]time.Duration{}
		g, _ := reloading(t, &text, func(r *runner) {
			r.call = func(ctx context.Context, req *upstream.Request) (*upstream.Response, error) {
				until, _ := upstream.WaitUntil(ctx)
				waits[r.name] = time.Until(until)
				return result(`{"content":[]}`), nil
			}
			if r.name == "a2" || r.name == "b2" {
				r.unborn.Store(true)
			}
		})
		both := func() {
			callTool(t, g, `{"name":"a__t"}`)
			callTool(t, g, `{"name":"b__t"}`)
		}
		both()
		text = "upstreams: {a: {command: other, timeout: 60s}, b: {url: 'http://b/2', timeout: 60s}}"
		if _, err := g.Reload(); err != nil {
			t.Fatal(err)
		}
		both()
		if waits["a1"] != startWait || waits["a2"] != time.Minute || waits["b2"] != startWait {
			t.Errorf("calls wait %v", waits)
		}
		for _, m := range g.snapshot.Load().members {
			m.engine.(*runner).unborn.Store(false)
		}
		if both(); waits["a2"] != startWait {
			t.Errorf("calls wait %v once it is up", waits)
		}
	})
}

// Between the last call of an upstream and its end no other is sent to it.
func TestNoCallIsSentToWhatIsEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *member
		sent := false
		r := &runner{events: new([]string), mu: new(sync.Mutex)}
		r.fake.call = func(context.Context, *upstream.Request) (*upstream.Response, error) {
			sent = true
			return result(`{"content":[]}`), nil
		}
		r.close = func() error {
			if _, err := m.Call(t.Context(), &upstream.Request{}); !unsentForReload(err) {
				t.Errorf("the call: %v", err)
			}
			return nil
		}
		m = newMember(config.Upstream{}, r)
		if err := m.retire(t.Context()); err != nil || sent {
			t.Errorf("%v, sent: %v", err, sent)
		}

		m, sent = newMember(config.Upstream{}, r), false
		m.calls.Add(1) // one that is cut off
		late, cancel := context.WithCancel(t.Context())
		cancel()
		if err := m.retire(late); err != nil || sent {
			t.Errorf("after the time of its calls: %v, sent: %v", err, sent)
		}
	})
}

// What waits for a listing of a catalog that a reload replaces asks the next one, since nothing was sent.
func TestAWaitingCallSurvivesAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "upstreams: {a: {command: a}}"
		var a *runner
		g, _ := reloading(t, &text, func(r *runner) { a = r })
		a.fake.mu.Lock()
		a.tools = "" // it never lists again, until it is told to
		a.fake.mu.Unlock()
		called := make(chan *front.Reply, 1)
		go func() { called <- callTool(t, g, `{"name":"a__new"}`) }()
		synctest.Wait() // it waits for a listing that has the name
		a.fake.mu.Lock()
		a.tools = `{"tools":[{"name":"t"},{"name":"new"}]}`
		a.fake.mu.Unlock()
		text = "upstreams: {a: {command: a}}\nkeepalive: 9s"
		if _, err := g.Reload(); err != nil {
			t.Fatal(err)
		}
		if r := <-called; r.Error != nil {
			t.Errorf("the call: %v", r.Error)
		}
	})
}
