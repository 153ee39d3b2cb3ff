package main

import (
	"fmt"
	"slices"
)

// A measure is one of the figures of a sample. Ratios are taken within a round, so that what the machine did meanwhile
// counts for both sides.
type measure struct {
	name string
	of   func(sample) float64
}

var (
	cpu        = measure{"CPU", func(s sample) float64 { return float64(s.cpu) / 1e3 }}
	throughput = measure{"throughput", func(s sample) float64 { return s.perSecond }}
	p50        = measure{"p50", func(s sample) float64 { return float64(s.p50) / 1e3 }}
	p99        = measure{"p99", func(s sample) float64 { return float64(s.p99) / 1e3 }}
)

// median of the rounds: microseconds, and calls a second of throughput.
func (s *series) median(m measure) float64 {
	var all []float64
	for _, one := range s.samples {
		all = append(all, m.of(one))
	}
	return median(all)
}

// ratio is the median of the rounds' ratios to another series of the cell.
func (s *series) ratio(m measure, to *series) float64 {
	var all []float64
	for i := range min(len(s.samples), len(to.samples)) {
		all = append(all, m.of(s.samples[i])/m.of(to.samples[i]))
	}
	return median(all)
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	middle := len(all) / 2
	if len(all)%2 == 1 {
		return all[middle]
	}
	return (all[middle-1] + all[middle]) / 2
}

// A goal is what the gateway's ratio to another peer must be.
type goal struct {
	measure measure
	least   bool // the ratio must be at least the bound, else at most
	bound   float64
	peer    string
}

func goals(call string, connections int) []goal {
	most := func(m measure, bound float64) goal { return goal{m, false, bound, reverseProxy} }
	switch call {
	case "small call":
		switch connections {
		case 1:
			return []goal{most(p50, 1.1)}
		case 16:
			return []goal{most(cpu, 0.9), {throughput, true, 1.1, reverseProxy}, {throughput, true, 8, typedGateway}}
		case 64:
			return []goal{most(cpu, 0.9), {throughput, true, 1.1, reverseProxy}}
		}
	case "256 KB arguments":
		return []goal{most(cpu, 1.2)}
	case "1 MB text":
		return []goal{most(cpu, 2)}
	case "1 MB text with escapes":
		return []goal{most(cpu, 2.5)}
	case "1 MB structured":
		return []goal{most(cpu, 4)}
	case legacyCall:
		return []goal{{cpu, false, 1.15, gatewayModern}}
	}
	return nil
}

// What a run at scale must not exceed.
const (
	goalFlat      = 1.1 // a call with many upstreams or tools, to one with few
	goalList      = 1.2 // a list, to a ReverseProxy that passes the same bytes on
	goalHung      = 1.2 // p99 while calls wait for another upstream, to that without
	goalListeners = 300 // MB that the gateway has resident with the default number of listeners
)

// String is the goal without what came of it. The ReverseProxy goes without saying.
func (g goal) String() string {
	sign, of := "≤", ""
	if g.least {
		sign = "≥"
	}
	if g.peer != reverseProxy {
		of = " " + g.peer
	}
	return fmt.Sprintf("%s %s %g ×%s", g.measure.name, sign, g.bound, of)
}

// judge gives the ratio, and whether it is what it must be.
func (g goal) judge(c *cell) (ratio float64, met, judged bool) {
	ours, theirs := c.of(gateway), c.of(g.peer)
	if ours == nil || theirs == nil {
		return 0, false, false
	}
	ratio = ours.ratio(g.measure, theirs)
	if g.least {
		return ratio, ratio >= g.bound, true
	}
	return ratio, ratio <= g.bound, true
}
