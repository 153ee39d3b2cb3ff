package e2e

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
)

func TestRunningCallsOutliveSIGTERM(t *testing.T) {
	web := newCannedHTTP(t)
	g := serve(t, "upstreams:\n  web:\n    url: "+web.URL+"\n")
	running := started(t, g.URL, "web__slow")
	<-web.entered

	g.signal(t, syscall.SIGTERM)
	// Once no connection is taken any more, the signal has been heard.
	if !eventually(patience, func() bool { return !accepts(t, g) }) {
		t.Fatal("after SIGTERM it still serves new calls")
	}
	web.release()
	if r := <-running; !strings.Contains(string(r.result), "slow but sure") {
		t.Errorf("the running call: %v", r)
	}
	if code := g.wait(t); code != 0 {
		t.Errorf("the exit code is %d, want 0", code)
	}
}

func accepts(t *testing.T, g *gateway) bool {
	t.Helper()
	r, err := tryPost(t.Context(), g.URL, modernHeader("tools/list", ""), modernRequest(`1`, "tools/list", ""))
	return err == nil && r.status == http.StatusOK
}

func TestACallThatOutlivesTheShutdownIsCutOff(t *testing.T) {
	web, pipe := newCannedHTTP(t), newCannedStdio(t, "canned")
	g := serve(t, "shutdown_timeout: 500ms\nupstreams:\n  web:\n    url: "+web.URL+"\n  pipe:\n"+pipe.command())
	overHTTP, overPipe := started(t, g.URL, "web__slow"), started(t, g.URL, "pipe__slow")
	<-web.entered
	if !eventually(patience, func() bool { return len(pipe.calls(t)) == 1 }) {
		t.Fatal("the slow call never arrived")
	}
	g.signal(t, syscall.SIGTERM)
	for upstream, running := range map[string]<-chan reply{"web": overHTTP, "pipe": overPipe} {
		want := verdict{"no-response", "shutdown", upstream, "tools/call", "check", 0}
		if v, text, ok := failed(<-running); !ok || v != want || text == "" {
			t.Errorf("got %+v %q, want %+v", v, text, want)
		}
	}
	if code := g.wait(t); code != 0 {
		t.Errorf("the exit code is %d, want 0", code)
	}
}

func TestASecondSignalCutsCallsOff(t *testing.T) {
	web, pipe := newCannedHTTP(t), newCannedStdio(t, "canned")
	g := serve(t, "shutdown_timeout: 10m\nupstreams:\n  web:\n    url: "+web.URL+"\n  pipe:\n"+pipe.command())
	running := started(t, g.URL, "web__slow")
	<-web.entered
	g.signal(t, syscall.SIGTERM)
	if !eventually(patience, func() bool { return !accepts(t, g) }) {
		t.Fatal("after SIGTERM it still serves new calls")
	}
	g.signal(t, syscall.SIGINT)
	if v, _, ok := failed(<-running); !ok || v.Outcome != "no-response" || v.Retry != "check" {
		t.Errorf("the running call: %+v", v)
	}
	if code := g.wait(t); code != 0 || len(pipe.pids()) > 0 {
		t.Errorf("the exit code is %d, left is %s", code, describe(pipe.pids()))
	}
}

func TestABusyPortIsNamed(t *testing.T) {
	pipe := newCannedStdio(t, "canned")
	config := "upstreams:\n  pipe:\n" + pipe.command()
	g := serve(t, config)
	address := strings.TrimSuffix(strings.TrimPrefix(g.URL, "http://"), "/mcp")
	began := len(pipe.pids())
	second := command(t, nil, "serve", "-c", writeConfig(t, config), "--listen", address)
	if second.code != 1 || !strings.Contains(second.output, address) {
		t.Errorf("the exit code is %d, and it says\n%s", second.code, second.output)
	}
	if now := len(pipe.pids()); now != began {
		t.Errorf("%d processes of the upstream run, were %d", now, began)
	}
}
