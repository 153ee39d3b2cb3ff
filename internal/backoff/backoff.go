// Package backoff spaces out what would otherwise repeat itself without end: attempts that keep
// failing (Backoff), so that many gateways that lost the same server do not all come back to it
// at the same moment, and events that keep coming (Bucket).
package backoff

import (
	"math/rand/v2"
	"time"
)

// A Backoff gives the pauses between attempts, with full jitter: each is drawn evenly between
// Min and a ceiling that starts at twice Min and doubles until it is Max. The zero value gives
// no pause at all. It is for one goroutine.
type Backoff struct {
	Min, Max time.Duration

	// Rand draws from [0, n), n > 0. Nil draws from math/rand/v2.
	Rand func(n int64) int64

	ceiling time.Duration // of the last pause; 0 before the first
}

// Next returns how long to wait before the next attempt. It is never under Min, and never over
// Max where Max is the larger.
func (b *Backoff) Next() time.Duration {
	top := max(b.Min, b.Max)
	last := max(b.Min, b.ceiling)
	if last > top/2 {
		b.ceiling = top
	} else {
		b.ceiling = 2 * last
	}
	span := int64(b.ceiling - b.Min)
	if span <= 0 {
		return b.Min
	}
	draw := b.Rand
	if draw == nil {
		draw = rand.Int64N
	}
	return b.Min + time.Duration(draw(span+1))
}

// Reset makes the next pause a first one again.
func (b *Backoff) Reset() { b.ceiling = 0 }
