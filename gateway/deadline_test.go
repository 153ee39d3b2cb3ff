package gateway

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
)

func TestOneDeadlineFromArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script()
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		begin := time.Now()
		reply := callTool(t, g, `{"name":"a__t"}`, func(r *front.Request) { r.Received = begin.Add(-10 * time.Second) })
		if got := time.Since(begin); got != 20*time.Second {
			t.Errorf("ended after %v, want what was left of the 30 s", got)
		}
		if got := outcomeOf(t, reply); !strings.Contains(got, `"cause":"deadline"`) {
			t.Error(got)
		}
	})
}

// Progress is no reason to wait longer.
func TestProgressExtendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool, call: func(ctx context.Context, req *upstream.Request) (*upstream.Response, error) {
			for tick := time.NewTicker(time.Second); ; {
				select {
				case <-tick.C:
					req.Notify(upstream.Notification{Method: mcp.NotificationProgress, Params: params(t, `{"progressToken":1}`)})
				case <-ctx.Done():
					return nil, upstream.Ended(ctx, true, context.Cause(ctx))
				}
			}
		}}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		begin, notified := time.Now(), 0
		callTool(t, g, `{"name":"a__t"}`, func(r *front.Request) { r.Notify = func(upstream.Notification) { notified++ } })
		if took := time.Since(begin); took != 30*time.Second || notified < 29 {
			t.Errorf("ended after %v and %d notifications, want 30 s", took, notified)
		}
	})
}

func TestToolsHaveTheirOwnTimeouts(t *testing.T) {
	const text = `upstreams: {a: {command: a, timeout: 30s, tools: {timeouts: {slow_x: 50s, 'slow*': 40s, '*quick*': 1s, slow_quick: 2s}}}}`
	for tool, want := range map[string]time.Duration{
		"t": 30 * time.Second, "slow_x": 50 * time.Second, "slow_y": 40 * time.Second, "quick": time.Second, "slow_quick": 40 * time.Second, "Slow": 30 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			a := script()
			a.tools = `{"tools":[{"name":"` + tool + `"}]}`
			g := gatewayOver(t, text, map[string]*fake{"a": a})
			begin := time.Now()
			callTool(t, g, `{"name":"a__`+tool+`"}`)
			if took := time.Since(begin); took != want {
				t.Errorf("%s ended after %v, want %v", tool, took, want)
			}
		})
	}
}

// A call waits 5 s from its arrival for a connection, also behind a queue. What it waits for after a first send is another
// wait, but within the same deadline.
func TestEngineIsToldHowLongToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		received := time.Now().Add(-time.Second)
		var until []time.Duration
		a := &fake{tools: oneTool}
		a.call = func(ctx context.Context, _ *upstream.Request) (*upstream.Response, error) {
			moment, ok := upstream.WaitUntil(ctx)
			end, _ := ctx.Deadline()
			if !ok || end.Sub(received) != 30*time.Second {
				t.Errorf("waits until %v, ends after %v", moment, end.Sub(received))
			}
			until = append(until, moment.Sub(received))
			<-time.After(10 * time.Second)
			a.lists(byRegion)
			return nil, &upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, Err: upstream.ErrHeaderMismatch}
		}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		callTool(t, g, `{"name":"a__t","arguments":{"r":"eu"}}`, func(r *front.Request) { r.Received = received })
		if len(until) != 2 || until[0] != startWait || until[1] != 11*time.Second+startWait {
			t.Errorf("the engine may wait until %v after arrival", until)
		}
	})
}

// A listing that hangs takes its 5 s of a call, and not the call's whole time.
func TestRelistIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool, call: func(context.Context, *upstream.Request) (*upstream.Response, error) {
			return nil, &upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, Err: upstream.ErrHeaderMismatch}
		}}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		<-time.After(10 * time.Second)
		a.mu.Lock()
		a.tools = "" // hangs
		a.mu.Unlock()
		began := time.Now()
		reply := callTool(t, g, `{"name":"a__t"}`)
		if got := outcomeOf(t, reply); !strings.Contains(got, `"cause":"hop-error"`) || time.Since(began) != startWait || len(a.calls()) != 1 {
			t.Errorf("after %v and %d sends: %s", time.Since(began), len(a.calls()), got)
		}
	})
}
