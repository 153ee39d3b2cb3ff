package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

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

// TestAChangedUpstreamIsNeverMissed changes a server that takes its time to start, again and again, while clients list its tools
// and call them: its process is another each time, and nobody has noticed.
func TestAChangedUpstreamIsNeverMissed(t *testing.T) {
	t.Parallel()
	pipe, web := newCannedStdio(t, "canned"), newCannedHTTP(t)
	config := func(i int) string {
		return fmt.Sprintf("upstreams:\n  pipe:\n%s    start_timeout: %ds\n  web: {url: %s, start_timeout: %[2]ds}\n",
			pipe.shell(`sleep 0.3; exec "$0"`), 60+i, quoted(web.URL))
	}
	g := serve(t, config(0))
	g.allListed(t)
	legacy := handshake(t, g.URL, "2025-11-25")

	var stop atomic.Bool
	var load sync.WaitGroup
	for _, tool := range []string{"pipe__odd", "web__odd"} {
		load.Go(func() {
			for !stop.Load() {
				if r, err := tryPost(t.Context(), g.URL, modernHeader("tools/call", tool), modernRequest(`1`, "tools/call", `"name":"`+tool+`"`)); err != nil || r.result == nil || failedCall(r) {
					t.Errorf("a modern call of %s: %v %v", tool, err, r)
				}
				r, err := tryPost(t.Context(), g.URL, legacyHeader(legacy.revision, legacy.session),
					fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q}}`, tool))
				if err != nil || r.result == nil || failedCall(r) {
					t.Errorf("a legacy call of %s: %v %v", tool, err, r)
				}
			}
		})
	}
	load.Go(func() {
		for !stop.Load() {
			r, err := tryPost(t.Context(), g.URL, modernHeader("tools/list", ""), modernRequest(`1`, "tools/list", ""))
			if n := len(publicName.FindAll(r.result, -1)); err != nil || n != 2*len(cannedTools) {
				t.Errorf("%d tools are listed: %v %v", n, err, r)
			}
		}
	})
	for i := range times(t, reloadsEnv, 5) {
		before := pipe.pids()
		if !g.reload(t, config(i+1)) {
			t.Fatalf("reload %d: not reloaded", i)
		}
		if !eventually(patience, func() bool { now := pipe.pids(); return len(now) == 1 && !slices.Equal(now, before) }) {
			t.Errorf("after reload %d it runs as %d, was %d", i, pipe.pids(), before)
		}
	}
	stop.Store(true)
	load.Wait()
}

// publicName finds the tools of TestAChangedUpstreamIsNeverMissed in a list.
var publicName = regexp.MustCompile(`"name" ?: ?"(pipe|web)__`)

// failedCall reports whether the gateway has made the result, since it could not complete the call.
func failedCall(r reply) bool {
	_, _, failed := failed(r)
	return failed
}

// TestNothingIsStoppedForACommandThatIsNotThere keeps the server that works.
func TestNothingIsStoppedForACommandThatIsNotThere(t *testing.T) {
	t.Parallel()
	pipe := newCannedStdio(t, "canned")
	g := serve(t, "upstreams:\n  pipe:\n"+pipe.command())
	g.allListed(t)
	before := pipe.pids()
	for _, bad := range []string{"command: no-such-program-at-all", "command: /no/such/program", "command: ./program, cwd: /tmp", "command: sh, cwd: /no/such/folder"} {
		if g.reload(t, "upstreams: {pipe: {"+bad+"}}") {
			t.Errorf("reloaded with %s", bad)
		}
		if r := call(t, g, "pipe__odd"); r.result == nil || failedCall(r) || !slices.Equal(pipe.pids(), before) {
			t.Errorf("after %s: %v, the upstream runs as %d, was %d", bad, r, pipe.pids(), before)
		}
	}
	if !g.reload(t, "upstreams:\n  new: {command: no-such-program-at-all}\n  pipe:\n"+pipe.command()) {
		t.Error("nothing was to be stopped for the new one")
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
