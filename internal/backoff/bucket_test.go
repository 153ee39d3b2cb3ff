package backoff

import (
	"testing"
	"time"
)

func TestABucketLetsABurstPassAndThenASteadyFew(t *testing.T) {
	now := time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC)
	b := Bucket{Burst: 3, Every: 10 * time.Millisecond}
	passed := func(d time.Duration, events int) (n int) {
		for range events {
			if b.Take(now) {
				n++
			}
			now = now.Add(d / time.Duration(events))
		}
		return n
	}
	if got := passed(0, 10); got != 3 {
		t.Errorf("%d of ten at once passed, want 3", got)
	}
	if got := passed(time.Second, 1000); got != 99 {
		t.Errorf("%d of 1,000 in a second passed, want 99", got)
	}
	now = now.Add(time.Hour)
	if got := passed(0, 10); got != 3 {
		t.Errorf("%d passed after an hour, want no more than a burst", got)
	}
}

func TestEventsThatComeTogetherPassTogetherOrNotAtAll(t *testing.T) {
	now := time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC)
	b := Bucket{Burst: 5, Every: time.Second}
	for i, test := range []struct {
		n    int
		want bool
	}{{3, true}, {3, false}, {6, false}, {2, true}, {1, false}} {
		if got := b.TakeAll(now, test.n); got != test.want {
			t.Errorf("%d: %d together passed: %v", i, test.n, got)
		}
	}
	if now = now.Add(2 * time.Second); b.TakeAll(now, 3) || !b.TakeAll(now, 2) {
		t.Error("two seconds let something else pass than two")
	}
}
