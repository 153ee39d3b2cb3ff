package backoff

import (
	"math"
	"slices"
	"testing"
	"time"
)

// most draws the longest pause that is allowed, least the shortest.
func most(n int64) int64  { return n - 1 }
func least(n int64) int64 { return 0 }

func TestPausesStayBetweenMinAndADoublingCeiling(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name     string
		min, max time.Duration
		draw     func(int64) int64
		want     []time.Duration
	}{
		{"longest draws", 500 * ms, 30 * time.Second, most,
			[]time.Duration{1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16000 * ms, 30000 * ms, 30000 * ms}},
		{"shortest draws", 500 * ms, 30 * time.Second, least, []time.Duration{500 * ms, 500 * ms, 500 * ms}},
		{"min is max", 500 * ms, 500 * ms, most, []time.Duration{500 * ms, 500 * ms}},
		{"max under min", 500 * ms, 100 * ms, most, []time.Duration{500 * ms, 500 * ms}},
		{"zero", 0, 0, most, []time.Duration{0, 0}},
		{"no overflow", math.MaxInt64 / 2, math.MaxInt64 - 1, most,
			[]time.Duration{math.MaxInt64 - 1, math.MaxInt64 - 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := Backoff{Min: test.min, Max: test.max, Rand: test.draw}
			var got []time.Duration
			for range test.want {
				got = append(got, b.Next())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("pauses %v, want %v", got, test.want)
			}
		})
	}
}

func TestResetStartsOver(t *testing.T) {
	b := Backoff{Min: time.Second, Max: time.Minute, Rand: most}
	first := b.Next()
	b.Next()
	b.Reset()
	if again := b.Next(); again != first {
		t.Errorf("after Reset the pause is %v, want %v", again, first)
	}
}

func TestTheDefaultSourceStaysInBounds(t *testing.T) {
	b := Backoff{Min: time.Second, Max: 8 * time.Second}
	different := false
	last := time.Duration(0)
	for range 100 {
		pause := b.Next()
		if pause < b.Min || pause > b.Max {
			t.Fatalf("pause %v is outside %v … %v", pause, b.Min, b.Max)
		}
		different = different || last != 0 && pause != last
		last = pause
	}
	if !different {
		t.Error("100 pauses are all equal: there is no jitter")
	}
}
