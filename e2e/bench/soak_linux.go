package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	warmUp   = 15 * time.Second // of traffic, before what is there is counted
	rest     = 8 * time.Second  // without traffic, before it is
	clients  = 12               // that call at a time
	disturb  = 3 * time.Second  // between two failures or reloads
	reported = 30 * time.Second // between two lines
)

// A soaking is a run of mixed traffic with failures, reloads and reconnects, after which all is to be as it was.
type soaking struct {
	*scaling
	gateway *process
	steady  *process // a backend that stays
	failing *process // one that is killed and started again
	config  string
	random  *rand.Rand // of what is disturbed, for the one goroutine that does

	tally soakTally
}

// soak is the subcommand.
func soak(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	length := flags.Duration("for", 10*time.Minute, "how long")
	seed := flags.Uint64("seed", 1, "of what happens")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := &soaking{scaling: &scaling{key: "mcpgw_" + secret(43)}, random: rand.New(rand.NewPCG(*seed, 0))}
	if s.dir, err = os.MkdirTemp("", "mcp-gateway-soak-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end(0), os.RemoveAll(s.dir)) }()
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := s.traffic(ctx, warmUp, *seed); err != nil {
		return err
	}
	before, err := s.holdings(ctx)
	if err != nil {
		return err
	}
	fmt.Println("at the start:", before)
	if err := s.traffic(ctx, *length, *seed+1); err != nil {
		return err
	}
	after, err := s.holdings(ctx)
	if err != nil {
		return err
	}
	fmt.Println("at the end:  ", after)
	return errors.Join(s.tally.judge(), after.judge(before))
}

func (s *soaking) start(ctx context.Context) (err error) {
	if s.binary, err = buildGateway(ctx, s.dir); err != nil {
		return err
	}
	if s.steady, err = s.backend(ctx, 0); err != nil {
		return err
	}
	if s.failing, err = start(ctx, "the failing backend", role("backend")); err != nil {
		return err
	}
	s.config = fmt.Sprintf("log_level: info\nwatch: false\ncallers: {keys: {bench: \"sha256:%s\"}}\nupstreams:\n"+
		"  steady: {url: \"http://%s/mcp\", credential: {bearer: %s}}\n  failing: {url: \"http://%s/mcp\", reconnect: {min: 50ms, max: 500ms}}\n"+
		"  pipe: {command: %s, env: {%s: stdio, SERVICE_TOKEN: %s}}\n",
		digest(s.key), s.steady.address, secret(40), s.failing.address, self(), roleEnv, secret(40))
	if s.gateway, err = s.begin(startGateway(ctx, s.binary, s.dir, s.config)); err != nil {
		return err
	}
	return listed(ctx, s.gateway, 3)
}

// end ends the backend that fails, which is another one each time, and the rest.
func (s *soaking) end(n int) error {
	var err error
	if s.failing != nil {
		err = s.failing.stop()
	}
	return errors.Join(err, s.scaling.end(n))
}

// traffic has clients call, while things go wrong, for a time.
func (s *soaking) traffic(ctx context.Context, length time.Duration, seed uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	var running sync.WaitGroup
	for n := range clients {
		running.Go(func() {
			c := &soakClient{soaking: s, random: rand.New(rand.NewPCG(seed, uint64(n))), legacy: n%3 == 0}
			if err := c.repeat(ctx, over); err != nil {
				cancel(err)
			}
		})
	}
	end := time.NewTimer(length)
	defer end.Stop()
	next, line := time.NewTicker(disturb), time.NewTicker(reported)
	defer next.Stop()
	defer line.Stop()
	for going := true; going; {
		var err error
		select {
		case <-end.C:
			going = false
		case <-ctx.Done():
			going = false
		case <-next.C:
			err = s.disturb(ctx)
		case <-line.C:
			fmt.Println(s.tally.String())
		}
		if err != nil {
			cancel(err)
		}
	}
	close(over)
	running.Wait()
	return context.Cause(ctx)
}

// disturb kills a backend and starts it again, or reloads: with a change, with none, or with a configuration that is no good.
func (s *soaking) disturb(ctx context.Context) error {
	path := filepath.Join(s.dir, "gateway.yaml")
	head := "admin: " + s.gateway.admin + "\npprof: true\nstate_dir: state\n"
	switch s.random.IntN(5) {
	case 0, 1:
		s.tally.kills.Add(1)
		_ = s.failing.cmd.Process.Kill()
		<-s.failing.exited
		p, err := start(ctx, "the failing backend", role("backend", "-listen", s.failing.address))
		if err != nil {
			return err
		}
		s.failing = p
		return nil
	case 2:
		s.tally.reloads.Add(1)
		changed := fmt.Sprintf("%s  more%d: {url: \"http://%s/mcp\", timeout: %ds}\n", s.config, s.random.IntN(3), s.steady.address, 10+s.random.IntN(20))
		if err := os.WriteFile(path, []byte(head+changed), 0o600); err != nil {
			return err
		}
	case 3:
		s.tally.refused.Add(1)
		if err := os.WriteFile(path, []byte(head+s.config+"  bad: {url: nowhere}\n"), 0o600); err != nil {
			return err
		}
	case 4:
		s.tally.reloads.Add(1)
		changed := strings.Replace(s.config, "SERVICE_TOKEN: ", "ROUND: \""+strconv.Itoa(s.random.IntN(1000))+"\", SERVICE_TOKEN: ", 1)
		if err := os.WriteFile(path, []byte(head+changed), 0o600); err != nil {
			return err
		}
	}
	return s.gateway.signal(syscall.SIGHUP)
}

// holdings are what the gateway has in hand.
type holdings struct{ goroutines, descriptors, children, heap, resident float64 }

func (h holdings) String() string {
	return fmt.Sprintf("%g goroutines, %g descriptors, %g children, %.1f MB of heap, %.1f MB resident", h.goroutines, h.descriptors, h.children, h.heap/1e6, h.resident/1e6)
}

// holdings are counted at rest, under the configuration that the run began with.
func (s *soaking) holdings(ctx context.Context) (h holdings, err error) {
	text := "admin: " + s.gateway.admin + "\npprof: true\nstate_dir: state\n" + s.config
	if err := os.WriteFile(filepath.Join(s.dir, "gateway.yaml"), []byte(text), 0o600); err != nil {
		return h, err
	}
	if err := s.gateway.signal(syscall.SIGHUP); err != nil {
		return h, err
	}
	select {
	case <-time.After(rest):
	case <-ctx.Done():
		return h, ctx.Err()
	}
	// A collection, so that what is garbage is not counted.
	if _, err := fetch(ctx, "http://"+s.gateway.admin+"/debug/pprof/heap?gc=1"); err != nil {
		return h, err
	}
	metrics, err := fetch(ctx, "http://"+s.gateway.admin+"/metrics")
	if err != nil {
		return h, err
	}
	for name, into := range map[string]*float64{
		"go_goroutines": &h.goroutines, "process_open_fds": &h.descriptors, "go_memstats_heap_inuse_bytes": &h.heap, "process_resident_memory_bytes": &h.resident,
	} {
		if *into, err = sumOf(metrics, name); err != nil {
			return h, err
		}
	}
	h.children = float64(len(children(s.gateway.cmd.Process.Pid)))
	return h, nil
}

// judge says what has grown. Memory may: pools and what the runtime keeps are filled by use.
func (h holdings) judge(before holdings) error {
	var grown []error
	for _, one := range []struct {
		what          string
		now, at, room float64
	}{
		{"goroutines", h.goroutines, before.goroutines, 10}, {"descriptors", h.descriptors, before.descriptors, 10}, {"children", h.children, before.children, 0},
		{"bytes of heap", h.heap, before.heap, before.heap/2 + 8e6}, {"resident bytes", h.resident, before.resident, before.resident/2 + 32e6},
	} {
		if one.now > one.at+one.room {
			grown = append(grown, fmt.Errorf("%g %s at the end, %g at the start", one.now, one.what, one.at))
		}
	}
	return errors.Join(grown...)
}
