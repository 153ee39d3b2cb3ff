//go:build !race

package observe

import (
	"io"
	"log/slog"
	"testing"
	"time"
)

// A call that succeeds is recorded without any garbage. The race detector allocates by itself.
func TestRecordAllocates(t *testing.T) {
	o, g := newObserver(t)
	o.cfg.Log = NewLogger(io.Discard, false, slog.LevelInfo, g.scrubber)
	r := Record{
		Request: "r-1", Caller: "alice", Method: "tools/call", Name: "files__read", Listed: true, Upstream: "files", Target: "read", Outcome: "ok",
		Duration: time.Millisecond, UpstreamDuration: time.Millisecond,
	}
	for range maxLatencies {
		o.Record(r) // until every table is as large as it gets
	}
	if n := testing.AllocsPerRun(1000, func() { o.Record(r) }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
