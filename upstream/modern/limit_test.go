package modern

import (
	"runtime"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

// Of the calls over HTTP, each on a connection of its own, no more are with the server at once than may be.
func TestCallsAreWithTheServerOneAfterAnother(t *testing.T) {
	heard, answer := make(chan string, 10), make(chan struct{})
	server := upstreamtest.HTTP(t, func(r *upstreamtest.Request) {
		heard <- r.Name()
		r.Wait(answer)
		r.Result(`"ok":true`)
	})
	u := started(t, server.URL, func(c *Config) { c.Concurrency, c.Queue = 1, 1 })
	upstreamtest.Await(t, u, upstream.Live)
	call := func(tool string) <-chan error {
		done := make(chan error, 1)
		go func() {
			params, err := wire.ParseObject([]byte(`{"name":"` + tool + `"}`))
			if err == nil {
				_, err = u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsCall, Params: params, Target: tool})
			}
			done <- err
		}()
		return done
	}
	first := call("first")
	if got := <-heard; got != "first" {
		t.Fatalf("the server heard %q", got)
	}
	second := call("second")
	for u.Load().Waiting == 0 {
		runtime.Gosched()
	}
	wantError(t, <-call("third"), upstream.NotSent, upstream.QueueFull, 0)
	select {
	case got := <-heard:
		t.Errorf("the server has %q beside the first", got)
	default:
	}
	answer <- struct{}{}
	if err := <-first; err != nil {
		t.Error(err)
	}
	if got := <-heard; got != "second" {
		t.Errorf("the server heard %q", got)
	}
	answer <- struct{}{}
	if err := <-second; err != nil {
		t.Error(err)
	}
	if got, want := u.Load(), (upstream.Load{Shed: 1}); got != want {
		t.Errorf("load %+v, want %+v", got, want)
	}
}
