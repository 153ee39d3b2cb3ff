package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// reloadsEnv is how many reloads TestReloadsUnderLoad makes.
const reloadsEnv = "E2E_RELOADS"

// TestReloadsUnderLoad changes everything but two upstreams again and again, one time in three to what is no configuration.
// The two that stay lose no call, and the process of the one that has one stays the same.
func TestReloadsUnderLoad(t *testing.T) {
	steady, varying, extra, web := newCannedStdio(t, "canned"), newCannedStdio(t, "canned"), newCannedStdio(t, "canned"), newCannedHTTP(t)
	config := func(i int) string {
		text := fmt.Sprintf("start_grace: %ds\nupstreams:\n  steady:\n%s    timeout: %ds\n  web: {url: %s, timeout: %dm}\n",
			1+i%3, steady.command(), 30+i, quoted(web.URL), 1+i)
		if i%4 < 2 {
			text += "  varying:\n" + varying.command() + fmt.Sprintf("    start_timeout: %ds\n", 30+i)
		}
		if i%2 == 0 {
			text += "  extra:\n" + extra.command() + fmt.Sprintf("    prefix: x%d__\n", i)
		}
		if i%3 == 2 {
			text += "nonsense: true\n"
		}
		return text
	}
	g := serve(t, config(0))
	g.allListed(t)
	before := steady.pids()

	var stop atomic.Bool
	var calls atomic.Int64
	var load sync.WaitGroup
	for _, name := range []string{"steady__odd", "web__odd", "steady__last.of-them", "varying__odd"} {
		load.Go(func() {
			for !stop.Load() {
				r, err := tryPost(t.Context(), g.URL, modernHeader("tools/call", name), modernRequest(`1`, "tools/call", `"name":"`+name+`"`))
				calls.Add(1)
				v, _, failed := failed(r)
				switch {
				case err != nil:
					t.Errorf("%s: %v", name, err)
				case strings.HasPrefix(name, "varying__"):
					// It may be away, or on its way: nothing that was sent may be said to be unsent, which the server's record is held to.
					if r.result == nil && r.code() != -32602 || failed && v.Outcome != "not-sent" && v.Cause != "reload" {
						t.Errorf("%s: %v", name, r)
					}
				case failed || r.result == nil:
					t.Errorf("%s: %v", name, r)
				}
			}
		})
	}
	var most int
	for i := 1; i <= times(t, reloadsEnv, 30); i++ {
		most = max(most, len(varying.pids()), len(extra.pids()))
		if done := g.reload(t, config(i)); done != (i%3 != 2) {
			t.Errorf("reload %d: done is %v", i, done)
		}
	}
	stop.Store(true)
	load.Wait()
	if most > 1 {
		t.Errorf("%d processes of one upstream ran at a time", most)
	}
	t.Logf("%d calls", calls.Load())
	if got := steady.pids(); !slices.Equal(got, before) {
		t.Errorf("the upstream that never changed runs as %d, was %d", got, before)
	}
	g.reload(t, config(4)) // all four are in it
	g.allListed(t)
	for _, c := range []cannedStdio{varying, extra} {
		if !eventually(patience, func() bool { return len(c.pids()) == 1 }) {
			t.Errorf("there still runs %s", describe(c.pids()))
		}
	}
	if names, _ := listed(t, modernClient{g.URL}); !slices.Contains(names, "x4__odd") || !slices.Contains(names, "varying__odd") {
		t.Errorf("listed are %q", names)
	}
}

// TestAChangedUpstreamFinishesItsCalls has a call run while its upstream gets another configuration.
func TestAChangedUpstreamFinishesItsCalls(t *testing.T) {
	t.Parallel()
	web := newCannedHTTP(t)
	config := "upstreams:\n  web: {url: " + quoted(web.URL) + ", start_timeout: %ds}\n"
	g := serve(t, fmt.Sprintf(config, 20))
	g.allListed(t)
	running := started(t, g.URL, "web__slow")
	<-web.entered
	if !g.reload(t, fmt.Sprintf(config, 21)) {
		t.Fatal("not reloaded")
	}
	if r := call(t, g, "web__odd"); r.result == nil {
		t.Errorf("a call after the reload: %v", r)
	}
	web.release()
	if r := <-running; !strings.Contains(string(r.result), "slow but sure") {
		t.Errorf("the running call: %v", r)
	}
}

// TestABrokenConfigurationChangesNothing also says what is wrong with it.
func TestABrokenConfigurationChangesNothing(t *testing.T) {
	t.Parallel()
	pipe := newCannedStdio(t, "canned")
	g := serve(t, "upstreams:\n  pipe:\n"+pipe.command())
	g.allListed(t)
	before := pipe.pids()
	if g.reload(t, "upstreams:\n  pipe:\n"+pipe.command()+"    timeout: 5\n") {
		t.Error("a broken configuration was taken")
	}
	if said := g.out.String(); !strings.Contains(said, "upstreams.pipe.timeout") {
		t.Errorf("what is wrong is not said:\n%s", said)
	}
	if err := os.Remove(g.file); err != nil {
		t.Fatal(err)
	}
	if r := call(t, g, "pipe__odd"); r.result == nil || !slices.Equal(pipe.pids(), before) {
		t.Errorf("afterwards: %v, the upstream runs as %d, was %d", r, pipe.pids(), before)
	}
}
