package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mcp-gateway/redact"
)

func TestRecordLogsLine(t *testing.T) {
	var out bytes.Buffer
	scrubber := redact.NewScrubber(redact.NewSecret("s3cr3t-t0ken"))
	o := New(Config{Log: NewLogger(&out, true, slog.LevelInfo, scrubber), Scrubber: scrubber})
	o.Record(Record{Method: "tools/call", Name: "a__t", Outcome: "ok"})
	if out.Len() != 0 {
		t.Errorf("a success is logged at info: %s", out.String())
	}
	o.Record(Record{
		Request: "r-1", Caller: "alice", Method: "tools/call", Name: "a__t", Upstream: "a", Target: "t", Outcome: "not-sent", Cause: "unreachable",
		Code: -32603, HTTPStatus: 502, Duration: time.Second, Err: errors.New("dial with s3cr3t-t0ken\nforged=line"),
	})
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("%q: %v", out.String(), err)
	}
	for key, want := range map[string]any{
		"level": "WARN", "request": "r-1", "caller": "alice", "method": "tools/call", "name": "a__t", "upstream": "a", "target": "t",
		"outcome": "not-sent", "cause": "unreachable", "code": -32603.0, "httpStatus": 502.0,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if strings.Contains(out.String(), "s3cr3t") {
		t.Errorf("a secret in %s", out.String())
	}
}

func TestRecordLevels(t *testing.T) {
	for _, test := range []struct {
		Record
		want string
	}{
		{Record{Outcome: "ok"}, `level=DEBUG msg=called`},
		{Record{Outcome: "tool-error"}, `level=DEBUG msg=called`},
		{Record{Outcome: "no-response", Cause: "canceled", Canceled: true}, `level=INFO msg="a call was cancelled"`},
		{Record{Outcome: "error-response", Code: -32602}, `level=INFO msg="the server answered a call with an error"`},
		{Record{Outcome: "no-response", Cause: "deadline"}, `level=WARN msg="a call failed"`},
	} {
		var out bytes.Buffer
		scrubber := redact.NewScrubber()
		New(Config{Log: NewLogger(&out, false, slog.LevelDebug, scrubber), Scrubber: scrubber}).Record(test.Record)
		if !strings.Contains(out.String(), test.want) {
			t.Errorf("%+v: %s", test.Record, out.String())
		}
	}
}

// What /status shows of a call is what a person needs to understand it, and only of calls that failed.
func TestFailuresAreTheLast100(t *testing.T) {
	o, _ := newObserver(t)
	for _, r := range []Record{
		{Outcome: "ok", Name: "ok"},
		{Outcome: "tool-error", Name: "tool-error"},
		{Outcome: "no-response", Cause: "canceled", Canceled: true, Name: "canceled"},
	} {
		o.Record(r)
	}
	if got := o.status().Failures; len(got) != 0 {
		t.Errorf("kept without a failure: %+v", got)
	}
	for i := range maxFailures + 3 {
		o.Record(Record{Outcome: "error-response", Name: fmt.Sprint(i)})
		got := o.status().Failures
		if n := min(i+1, maxFailures); len(got) != n || got[0].Name != fmt.Sprint(i) || got[n-1].Name != fmt.Sprint(i+1-n) {
			t.Fatalf("after %d: %d, from %s to %s", i, len(got), got[0].Name, got[len(got)-1].Name)
		}
	}
}

func TestKeptTextsAreBounded(t *testing.T) {
	o, _ := newObserver(t)
	long := strings.Repeat("x", 4*maxText)
	o.Record(Record{Outcome: "not-sent", Name: long, Words: long, Listed: true, Upstream: "files"})
	// What was kept, and not only what is shown of it; the cut is marked.
	if f := o.failures.list[0]; len(f.Name) > maxText+100 || len(f.Words) > maxText+100 {
		t.Errorf("a name of %d bytes and words of %d", len(f.Name), len(f.Words))
	}
}

func TestLatencyIsOfTheLastCallsSent(t *testing.T) {
	o, _ := newObserver(t)
	latency := func() latency { return o.status().Upstreams[0].Latency }
	call := func(outcome string, took time.Duration) {
		o.Record(Record{Upstream: "files", Outcome: outcome, UpstreamDuration: took})
	}
	call("not-sent", time.Hour)
	if got := latency(); got.Count != 0 || got.P50Ms != nil || got.P99Ms != nil {
		t.Errorf("without a call that was sent: %+v", got)
	}
	call("ok", 1500*time.Microsecond)
	if got := latency(); got.Count != 1 || *got.P50Ms != 1.5 || *got.P99Ms != 1.5 {
		t.Errorf("after one call: %+v", got)
	}
	for i := range 100 {
		call("ok", time.Duration(100-i)*time.Second)
	}
	if got := latency(); got.Count != 101 || *got.P50Ms != 50_000 || *got.P99Ms != 99_000 {
		t.Errorf("after 101: %d calls, p50 %v, p99 %v", got.Count, *got.P50Ms, *got.P99Ms)
	}
	for range maxLatencies - 5 {
		call("no-response", time.Millisecond)
	}
	if got := latency(); got.Count != maxLatencies || *got.P50Ms != 1 || *got.P99Ms != 1 {
		t.Errorf("after many: %d calls, p50 %v, p99 %v", got.Count, *got.P50Ms, *got.P99Ms)
	}
	call("ok", time.Minute)
	if n := len(o.tallies["files"].latencies); n != maxLatencies {
		t.Errorf("%d latencies are kept, want %d", n, maxLatencies)
	}
}
