package upstream

import (
	"context"
	"time"
)

// waitKey asks a ctx for its waiting.
type waitKey struct{}

// waiting is a ctx that knows how long its call waits. It is one allocation, since every call has one.
type waiting struct {
	context.Context
	until time.Time
}

func (w *waiting) Value(key any) any {
	if key == (waitKey{}) {
		return w
	}
	return w.Context.Value(key)
}

// WithWait gives ctx the moment until which its call waits for a connection and a listing together. It ends nothing by
// itself: who waits honours it, and then says what was waited for.
func WithWait(ctx context.Context, until time.Time) context.Context {
	return &waiting{ctx, until}
}

// WaitUntil is the moment until which ctx's call waits, and whether it has one.
func WaitUntil(ctx context.Context) (time.Time, bool) {
	if w, ok := ctx.Value(waitKey{}).(*waiting); ok {
		return w.until, true
	}
	return time.Time{}, false
}

// A Load is what an upstream's limit holds at one moment.
type Load struct {
	InFlight int    // calls that hold a place
	Waiting  int    // calls in the queue
	Shed     uint64 // calls refused since the upstream was made, because the queue was full
}
