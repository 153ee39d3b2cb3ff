package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// reload has the gateway take another configuration, and counts it.
func (s *soaking) reload(count *atomic.Int64, config string) error {
	count.Add(1)
	text := gatewayHead(s.gateway.admin) + config
	if err := os.WriteFile(filepath.Join(s.dir, configFile), []byte(text), 0o600); err != nil {
		return err
	}
	return s.gateway.signal(syscall.SIGHUP)
}

// withRound is the configuration with another environment of the child, which is then ended and started again.
func withRound(config string, round int) string {
	return strings.Replace(config, "SERVICE_TOKEN: ", fmt.Sprintf("ROUND: \"%d\", SERVICE_TOKEN: ", round), 1)
}

// judgeReloads holds what the gateway says of its reloads against what it was told. Those that came during one are one.
func (s *soaking) judgeReloads(ctx context.Context) error {
	worked, err := s.gateway.metric(ctx, `mcp_gateway_reloads_total{result="success"}`)
	if err != nil {
		return err
	}
	refused, err := s.gateway.metric(ctx, `mcp_gateway_reloads_total{result="failure"}`)
	if err != nil {
		return err
	}
	if worked < 2 || refused > float64(s.tally.refused.Load()) || (refused == 0) != (s.tally.refused.Load() == 0) {
		return fmt.Errorf("the gateway says that %g reloads worked and %g were refused", worked, refused)
	}
	return nil
}

// holdings are what the gateway has in hand.
type holdings struct{ goroutines, descriptors, children, heap, resident float64 }

func (h holdings) String() string {
	return fmt.Sprintf("%g goroutines, %g descriptors, %g children, %.1f MB of heap, %.1f MB resident",
		h.goroutines, h.descriptors, h.children, h.heap/1e6, h.resident/1e6)
}

func (s *soaking) holdings(ctx context.Context) (h holdings, err error) {
	metrics, err := fetch(ctx, "http://"+s.gateway.admin+"/metrics")
	if err != nil {
		return h, err
	}
	for _, one := range []struct {
		name string
		into *float64
	}{
		{"go_goroutines", &h.goroutines}, {"process_open_fds", &h.descriptors},
		{"go_memstats_heap_inuse_bytes", &h.heap}, {"process_resident_memory_bytes", &h.resident},
	} {
		if *one.into, err = sumOf(metrics, one.name); err != nil {
			return h, err
		}
	}
	h.children = float64(len(children(s.gateway.cmd.Process.Pid)))
	return h, nil
}

// rest is what the gateway has in hand after it has come to rest, under the configuration that it was started with and without
// garbage.
func (s *soaking) rest(ctx context.Context) (h holdings, err error) {
	if err := s.reload(&s.tally.reloads, s.config); err != nil {
		return h, err
	}
	select {
	case <-time.After(quiet):
	case <-ctx.Done():
		return h, ctx.Err()
	}
	if err := listed(ctx, s.gateway, 3); err != nil {
		return h, err
	}
	for range 2 { // what pools hold outlives one collection
		if _, err := fetch(ctx, "http://"+s.gateway.admin+"/debug/pprof/heap?gc=1"); err != nil {
			return h, err
		}
	}
	return s.holdings(ctx)
}

// judge says what has grown. Memory may, by much: what the runtime and its pools keep depends on the last that was done.
func (s *soaking) judge(before, after holdings) error {
	for _, one := range []struct {
		what    string
		at, now float64
		unit    string
		room    float64
	}{
		{"goroutines", before.goroutines, after.goroutines, "", 8},
		{"descriptors", before.descriptors, after.descriptors, "", 8},
		{"children", before.children, after.children, "", 0},
		{"heap in use", before.heap / 1e6, after.heap / 1e6, "MB", before.heap/4e6 + 4},
		{"memory", before.resident / 1e6, after.resident / 1e6, "MB", before.resident/2e6 + 16},
	} {
		s.found(one.what+" at the end", one.now, one.unit, one.at+one.room)
	}
	var grown []error
	for _, f := range s.findings {
		if !f.Met {
			grown = append(grown, fmt.Errorf("the gateway has kept what it should have given back: %v", f))
		}
	}
	return errors.Join(grown...)
}
