package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// A report is what a run has measured, as JSON has it. Times are microseconds, ratios those to the ReverseProxy.
type report struct {
	Started time.Time    `json:"started"`
	Seconds float64      `json:"seconds"`
	CPUs    int          `json:"cpus"`
	Go      string       `json:"go"`
	Kernel  string       `json:"kernel"`
	Rounds  int          `json:"rounds"`
	TimeMs  int64        `json:"timeMs"`
	Log     string       `json:"gatewayLogLevel"`
	Cells   []cellReport `json:"cells"`
}

type cellReport struct {
	Call        string       `json:"call"`
	Connections int          `json:"connections"`
	Peers       []peerReport `json:"peers"`
	Targets     []goalReport `json:"targets"`
	LeftOut     []absence    `json:"leftOut,omitempty"`
}

type peerReport struct {
	Peer       string             `json:"peer"`
	CPU        float64            `json:"cpuMicros"`
	PerSecond  float64            `json:"callsPerSecond"`
	P50        float64            `json:"p50Micros"`
	P99        float64            `json:"p99Micros"`
	PeakMemory int64              `json:"peakBytes"`
	Ratios     map[string]float64 `json:"ratios"`
}

type goalReport struct {
	Target string  `json:"target"`
	Ratio  float64 `json:"ratio"`
	Met    bool    `json:"met"`
}

func newReport(p plan, began time.Time, cells []*cell) *report {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	r := &report{Started: began.UTC().Truncate(time.Second), Seconds: time.Since(began).Round(time.Second).Seconds(), CPUs: runtime.NumCPU(),
		Go: runtime.Version(), Kernel: string(bytes.TrimSpace(kernel)), Rounds: p.rounds, TimeMs: p.each.Milliseconds(), Log: p.log}
	for _, c := range cells {
		out := cellReport{Call: c.call, Connections: c.connections, LeftOut: c.absent, Targets: []goalReport{}}
		for _, s := range c.series {
			out.Peers = append(out.Peers, s.report(c.of(reverseProxy)))
		}
		for _, g := range c.goals {
			if ratio, met, judged := g.judge(c); judged {
				out.Targets = append(out.Targets, goalReport{g.String(), ratio, met})
			}
		}
		r.Cells = append(r.Cells, out)
	}
	return r
}

func (s *series) report(yardstick *series) peerReport {
	p := peerReport{Peer: s.peer, CPU: s.median(cpu), PerSecond: s.median(throughput), P50: s.median(p50), P99: s.median(p99),
		PeakMemory: s.peak, Ratios: map[string]float64{}}
	for _, m := range []measure{cpu, throughput, p50, p99} {
		p.Ratios[m.name] = s.ratio(m, yardstick)
	}
	return p
}

// write prints a line for each peer of each cell, as a table of Markdown.
func (r *report) write(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("| call | connections | peer | CPU µs | × | calls/s | × | p50 µs | × | p99 µs | × | peak MiB | targets |\n")
	b.WriteString("| --- | --: | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- |\n")
	for _, c := range r.Cells {
		for _, p := range c.Peers {
			targets := ""
			if p.Peer == gateway {
				targets = c.verdicts()
			}
			fmt.Fprintf(&b, "| %s | %d | %s | %.0f | %.2f | %.0f | %.2f | %.0f | %.2f | %.0f | %.2f | %d | %s |\n", c.Call, c.Connections, p.Peer,
				p.CPU, p.Ratios[cpu.name], p.PerSecond, p.Ratios[throughput.name], p.P50, p.Ratios[p50.name], p.P99, p.Ratios[p99.name],
				p.PeakMemory>>20, targets)
		}
	}
	b.WriteString(r.notes())
	_, err := w.Write(b.Bytes())
	return err
}

// writeBrief prints a line for each cell.
func (r *report) writeBrief(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("| call | connections | CPU | throughput | p50 | p99 | nginx CPU | typed SDK gateway CPU | targets |\n")
	b.WriteString("| --- | --: | --: | --: | --: | --: | --: | --: | --- |\n")
	for _, c := range r.Cells {
		ours := c.of(gateway)
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s |", c.Call, c.Connections,
			figure(ours.CPU, "µs", ours.Ratios[cpu.name]), figure(ours.PerSecond, "/s", ours.Ratios[throughput.name]),
			figure(ours.P50, "µs", ours.Ratios[p50.name]), figure(ours.P99, "µs", ours.Ratios[p99.name]))
		for _, peer := range []string{nginx, typedGateway} {
			if p := c.of(peer); p != nil {
				fmt.Fprintf(&b, " %.2f × |", p.Ratios[cpu.name])
			} else {
				b.WriteString("  |")
			}
		}
		fmt.Fprintf(&b, " %s |\n", c.verdicts())
	}
	b.WriteString(r.notes())
	_, err := w.Write(b.Bytes())
	return err
}

func figure(value float64, unit string, ratio float64) string {
	return fmt.Sprintf("%.0f %s, %.2f ×", value, unit, ratio)
}

// of is what is reported of a peer, nil where it had no part.
func (c *cellReport) of(peer string) *peerReport {
	for i := range c.Peers {
		if c.Peers[i].Peer == peer {
			return &c.Peers[i]
		}
	}
	return nil
}

// verdicts are the targets and what came of them.
func (c *cellReport) verdicts() string {
	var all []string
	for _, t := range c.Targets {
		verdict := "met"
		if !t.Met {
			verdict = "**missed**"
		}
		all = append(all, fmt.Sprintf("%s: %.2f, %s", t.Target, t.Ratio, verdict))
	}
	return strings.Join(all, "; ")
}

// notes say how it was measured, and who had no part.
func (r *report) notes() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n× is the ratio to the ReverseProxy in the same round; medians of %d rounds of %v each. CPU is that of the peer's whole process by the "+
		"kernel's accounts, a call. %d CPUs for clients, peer and backend; %s, Linux %s; mcp-gateway logs at level %s; %v in all.\n",
		r.Rounds, time.Duration(r.TimeMs)*time.Millisecond, r.CPUs, r.Go, r.Kernel, r.Log, time.Duration(r.Seconds)*time.Second)
	seen := map[string]bool{}
	for _, c := range r.Cells {
		for _, a := range c.LeftOut {
			line := fmt.Sprintf("\nLeft out: %s of %q: %s.", a.Peer, c.Call, a.Reason)
			if !seen[line] {
				seen[line] = true
				b.WriteString(line)
			}
		}
	}
	b.WriteByte('\n')
	return b.String()
}
