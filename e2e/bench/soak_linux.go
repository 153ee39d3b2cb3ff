package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	warmUp   = 20 * time.Second // of traffic, before what is there is counted
	quiet    = 8 * time.Second  // without traffic, before it is
	callers  = 12               // that call at a time
	hearers  = 8                // that listen at a time
	disturb  = 3 * time.Second  // between two failures or reloads
	reported = 30 * time.Second // between two lines
)

// A soaking is a run of mixed traffic with failures, reloads and reconnects, after which all is to be as it was.
type soaking struct {
	*scaling
	gateway *process
	steady  *process // a backend that stays
	failing *process // one that is killed and started again; used by what disturbs alone
	random  *rand.Rand
	config  string
	tally   tally
}

// soak is the subcommand.
func soak(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	length := flags.Duration("for", 10*time.Minute, "how long")
	seed := flags.Uint64("seed", 1, "of what happens")
	if err := readFlags(flags, args); err != nil {
		return err
	}
	if *length <= 0 {
		return errors.New("-for must be more than zero")
	}
	s := &soaking{scaling: &scaling{key: "mcpgw_" + secret(43)}, random: rand.New(rand.NewPCG(*seed, 0))}
	if s.dir, err = os.MkdirTemp("", "mcp-gateway-soak-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end(), os.RemoveAll(s.dir)) }()
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := s.traffic(ctx, warmUp, *seed); err != nil {
		return err
	}
	before, err := s.rest(ctx)
	if err != nil {
		return err
	}
	fmt.Println("at the start:", before)
	if err := s.traffic(ctx, *length, *seed+1); err != nil {
		return err
	}
	after, err := s.rest(ctx)
	if err != nil {
		return err
	}
	fmt.Println("at the end:  ", after)
	fmt.Println(s.tally.String())
	return errors.Join(s.tally.judge(), s.judgeReloads(ctx), s.judge(before, after))
}

func (s *soaking) start(ctx context.Context) (err error) {
	if s.binary, err = buildGateway(ctx, s.dir); err != nil {
		return err
	}
	if s.steady, err = s.backend(ctx, len(callable)); err != nil {
		return err
	}
	if s.failing, err = start(ctx, "the failing backend", role("backend")); err != nil {
		return err
	}
	s.config = fmt.Sprintf(`log_level: info
callers: {keys: {bench: "sha256:%s"}}
upstreams:
  steady: {url: "http://%s/mcp", timeout: 30s, credential: {bearer: %s}}
  failing: {url: "http://%s/mcp", timeout: 30s, reconnect: {min: 50ms, max: 500ms}}
  pipe: {command: %s, timeout: 30s, reconnect: {min: 50ms, max: 500ms}, env: {%s: stdio, SERVICE_TOKEN: %s}}
`, digest(s.key), s.steady.address, secret(40), s.failing.address, self(), roleEnv, secret(40))
	if s.gateway, err = s.begin(startGateway(ctx, s.binary, s.dir, s.config)); err != nil {
		return err
	}
	return listed(ctx, s.gateway, 3)
}

// end ends the backend that fails, which is another one each time, and the rest.
func (s *soaking) end() error {
	var err error
	if s.failing != nil {
		err = s.failing.stop()
	}
	return errors.Join(s.scaling.end(), err)
}

// traffic has clients call and listen, while things go wrong, for a time. The first that is not as it should be ends it.
func (s *soaking) traffic(ctx context.Context, length time.Duration, seed uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	var running sync.WaitGroup
	run := func(n int, repeat func(*soakClient, context.Context, <-chan struct{}) error) {
		c := newSoakClient(s, rand.New(rand.NewPCG(seed, uint64(n+1))), n%3 == 0)
		running.Go(func() {
			if err := repeat(c, ctx, over); err != nil {
				cancel(err)
			}
		})
	}
	for n := range callers {
		run(n, (*soakClient).call)
	}
	for n := range hearers {
		run(callers+n, (*soakClient).hear)
	}
	if err := s.trouble(ctx, length); err != nil {
		cancel(err)
	}
	close(over)
	running.Wait()
	return context.Cause(ctx)
}

// trouble disturbs the gateway and says how it is, for a time or until ctx ends.
func (s *soaking) trouble(ctx context.Context, length time.Duration) error {
	end := time.NewTimer(length)
	defer end.Stop()
	next, line := time.NewTicker(disturb), time.NewTicker(reported)
	defer next.Stop()
	defer line.Stop()
	for {
		select {
		case <-end.C:
			return nil
		case <-ctx.Done():
			return nil
		case <-next.C:
			if err := s.disturb(ctx); err != nil {
				return err
			}
		case <-line.C:
			h, err := s.holdings(ctx)
			if err != nil {
				return err
			}
			fmt.Printf("%s; %s\n", s.tally.String(), h)
			// A run logs more than a disk should have to hold.
			if err := os.Truncate(filepath.Join(s.dir, "log"), 0); err != nil {
				return err
			}
		}
	}
}

// disturb kills a server, or reloads: with a change, or with a configuration that is no good.
func (s *soaking) disturb(ctx context.Context) error {
	switch s.random.IntN(6) {
	case 0, 1:
		return s.killBackend(ctx)
	case 2:
		return s.killChild()
	case 3:
		return s.reload(&s.tally.reloads, fmt.Sprintf("%s  more%d: {url: \"http://%s/mcp\", timeout: %ds}\n",
			s.config, s.random.IntN(3), s.steady.address, 10+s.random.IntN(20)))
	case 4:
		return s.reload(&s.tally.refused, s.config+"  bad: {url: nowhere}\n")
	}
	return s.reload(&s.tally.reloads, withRound(s.config, s.random.IntN(1000)))
}

func (s *soaking) killBackend(ctx context.Context) error {
	if err := s.failing.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-s.failing.exited
	s.tally.kills.Add(1)
	// Its port may be somebody's for a moment.
	return until(ctx, startBound, "the failing backend is started again", func(ctx context.Context) (bool, error) {
		p, err := start(ctx, "the failing backend", role("backend", "-listen", s.failing.address))
		if err == nil {
			s.failing = p
		}
		return err == nil, ctx.Err()
	})
}

func (s *soaking) killChild() error {
	for _, pid := range children(s.gateway.cmd.Process.Pid) {
		// It may have ended by itself, for a reload.
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing the gateway's child %d: %w", pid, err)
		}
		s.tally.kills.Add(1)
	}
	return nil
}
