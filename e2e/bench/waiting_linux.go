package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waiting is how many calls hang on one upstream: half of them on the wire, half in its queue.
const waiting = 1_000

// hung measures one upstream while calls wait for another that answers nothing.
func (s *scaling) hung(ctx context.Context) error {
	p, _, err := s.gateway(ctx, 2, len(callable), fmt.Sprintf("    timeout: 1h\n    concurrency: %d\n    queue: %d\n", waiting/2, waiting/2))
	if err != nil {
		return err
	}
	small := kinds()[0]
	t, err := prepare(ctx, "the other upstream", p.address, small.modern(p.address, s.key, "u0__small"), small.verify)
	if err != nil {
		return err
	}
	defer t.close()
	without, with := &series{process: p, target: t}, &series{process: p, target: t}
	if _, err := load(ctx, t, 16, limit{time: s.each}); err != nil {
		return err
	}
	// The slowest calls differ more from one round to the next than a median does.
	for range 2 * s.rounds {
		if err := without.round(ctx, 16, s.each); err != nil {
			return err
		}
		release, err := s.hang(ctx, p, small.modern(p.address, s.key, "u1__hang"))
		if err == nil {
			err = with.round(ctx, 16, s.each)
		}
		if release(); err != nil {
			return err
		}
		if err := waits(ctx, p, 0); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("calls of an upstream while %d wait for another", waiting)
	s.found(what+": p99 without those", without.median(p99), "µs", 0)
	s.found(what+": p99 to that without", with.ratio(p99, without), "×", goalHung)
	s.found(what+": CPU to that without", with.ratio(cpu, without), "×", 0)
	return nil
}

// hang makes calls that are not answered, until they are released.
func (s *scaling) hang(ctx context.Context, p *process, text []byte) (release func(), err error) {
	var calls []*connection
	release = func() {
		for _, c := range calls {
			c.conn.Close()
		}
	}
	request := newTemplate(text, hole)
	for range waiting {
		c, err := dial(p.address, request)
		if err != nil {
			return release, err
		}
		calls = append(calls, c)
		whole, _ := request.with(nextID())
		if _, err := c.conn.Write(whole); err != nil {
			return release, err
		}
	}
	return release, waits(ctx, p, waiting)
}

// waits returns when n calls are in flight or queued.
func waits(ctx context.Context, p *process, n int) error {
	return until(ctx, startBound, fmt.Sprintf("%d calls wait", n), func(ctx context.Context) (bool, error) {
		running, err := p.metric(ctx, "mcp_gateway_upstream_in_flight")
		if err != nil {
			return false, err
		}
		queued, err := p.metric(ctx, "mcp_gateway_upstream_queued")
		return int(running+queued) == n, err
	})
}

// settled is how long a process is left alone before its memory is looked at: garbage of what came before goes back meanwhile.
const settled = 5 * time.Second

// memory is the most of a process that was resident since this was last asked, and how much is after it has come to rest, bytes.
func memory(ctx context.Context, p *process) (peak, rest float64, err error) {
	before, err := p.usage()
	if err != nil {
		return 0, 0, err
	}
	select {
	case <-time.After(settled):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	if err := p.forgetPeak(); err != nil {
		return 0, 0, err
	}
	after, err := p.usage()
	return float64(before.PeakMemory), float64(after.PeakMemory), err
}

// idle measures what clients that listen take, tells them all of a change, and ends the gateway under them.
func (s *scaling) idle(ctx context.Context) error {
	if err := allowFiles(uint64(s.listeners) + 1_000); err != nil {
		return err
	}
	p, backend, err := s.gateway(ctx, 1, len(callable), "")
	if err != nil {
		return err
	}
	_, empty, err := memory(ctx, p)
	if err != nil {
		return err
	}
	clients, err := s.begin(start(ctx, "the listeners", role("idle", "-to", p.address, "-key", s.key, "-n", strconv.Itoa(s.listeners))))
	if err != nil {
		return err
	}
	peak, rest, err := memory(ctx, p)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := backend.signal(syscall.SIGUSR1); err != nil {
		return err
	}
	if err := s.counts(ctx, clients, "told"); err != nil {
		return err
	}
	took := time.Since(began)
	told, _, err := memory(ctx, p)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d idle listeners", s.listeners)
	s.found(what+": memory at rest", rest/1e6, "MB", goalListeners)
	s.found(what+": memory at its peak", max(peak, told)/1e6, "MB", goalListeners)
	s.found(what+": memory of each", (rest-empty)/1e3/float64(s.listeners), "KB", 0)
	s.found(what+": all are told of a change within", took.Seconds(), "s", 0)
	began = time.Now()
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := s.counts(ctx, clients, "ended"); err != nil {
		return err
	}
	s.found(what+": all have their result after SIGTERM within", time.Since(began).Seconds(), "s", 0)
	return nil
}

// counts returns when all listeners were told, or have ended in order.
func (s *scaling) counts(ctx context.Context, clients *process, what string) error {
	return until(ctx, startBound, "all listeners are "+what, func(ctx context.Context) (bool, error) {
		text, err := fetch(ctx, "http://"+clients.address)
		if err != nil {
			return false, err
		}
		if broken, err := sumOf(text, "broken"); err != nil || broken > 0 {
			return false, fmt.Errorf("%g streams broke off: %w", broken, err)
		}
		n, err := sumOf(text, what)
		return int(n) == s.listeners, err
	})
}

// allowFiles lets this process, and those that it starts, have n files open.
func allowFiles(n uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("asking how many files may be open: %w", err)
	}
	limit.Cur, limit.Max = max(limit.Cur, n), max(limit.Max, n)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return errors.Join(fmt.Errorf("%d files must be open: raise the limit (ulimit -Hn) or choose fewer -listeners", n), err)
	}
	return nil
}
