package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

// measured is a series whose calls took that many microseconds of CPU, a round each.
func measured(peer string, micros ...int) *series {
	s := &series{peer: peer}
	for _, n := range micros {
		d := time.Duration(n) * time.Microsecond
		s.samples = append(s.samples, sample{cpu: d, perSecond: 1e6 / float64(n), p50: 2 * d, p99: 3 * d})
	}
	return s
}

func TestMedian(t *testing.T) {
	for _, row := range []struct {
		all  []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 30}, 3}} {
		if got := median(row.all); got != row.want {
			t.Errorf("the median of %v is %v, not %v", row.all, got, row.want)
		}
	}
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	// The machine was ten times slower in the last round, for both.
	ours, theirs := measured(gateway, 90, 120, 800), measured(reverseProxy, 100, 100, 1000)
	if got := ours.ratio(cpu, theirs); math.Abs(got-0.9) > 1e-9 {
		t.Errorf("the ratio is %v, not 0.9", got)
	}
	if got := ours.median(cpu); got != 120 {
		t.Errorf("the median is %v µs, not 120", got)
	}
}

func TestGoals(t *testing.T) {
	for _, row := range []struct {
		call        string
		connections int
		ours, typed int
		verdicts    string
	}{
		{"small call", 1, 110, 900, "p50 ≤ 1.1 ×: 1.10, met"},
		{"small call", 1, 111, 900, "p50 ≤ 1.1 ×: 1.11, **missed**"},
		{"small call", 16, 90, 720, "CPU ≤ 0.9 ×: 0.90, met; throughput ≥ 1.1 ×: 1.11, met; throughput ≥ 8 × typed SDK gateway: 8.00, met"},
		{"small call", 16, 95, 759, "CPU ≤ 0.9 ×: 0.95, **missed**; throughput ≥ 1.1 ×: 1.05, **missed**; throughput ≥ 8 × typed SDK gateway: 7.99, **missed**"},
		{"small call", 64, 80, 700, "CPU ≤ 0.9 ×: 0.80, met; throughput ≥ 1.1 ×: 1.25, met"},
		{"1 MB structured", 16, 401, 700, "CPU ≤ 4 ×: 4.01, **missed**"},
		{legacyCall, 16, 115, 700, "CPU ≤ 1.15 × mcp-gateway, modern client: 1.15, met"},
		{stdioCall, 16, 100, 700, ""},
	} {
		c := &cell{call: row.call, connections: row.connections, goals: goals(row.call, row.connections)}
		c.series = []*series{measured(reverseProxy, 100), measured(gatewayModern, 100), measured(gateway, row.ours), measured(typedGateway, row.typed)}
		r := newReport(plan{rounds: 1, each: time.Second}, time.Now(), []*cell{c})
		if got := r.Cells[0].verdicts(); got != row.verdicts {
			t.Errorf("%s at %d: %s\nnot %s", row.call, row.connections, got, row.verdicts)
		}
	}
}

func TestTheTableHasOneLineForEachPeer(t *testing.T) {
	c := &cell{call: "small call", connections: 16, absent: []absence{{nginx, "it is not installed"}}}
	c.series = []*series{measured(reverseProxy, 100), measured(gateway, 80)}
	r := newReport(plan{rounds: 1, each: time.Second}, time.Now(), []*cell{c})
	var full, brief strings.Builder
	if err := r.write(&full); err != nil {
		t.Fatal(err)
	}
	if err := r.writeBrief(&brief); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| small call | 16 | ReverseProxy | 100 | 1.00 | 10000 | 1.00 | 200 | 1.00 | 300 | 1.00 | 0 |  |\n",
		"| small call | 16 | mcp-gateway | 80 | 0.80 | 12500 | 1.25 | 160 | 0.80 | 240 | 0.80 | 0 |  |\n",
		"Left out: nginx of \"small call\": it is not installed.",
	} {
		if !strings.Contains(full.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, full.String())
		}
	}
	if want := "| small call | 16 | 80 µs, 0.80 × | 12500 /s, 1.25 × | 160 µs, 0.80 × | 240 µs, 0.80 × |  |  |  |\n"; !strings.Contains(brief.String(), want) {
		t.Errorf("the brief table lacks %q:\n%s", want, brief.String())
	}
}
