package e2e

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestKillingOneUpstream(t *testing.T) {
	first, second := newCannedStdio(t, "canned"), newCannedStdio(t, "canned")
	g := serve(t, "upstreams:\n  first:\n"+first.command()+"  second:\n"+second.command())
	for _, name := range []string{"first__odd", "second__odd"} {
		if r := call(t, g, name); r.result == nil {
			t.Fatalf("%s: %v", name, r)
		}
	}
	names, _ := listed(t, modernClient{g.URL})
	before, neighbour := first.pids(), second.pids()
	if len(before) != 1 || len(neighbour) != 1 {
		t.Fatalf("the upstreams run as %d and %d, want one process each", before, neighbour)
	}

	lost := started(t, g.URL, "first__slow")
	if !eventually(patience, func() bool { return len(first.calls(t)) == 2 }) {
		t.Fatal("the slow call never arrived")
	}
	kill(t, before[0])

	// The call ends now and not at its deadline, which is minutes away.
	r := <-lost
	v, text, ok := failed(r)
	want := verdict{"no-response", "connection-lost", "first", "tools/call", "check", 0}
	if !ok || v != want || text == "" {
		t.Errorf("the call that was running: got %+v %q, want %+v: %v", v, text, want, r)
	}
	if r := call(t, g, "second__odd"); r.result == nil || count(t, r.result, "isError") == 1 && string(member(t, r.result, "isError")) != "false" {
		t.Errorf("the other upstream noticed: %v", r)
	}
	if got := second.pids(); !slices.Equal(got, neighbour) {
		t.Errorf("the other upstream runs as %d, was %d", got, neighbour)
	}

	// Nothing is asked of it before it runs again.
	if !eventually(patience, func() bool { return len(first.pids()) == 1 && first.pids()[0] != before[0] }) {
		t.Fatal("the upstream never came back by itself")
	}
	var last reply
	if !eventually(patience, func() bool {
		last = call(t, g, "first__odd")
		v, _, ok := failed(last)
		if ok && (v.Outcome != "not-sent" || v.Retry != "safe") {
			t.Errorf("while it comes back: %+v", v)
		}
		return !ok && last.result != nil
	}) {
		t.Errorf("it came back and answers no call: %v", last)
	}
	if again, _ := listed(t, modernClient{g.URL}); !slices.Equal(again, names) {
		t.Errorf("the tools are %q, were %q", again, names)
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

// TestNoProcessIsLeft has servers behind shells, beside idle grandchildren, and ones that take no hint.
func TestNoProcessIsLeft(t *testing.T) {
	for _, c := range []struct{ name, role, script string }{
		{"a server", "canned", `exec "$0"`},
		{"behind a shell", "canned", `"$0"; :`},
		// A shell gives a background job no stdin unless it is told to.
		{"in the background of a shell", "canned", `exec 3<&0; "$0" <&3 & wait`},
		{"beside an idle grandchild", "canned", `sleep 600 & exec 3<&0; "$0" <&3 & wait`},
		{"beside a deaf grandchild", "canned", `sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done' & exec 3<&0; "$0" <&3 & wait`},
		{"orphaned by its shell", "canned", `exec 3<&0; (sleep 600 &) ; exec "$0" <&3`},
		{"a deaf server", "stubborn", `exec 3<&0; "$0" <&3 & wait`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			upstream := newCannedStdio(t, c.role)
			g := serve(t, "upstreams:\n  only:\n"+upstream.shell(c.script))
			if r := call(t, g, "only__odd"); r.result == nil {
				t.Fatalf("the upstream does not work: %v", r)
			}
			if len(upstream.pids()) == 0 {
				t.Fatal("no process of the upstream was found, so none could be missed")
			}
			g.signal(t, syscall.SIGTERM)
			if code := g.wait(t); code != 0 {
				t.Errorf("the exit code is %d, want 0", code)
			}
			if left := upstream.pids(); len(left) > 0 {
				t.Errorf("after the gateway has ended there still is %s", describe(left))
				for _, pid := range left {
					kill(t, pid)
				}
			}
		})
	}
}

// TestADeadGatewayTakesItsChildrenAlong kills the gateway so that it cannot clean up.
func TestADeadGatewayTakesItsChildrenAlong(t *testing.T) {
	upstream := newCannedStdio(t, "canned")
	g := start(t, "upstreams:\n  only:\n"+upstream.command())
	if r := call(t, g, "only__odd"); r.result == nil {
		t.Fatalf("the upstream does not work: %v", r)
	}
	g.signal(t, syscall.SIGKILL)
	<-g.exited
	if !eventually(patience, func() bool { return len(upstream.pids()) == 0 }) {
		t.Errorf("it left %s", describe(upstream.pids()))
	}
}

func TestAnUpstreamThatNeverAnswersDelaysNobody(t *testing.T) {
	silent, good := newCannedStdio(t, "silent"), newCannedStdio(t, "canned")
	g := serve(t, "upstreams:\n  silent:\n"+silent.command()+"  good:\n"+good.command())
	r := modernClient{g.URL}.ask(t, `1`, "tools/list", "")
	if r.status != http.StatusOK || !strings.Contains(string(r.result), `"good__odd"`) {
		t.Fatalf("tools/list: %v", r)
	}
	if absent := member(t, member(t, r.result, "_meta"), "mcp-gateway/absent"); !strings.Contains(string(absent), "silent") ||
		strings.Contains(string(absent), "good") {
		t.Errorf("absent are %s, want silent alone", absent)
	}
	if r := call(t, g, "good__odd"); r.result == nil {
		t.Errorf("tools/call: %v", r)
	}
	v, text, ok := failed(call(t, g, "silent__tool"))
	if !ok || v.Outcome != "not-sent" || v.Cause != "connecting" || v.Upstream != "silent" || v.Retry != "safe" || text == "" {
		t.Errorf("a call to the silent one: %+v %q", v, text)
	}
	g.signal(t, syscall.SIGTERM)
	if code := g.wait(t); code != 0 || len(silent.pids()) > 0 {
		t.Errorf("the exit code is %d, and of the silent upstream there is left %s", code, describe(silent.pids()))
	}
}

func TestAnUnreachableUpstreamDelaysNobody(t *testing.T) {
	good := newCannedStdio(t, "canned")
	g := serve(t, "upstreams:\n  away:\n    url: http://127.0.0.1:1/mcp\n  missing:\n    command: /nonexistent/server\n  good:\n"+good.command())
	if r := call(t, g, "good__odd"); r.result == nil {
		t.Errorf("tools/call: %v", r)
	}
	for upstream, causes := range map[string][]string{"away": {"unreachable", "reconnecting"}, "missing": {"unreachable", "reconnecting", "connecting"}} {
		v, text, ok := failed(call(t, g, upstream+"__tool"))
		if !ok || v.Outcome != "not-sent" || !slices.Contains(causes, v.Cause) || v.Upstream != upstream || text == "" {
			t.Errorf("a call to %s: %+v %q", upstream, v, text)
		}
	}
}
