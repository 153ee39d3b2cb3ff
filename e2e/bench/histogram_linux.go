package main

import (
	"math/bits"
	"time"
)

// A histogram counts durations, each in a bucket less than one percent wide.
type histogram struct{ buckets [buckets]uint32 }

const (
	fine    = 7 // bits of a duration that a bucket keeps after the first
	buckets = 40 << fine
)

func bucket(d time.Duration) int {
	n := uint64(max(d, 0))
	shift := max(bits.Len64(n)-fine-1, 0)
	return min(shift<<fine+int(n>>shift), buckets-1)
}

// middle is a duration that stands for all in a bucket.
func middle(bucket int) time.Duration {
	if bucket < 2<<fine {
		return time.Duration(bucket)
	}
	shift := bucket>>fine - 1
	low := uint64(bucket-shift<<fine) << shift
	return time.Duration(low + 1<<shift/2)
}

func (h *histogram) record(d time.Duration) { h.buckets[bucket(d)]++ }

func (h *histogram) add(other *histogram) {
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
}

func (h *histogram) count() int {
	sum := 0
	for _, n := range h.buckets {
		sum += int(n)
	}
	return sum
}

// quantile is the least duration that a share q of all do not exceed, 0 < q ≤ 1; zero where there is none.
func (h *histogram) quantile(q float64) time.Duration {
	left := int(q*float64(h.count()) + 0.9999999)
	for i, n := range h.buckets {
		if left -= int(n); left <= 0 && n > 0 {
			return middle(i)
		}
	}
	return 0
}
