package legacy

import (
	"runtime"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

// What does not fit never reaches the server's process, and what waits for its turn when the upstream is closed does not
// either.
func TestWhatDoesNotFitIsNotSent(t *testing.T) {
	heard := make(chan string, 10)
	command, env := upstreamtest.Stdio(t, func(r *upstreamtest.Request) {
		heard <- r.Name()
		<-r.Canceled
	})
	cfg, _ := config(t, env...)
	cfg.Stdio.Command, cfg.Concurrency, cfg.Queue = command, 1, 1
	u := begin(t, cfg)
	upstreamtest.Await(t, u, upstream.Live)
	runs := call(t.Context(), u, "runs")
	if got := <-heard; got != "runs" {
		t.Fatalf("the server heard %q", got)
	}
	waits := call(t.Context(), u, "waits")
	for u.Load().Waiting == 0 {
		runtime.Gosched()
	}
	wantError(t, <-call(t.Context(), u, "is shed"), upstream.NotSent, upstream.QueueFull)
	if got, want := u.Load(), (upstream.Load{InFlight: 1, Waiting: 1, Shed: 1}); got != want {
		t.Errorf("load %+v, want %+v", got, want)
	}
	if _, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodDiscover}); err != nil {
		t.Errorf("server/discover, which is not sent: %v", err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	wantError(t, <-waits, upstream.NotSent, upstream.ClosedByGateway)
	wantError(t, <-runs, upstream.NoResponse, upstream.ClosedByGateway)
	if got := u.Load().InFlight; got != 0 {
		t.Errorf("%d places are still taken", got)
	}
	close(heard)
	for name := range heard {
		t.Errorf("the server heard %q too", name)
	}
}
