package backoff

import "time"

// A Bucket says which of the events that keep coming may pass: Burst of them at once, and after that one Every so often. It
// is for one goroutine.
type Bucket struct {
	Burst int
	Every time.Duration

	full time.Time // when all of Burst may pass again
}

// Take reports whether an event at this moment may pass.
func (b *Bucket) Take(now time.Time) bool { return b.TakeAll(now, 1) }

// TakeAll reports whether n events at this moment may pass together. Where not all may, none does, and none is counted.
func (b *Bucket) TakeAll(now time.Time, n int) bool {
	if b.full.Before(now) {
		b.full = now
	}
	full := b.full.Add(time.Duration(n) * b.Every)
	if full.Sub(now) > time.Duration(b.Burst)*b.Every {
		return false
	}
	b.full = full
	return true
}
