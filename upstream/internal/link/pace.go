package link

import (
	"context"
	"time"

	"mcp-gateway/internal/backoff"
)

// A Pace spaces out the openings of a stream that a session keeps beside its calls: the pauses grow while what was opened does not
// live for long. It is for one goroutine.
type Pace struct{ pause backoff.Backoff }

// NewPace gives pauses between least and most, with full jitter.
func NewPace(least, most time.Duration) *Pace {
	return &Pace{backoff.Backoff{Min: least, Max: most}}
}

// Wait waits before the next opening, given how long the one before has lived. It reports false once ctx has ended.
func (p *Pace) Wait(ctx context.Context, lived time.Duration) bool {
	if lived >= settled {
		p.pause.Reset()
	}
	timer := time.NewTimer(p.pause.Next())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
