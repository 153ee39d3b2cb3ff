package legacy

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"mcp-gateway/internal/process"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/child"
	"mcp-gateway/upstream/upstreamtest"
)

// stubborn starts a play whose process cannot be ended until release is called.
func stubborn(t *testing.T, name string, change func(*Config)) (u *Upstream, release func()) {
	t.Helper()
	cfg, _ := config(t, played+"="+name, upstreamtest.FastExit)
	if change != nil {
		change(&cfg)
	}
	u = New(cfg)
	released := make(chan struct{})
	u.cfg.Stdio.Grace = child.Grace{Stdin: time.Millisecond, Term: time.Millisecond, Kill: time.Millisecond}
	u.cfg.Stdio.Kill = func(group int, signal syscall.Signal) error {
		select {
		case <-released:
			return killGroup(group, signal)
		default:
			return nil
		}
	}
	u.Start()
	return u, func() { close(released) }
}

// endHeld checks that Close tells what is held, and that it ends it once that is possible.
func endHeld(t *testing.T, u *Upstream, release func()) {
	t.Helper()
	if _, held := errors.AsType[*process.HeldError](u.Close()); !held {
		t.Error("Close does not say what is held")
	}
	release()
	for u.Close() != nil { // the kill takes a moment
	}
	if status, _ := u.Status(); status.State != upstream.Closed {
		t.Errorf("state %s", status.State)
	}
}

// Held is known before the call that was pending fails, so that its words do not promise a reconnect.
func TestAProcessThatCannotBeEndedIsHeldBeforeItsCallsFail(t *testing.T) {
	u, release := stubborn(t, "closes stdin", nil)
	upstreamtest.Await(t, u, upstream.Live)
	pending := call(t.Context(), u, "pending")
	for { // until its stdin is closed
		status, changed := u.Status()
		if status.Changes.Tools > 0 {
			break
		}
		<-changed
	}
	failed := <-call(t.Context(), u, "fails")
	wantError(t, failed, upstream.NotSent, upstream.HeldProcess)
	wantError(t, <-pending, upstream.NoResponse, upstream.HeldProcess)
	wantError(t, <-call(t.Context(), u, "later"), upstream.NotSent, upstream.HeldProcess)
	endHeld(t, u, release)
}

func TestAProcessHeldByAFailedStartIsTheOnlyOne(t *testing.T) {
	u, release := stubborn(t, "stays", func(c *Config) {
		c.Stdio.Env = append(c.Stdio.Env, `ANSWER={"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"not today"}}`)
	})
	status := upstreamtest.Await(t, u, upstream.Held)
	if _, held := errors.AsType[*process.HeldError](status.Err); !held {
		t.Errorf("error %v does not say what is held", status.Err)
	}
	wantError(t, <-call(t.Context(), u, "any"), upstream.NotSent, upstream.HeldProcess)
	endHeld(t, u, release)
}
