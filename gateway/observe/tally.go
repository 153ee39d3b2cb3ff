package observe

import (
	"maps"
	"math"
	"slices"
	"time"
)

const (
	maxFailures  = 100 // that /status shows
	maxLatencies = 512 // of one upstream, which its percentiles are of
)

// A tally is what the calls to one upstream came to.
type tally struct {
	outcomes  map[string]uint64
	latencies []time.Duration // of the last calls that were sent, the oldest at next once it is full
	next      int
	series    map[kind]*series
}

func (t *tally) add(r *Record, outcome string) {
	t.outcomes[outcome]++
	if !r.sent() {
		return
	}
	if len(t.latencies) < maxLatencies {
		t.latencies = append(t.latencies, r.UpstreamDuration)
		return
	}
	t.latencies[t.next] = r.UpstreamDuration
	t.next = (t.next + 1) % maxLatencies
}

func (t *tally) copy() tally {
	return tally{outcomes: maps.Clone(t.outcomes), latencies: slices.Clone(t.latencies)}
}

// percentile is the least of the sorted values that a share p of them does not exceed, by nearest rank. There must be one.
func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[int(math.Ceil(p*float64(len(sorted))))-1]
}

// A failure is a call that came to no result.
type failure struct {
	Outcome outcomeObject `json:"outcome"`
	Time    time.Time     `json:"time"`
	Request string        `json:"request"`
	Name    string        `json:"name"`
	Words   string        `json:"words"`
}

// An outcomeObject is what the caller got as the outcome, or would have got where the server's own error stood in its place.
type outcomeObject struct {
	Outcome    string `json:"outcome"`
	Cause      string `json:"cause,omitempty"`
	Upstream   string `json:"upstream"`
	Method     string `json:"method"`
	Retry      string `json:"retry,omitempty"`
	Code       int64  `json:"code,omitempty"`
	HTTPStatus int    `json:"httpStatus,omitempty"`
}

// failures are the last ones, the oldest at next once there are as many as are kept.
type failures struct {
	list []failure
	next int
}

func (f *failures) add(one failure) {
	if len(f.list) < maxFailures {
		f.list = append(f.list, one)
		return
	}
	f.list[f.next] = one
	f.next = (f.next + 1) % maxFailures
}

// latest is a copy, the newest first.
func (f *failures) latest() []failure {
	list := append([]failure{}, f.list[f.next:]...) // never nil, which JSON would call null
	list = append(list, f.list[:f.next]...)
	slices.Reverse(list)
	return list
}
