package upstream

import (
	"context"
	"testing"
	"time"
)

func TestWaitUntil(t *testing.T) {
	if until, ok := WaitUntil(t.Context()); ok {
		t.Errorf("a plain ctx waits until %v", until)
	}
	want := time.Date(2026, 7, 28, 12, 0, 5, 0, time.UTC)
	ctx, cancel := context.WithCancel(WithWait(t.Context(), want))
	defer cancel()
	if until, ok := WaitUntil(ctx); !ok || !until.Equal(want) {
		t.Errorf("waits until %v, %v; want %v", until, ok, want)
	}
	if ctx.Err() != nil {
		t.Error("WithWait has ended its ctx")
	}
}
