package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A finding is one figure of a run at scale, and what it must be.
type finding struct {
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Target float64 `json:"target"` // at most; 0 is none
	Met    bool    `json:"met"`
}

// at most says what is held against a bound.
func atMost(what string, value float64, unit string, target float64) finding {
	return finding{what, value, unit, target, target == 0 || value <= target}
}

func (f finding) String() string {
	text := fmt.Sprintf("%s: %.4g%s", f.What, f.Value, f.Unit)
	switch {
	case f.Target == 0:
		return text
	case f.Met:
		return fmt.Sprintf("%s (at most %g: met)", text, f.Target)
	}
	return fmt.Sprintf("%s (at most %g: MISSED)", text, f.Target)
}

// A scaling is a run at scale: the gateway with much of everything.
type scaling struct {
	dir, binary, key string
	rounds           int
	each             time.Duration
	listeners        int
	started          []*process
	findings         []finding
}

var scalings = []struct {
	name string
	run  func(*scaling, context.Context) error
}{
	{"calls", (*scaling).calls}, {"lists", (*scaling).lists}, {"hung", (*scaling).hung}, {"listeners", (*scaling).idle},
}

// scale is the subcommand: what the number of upstreams, tools, waiting calls and listeners costs.
func scale(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	only := flags.String("only", "", "only those of this `LIST` of calls,lists,hung,listeners")
	file := flags.String("json", "", "write everything to this `FILE` too")
	s := &scaling{key: "mcpgw_" + secret(43)}
	flags.IntVar(&s.rounds, "rounds", 5, "how often each is measured, in turn with the others")
	flags.DurationVar(&s.each, "time", time.Second, "how long each time")
	flags.IntVar(&s.listeners, "listeners", 10_000, "how many clients listen")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "mcp-gateway-scale-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end(0), os.RemoveAll(s.dir)) }()
	if s.binary, err = buildGateway(ctx, s.dir); err != nil {
		return err
	}
	for _, one := range scalings {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), one.name) {
			continue
		}
		if err := errors.Join(one.run(s, ctx), s.end(0)); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	if *file != "" {
		text, err := json.MarshalIndent(s.findings, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(*file, append(text, '\n'), 0o644)
	}
	return nil
}

func (s *scaling) found(f finding) {
	fmt.Println(f)
	s.findings = append(s.findings, f)
}

// begin keeps a process until end.
func (s *scaling) begin(p *process, err error) (*process, error) {
	if err == nil {
		s.started = append(s.started, p)
	}
	return p, err
}

// end ends the processes from the n-th on, the last first.
func (s *scaling) end(n int) error {
	var problems []error
	for i := len(s.started) - 1; i >= n; i-- {
		problems = append(problems, s.started[i].stop())
	}
	s.started = s.started[:n]
	return errors.Join(problems...)
}

// backend starts one with that many tools more than those that can be called.
func (s *scaling) backend(ctx context.Context, tools int) (*process, error) {
	return s.begin(start(ctx, "the backend", role("backend", "-tools", strconv.Itoa(tools))))
}

// gateway starts one with that many upstreams, all at one backend.
func (s *scaling) gateway(ctx context.Context, upstreams int, backend *process, more string) (*process, error) {
	dir, err := os.MkdirTemp(s.dir, "gateway-")
	if err != nil {
		return nil, err
	}
	var c strings.Builder
	fmt.Fprintf(&c, "log_level: info\ncallers: {keys: {bench: \"sha256:%s\"}}\nupstreams:\n", digest(s.key))
	for i := range upstreams {
		fmt.Fprintf(&c, "  u%d:\n    url: http://%s/mcp\n    credential: {bearer: %s}\n%s", i, backend.address, secret(40), more)
	}
	p, err := s.begin(startGateway(ctx, s.binary, dir, c.String()))
	if err != nil {
		return nil, err
	}
	return p, listed(ctx, p, upstreams)
}

// listed waits until all upstreams of a gateway have been listed.
func listed(ctx context.Context, p *process, upstreams int) error {
	return until(ctx, startBound, "all upstreams are listed", func(ctx context.Context) (bool, error) {
		text, err := fetch(ctx, "http://"+p.admin+"/metrics")
		if err != nil {
			return false, err
		}
		return shown(text) == upstreams, nil
	})
}

// digest is how the configuration has a caller's key.
func digest(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key))) }

// calls measures one call with few and many upstreams and tools.
func (s *scaling) calls(ctx context.Context) error {
	small := kinds()[0]
	c := &cell{call: small.name, connections: 16}
	alone := &cell{call: small.name, connections: 1}
	for _, size := range []struct{ upstreams, tools int }{{1, 10}, {10, 100}, {50, 500}, {200, 2_000}, {1, 1_000}, {1, 10_000}, {10, 10_000}} {
		backend, err := s.backend(ctx, size.tools/size.upstreams-len(callable))
		if err != nil {
			return err
		}
		p, err := s.gateway(ctx, size.upstreams, backend, "")
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d upstreams, %d tools", size.upstreams, size.tools)
		t, err := prepare(ctx, name, p.address, small.modern(p.address, s.key, fmt.Sprintf("u%d__small", size.upstreams-1)), small.verify)
		if err != nil {
			return err
		}
		defer t.close()
		c.series = append(c.series, &series{peer: name, process: p, target: t})
		alone.series = append(alone.series, &series{peer: name, process: p, target: t})
	}
	for _, measured := range []*cell{c, alone} {
		if err := measured.measure(ctx, s.rounds, s.each); err != nil {
			return err
		}
	}
	first := c.series[0].peer
	for i := range c.series {
		name := c.series[i].peer
		s.found(atMost(name+", CPU of a call to that with "+first, c.series[i].ratio(cpu, c.series[0]), " ×", 1.15))
		s.found(atMost(name+", p50 of a call to that with "+first, alone.series[i].ratio(p50, alone.series[0]), " ×", 1.15))
	}
	return nil
}

// lists measures a page of a long list against a ReverseProxy that passes the same bytes on.
func (s *scaling) lists(ctx context.Context) error {
	const upstreams, tools = 50, 5_000
	backend, err := s.backend(ctx, tools/upstreams-len(callable))
	if err != nil {
		return err
	}
	p, err := s.gateway(ctx, upstreams, backend, "")
	if err != nil {
		return err
	}
	body := `{"jsonrpc":"2.0","id":` + hole + `,"method":"tools/list","params":{"_meta":{` + modernMeta + `}}}`
	list := func(address string) []byte {
		return request(address, s.key, body, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
	}
	var page []byte
	i := nextID()
	conn, err := dial(p.address, newTemplate(list(p.address), hole))
	if err != nil {
		return err
	}
	defer conn.conn.Close()
	if err := conn.call(i, func(part []byte) error { page = append(page, part...); return nil }); err != nil {
		return err
	}
	file := filepath.Join(s.dir, "page")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(page), i.String(), hole)), 0o600); err != nil {
		return err
	}
	fixed, err := s.begin(start(ctx, "the page", role("page", "-file", file)))
	if err != nil {
		return err
	}
	proxied, err := s.begin(start(ctx, reverseProxy, role("proxy", "-to", fixed.address)))
	if err != nil {
		return err
	}
	c := &cell{call: "tools/list", connections: 16}
	for _, peer := range []*process{proxied, p} {
		t, err := prepare(ctx, peer.name, peer.address, list(peer.address), func(id, []byte) error { return nil })
		if err != nil {
			return err
		}
		if peer == p {
			t.sameSize = true // each page's cursor is sealed anew
		}
		defer t.close()
		c.series = append(c.series, &series{peer: peer.name, process: peer, target: t})
	}
	if err := c.measure(ctx, s.rounds, s.each); err != nil {
		return err
	}
	s.found(atMost(fmt.Sprintf("a page of tools/list of %d tools, bytes", tools), float64(len(page)), "", 0))
	s.found(atMost("its CPU to a ReverseProxy's", c.series[1].ratio(cpu, c.series[0]), " ×", 1.2))
	s.found(atMost("its p50 to a ReverseProxy's", c.series[1].ratio(p50, c.series[0]), " ×", 0))
	return nil
}

// waiting is how many calls hang on one upstream.
const waiting = 1_000

// hung measures one upstream while calls wait for another that answers nothing.
func (s *scaling) hung(ctx context.Context) error {
	backend, err := s.backend(ctx, 0)
	if err != nil {
		return err
	}
	p, err := s.gateway(ctx, 2, backend, "    timeout: 1h\n")
	if err != nil {
		return err
	}
	small := kinds()[0]
	t, err := prepare(ctx, "the other upstream", p.address, small.modern(p.address, s.key, "u0__small"), small.verify)
	if err != nil {
		return err
	}
	defer t.close()
	hang := newTemplate(small.modern(p.address, s.key, "u1__hang"), hole)
	without, with := &series{process: p, target: t}, &series{process: p, target: t}
	for range s.rounds {
		if err := without.round(ctx, 16, s.each); err != nil {
			return err
		}
		var calls []*connection
		for range waiting {
			c, err := dial(p.address, hang)
			if err != nil {
				return err
			}
			calls = append(calls, c)
			text, _ := hang.with(nextID())
			if _, err := c.conn.Write(text); err != nil {
				return err
			}
		}
		err := s.waits(ctx, p, waiting)
		if err == nil {
			err = with.round(ctx, 16, s.each)
		}
		for _, c := range calls {
			c.conn.Close()
		}
		if err = errors.Join(err, s.waits(ctx, p, 0)); err != nil {
			return err
		}
	}
	s.found(atMost(fmt.Sprintf("p99 of an upstream's calls while %d wait for another, to that without", waiting), with.ratio(p99, without), " ×", 1.2))
	return nil
}

// waits returns when n calls are in flight.
func (s *scaling) waits(ctx context.Context, p *process, n int) error {
	return until(ctx, startBound, fmt.Sprintf("%d calls are in flight", n), func(ctx context.Context) (bool, error) {
		running, err := p.metric(ctx, "mcp_gateway_upstream_in_flight")
		return int(running) == n, err
	})
}

// shown counts the upstreams that have tools in the metrics.
func shown(text []byte) (n int) {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("mcp_gateway_upstream_tools{")) && bytes.Contains(line, []byte(`listing="shown"`)) && !bytes.HasSuffix(line, []byte(" 0\n")) {
			n++
		}
	}
	return n
}

// memory is how much of a process is resident after it has come to rest, bytes.
func (s *scaling) memory(ctx context.Context, p *process) (float64, error) {
	select {
	case <-time.After(5 * time.Second): // garbage of what came before goes back meanwhile
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err := p.forgetPeak(); err != nil {
		return 0, err
	}
	used, err := p.usage()
	return float64(used.PeakMemory), err
}

// idle measures what clients that listen take, and tells them all of a change.
func (s *scaling) idle(ctx context.Context) error {
	backend, err := s.backend(ctx, 0)
	if err != nil {
		return err
	}
	p, err := s.gateway(ctx, 1, backend, "")
	if err != nil {
		return err
	}
	before, err := s.memory(ctx, p)
	if err != nil {
		return err
	}
	clients, err := s.begin(start(ctx, "the listeners", role("idle", "-to", p.address, "-key", s.key, "-n", strconv.Itoa(s.listeners))))
	if err != nil {
		return err
	}
	rest, err := s.memory(ctx, p)
	if err != nil {
		return err
	}
	s.found(atMost(fmt.Sprintf("memory with %d listeners, MB", s.listeners), rest/1e6, "", 300))
	s.found(atMost("of it, for each listener, KB", (rest-before)/1e3/float64(s.listeners), "", 0))
	began := time.Now()
	if err := backend.signal(syscall.SIGUSR1); err != nil {
		return err
	}
	if err := s.counts(ctx, clients, "told"); err != nil {
		return err
	}
	s.found(atMost("until all were told of a change, s", time.Since(began).Seconds(), "", 0))
	used, err := p.usage()
	if err != nil {
		return err
	}
	s.found(atMost("memory meanwhile, MB", float64(used.PeakMemory)/1e6, "", 0))
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.counts(ctx, clients, "ended")
}

// counts returns when all listeners were told, or have ended.
func (s *scaling) counts(ctx context.Context, clients *process, what string) error {
	return until(ctx, startBound, "all listeners are "+what, func(ctx context.Context) (bool, error) {
		text, err := fetch(ctx, "http://"+clients.address)
		if err != nil {
			return false, err
		}
		n, err := sumOf(text, what)
		return int(n) >= s.listeners, err
	})
}
