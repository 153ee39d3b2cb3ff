package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A cell is one kind of call on a number of connections, made of each peer in turn, round after round.
type cell struct {
	call        string
	connections int
	series      []*series
	goals       []goal
	absent      []absence
}

// An absence is a peer that has no series in a cell.
type absence struct {
	Peer   string `json:"peer"`
	Reason string `json:"reason"`
}

// A series is what one peer did in a cell.
type series struct {
	peer    string
	process *process
	target  *target
	samples []sample // one a round
	peak    int64    // bytes
}

// A sample is what was measured in one round.
type sample struct {
	cpu       time.Duration // of the peer's whole process, a call
	perSecond float64
	p50, p99  time.Duration
}

// of is the series of that peer, nil without one.
func (c *cell) of(peer string) *series {
	if i := slices.IndexFunc(c.series, func(s *series) bool { return s.peer == peer }); i >= 0 {
		return c.series[i]
	}
	return nil
}

// title names the cell in what people read.
func (c *cell) title() string { return fmt.Sprintf("%s at %d", c.call, c.connections) }

// measure fills the cell.
func (c *cell) measure(ctx context.Context, rounds int, each time.Duration) error {
	for _, s := range c.series {
		if _, err := load(ctx, s.target, c.connections, limit{time: each / 4}); err != nil {
			return fmt.Errorf("%s: %w", c.title(), err)
		}
		if err := s.process.forgetPeak(); err != nil {
			return err
		}
	}
	for range rounds {
		for _, s := range c.series {
			if err := s.round(ctx, c.connections, each); err != nil {
				return fmt.Errorf("%s: %w", c.title(), err)
			}
		}
	}
	for _, s := range c.series {
		used, err := s.process.usage()
		if err != nil {
			return err
		}
		s.peak = used.PeakMemory
		s.target.close()
	}
	return nil
}

// round takes one sample. A call on each connection comes first: those that were closed meanwhile, on either side of the peer,
// are opened again outside of it.
func (s *series) round(ctx context.Context, connections int, each time.Duration) error {
	if _, err := load(ctx, s.target, connections, limit{calls: connections}); err != nil {
		return err
	}
	before, err := s.process.usage()
	if err != nil {
		return err
	}
	r, err := load(ctx, s.target, connections, limit{time: each})
	if err != nil {
		return err
	}
	after, err := s.process.usage()
	if err != nil {
		return err
	}
	s.samples = append(s.samples, sample{
		cpu: (after.CPU - before.CPU) / time.Duration(r.calls), perSecond: r.perSecond(),
		p50: r.latencies.quantile(0.5), p99: r.latencies.quantile(0.99),
	})
	return nil
}

// profiled is how long a profile takes: at a hundred samples a second, less says little.
const profiled = 5 * time.Second

// profile writes a CPU profile of the gateway under the load of this cell into dir, for go tool pprof.
func (c *cell) profile(ctx context.Context, dir string) error {
	s := c.of(gateway)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	loaded := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		// Longer than the profile, so that no idle time is in it.
		_, err := load(ctx, s.target, c.connections, limit{time: profiled + 2*time.Second})
		loaded <- err
	}()
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.process.admin, int(profiled.Seconds()))
	name := strings.NewReplacer(" ", "-", ",", "").Replace(fmt.Sprintf("%s-%d.pprof", c.call, c.connections))
	err := download(ctx, url, filepath.Join(dir, name))
	if err != nil {
		cancel()
		<-loaded
		return fmt.Errorf("profiling the gateway: %w", err)
	}
	return <-loaded
}

func download(ctx context.Context, url, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d %.200s", resp.StatusCode, text)
	}
	return os.WriteFile(path, text, 0o644)
}
