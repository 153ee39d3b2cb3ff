package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is the benchmark's main where the test binary is started in a role.
func TestMain(m *testing.M) {
	if as := os.Getenv(roleEnv); as != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := run(ctx, as, os.Args[1:])
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestEveryCallOfEveryPeer makes each call once through real peers, and measures the cheap ones, so that none of them rots
// between two uses.
func TestEveryCallOfEveryPeer(t *testing.T) {
	p, err := readPlan([]string{"-rounds", "1", "-time", "1ms", "-connections", "2", "-calls", "small"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := startFleet(t.Context(), p.log)
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = f.stop()
		}
	})
	for _, call := range callNames() {
		c, err := f.cell(t.Context(), call, 1)
		if err != nil {
			t.Fatal(err)
		}
		if c.of(gateway) == nil || c.of(reverseProxy) == nil {
			t.Errorf("%s lacks a peer", c.title())
		}
	}
	cells, err := f.measure(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(cells) != len(p.calls) {
		t.Errorf("%d cells were measured, not %d", len(cells), len(p.calls))
	}
	for _, c := range cells {
		for _, s := range c.series {
			if s.median(cpu) <= 0 || s.median(throughput) <= 0 || s.median(p50) <= 0 || s.peak <= 0 {
				t.Errorf("%s, %s: %+v, peak %d", c.title(), s.peer, s.samples, s.peak)
			}
		}
	}
	stopped = true
	if err := f.stop(); err != nil {
		t.Error(err)
	}
	for _, p := range f.started {
		if _, err := p.usage(); err == nil {
			t.Errorf("%s still runs", p.name)
		}
	}
	if _, err := os.Stat(f.dir); !os.IsNotExist(err) {
		t.Errorf("%s is left over: %v", f.dir, err)
	}
}

func TestFlagsSayWhatIsWrong(t *testing.T) {
	for _, row := range []struct{ args, problem string }{
		{"-connections 0", "no number from 1"}, {"-connections 1,x", `"x"`}, {"-calls nothing", "there is none"},
		{"-rounds 0", "more than zero"}, {"-time 0s", "more than zero"}, {"small", "is no flag"},
	} {
		if _, err := readPlan(strings.Fields(row.args)); err == nil || !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: %v", row.args, err)
		}
	}
	p, err := readPlan(nil)
	if err != nil || len(p.connectionsOf("small call")) != 3 || len(p.connectionsOf(legacyCall)) != 1 || p.each != 2*time.Second {
		t.Errorf("%+v %v", p, err)
	}
}

// TestAProcessThatFailsIsToldWithItsWords starts roles that cannot work.
func TestAProcessThatFailsIsToldWithItsWords(t *testing.T) {
	if _, err := start(t.Context(), "the backend", role("backend", "-listen", "nowhere")); err == nil ||
		!strings.Contains(err.Error(), "the backend ended before it served") || !strings.Contains(err.Error(), "missing port") {
		t.Errorf("%v", err)
	}
	p, err := start(t.Context(), "the backend", role("backend"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.alive(); err != nil {
		t.Error(err)
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	<-p.exited
	if err := p.alive(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v", err)
	}
	if err := p.stop(); err == nil {
		t.Error("a process that was killed ended in order")
	}
}
