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
	"slices"
	"strconv"
	"strings"
	"time"
)

// A finding is one figure of a run at scale, and what it must be.
type finding struct {
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`             // "" of a count
	Target float64 `json:"target,omitempty"` // at most; 0 is none
	Met    bool    `json:"met"`
}

func (f finding) String() string {
	value := strconv.FormatFloat(f.Value, 'g', 3, 64)
	if f.Value >= 1000 {
		value = strconv.FormatFloat(f.Value, 'f', 0, 64)
	}
	text := f.What + ": " + strings.TrimSpace(value+" "+f.Unit)
	switch {
	case f.Target == 0:
		return text
	case f.Met:
		return fmt.Sprintf("%s (≤ %.4g: met)", text, f.Target)
	}
	return fmt.Sprintf("%s (≤ %.4g: missed)", text, f.Target)
}

// A scaling is a run at scale: the gateway with much of everything.
type scaling struct {
	dir, binary, key string
	only             []string // of the parts; empty is all
	rounds           int
	each             time.Duration
	listeners        int
	started          []*process
	findings         []finding
}

// A part of a run at scale.
type part struct {
	name string
	run  func(*scaling, context.Context) error
}

// scalings are the parts in their order.
var scalings = []part{
	{"calls", (*scaling).calls}, {"lists", (*scaling).lists}, {"hung", (*scaling).hung}, {"listeners", (*scaling).idle},
}

// readScaling is a run as the flags want it, and the file that is to have its findings.
func readScaling(args []string) (s *scaling, file string, err error) {
	s = &scaling{key: "mcpgw_" + secret(43)}
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.StringVar(&file, "json", "", "write everything to this `FILE` too")
	flags.IntVar(&s.rounds, "rounds", 5, "how often each is measured, in turn with the others")
	flags.DurationVar(&s.each, "time", time.Second, "how long each time")
	flags.IntVar(&s.listeners, "listeners", 10_000, "how many clients listen")
	flags.Func("only", "only those of this `LIST` of calls,lists,hung,listeners", func(list string) error {
		for _, name := range strings.Split(list, ",") {
			if !slices.ContainsFunc(scalings, func(p part) bool { return p.name == name }) {
				return fmt.Errorf("there is no %q", name)
			}
			s.only = append(s.only, name)
		}
		return nil
	})
	if err := readFlags(flags, args); err != nil {
		return nil, "", err
	}
	if s.rounds < 1 || s.each <= 0 || s.listeners < 1 {
		return nil, "", errors.New("-rounds, -time and -listeners must be more than zero")
	}
	return s, file, nil
}

// scale is the subcommand: what the number of upstreams, tools, waiting calls and listeners costs.
func scale(ctx context.Context, args []string) (err error) {
	s, file, err := readScaling(args)
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "mcp-gateway-scale-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if s.binary, err = buildGateway(ctx, s.dir); err != nil {
		return err
	}
	for _, p := range scalings {
		if len(s.only) > 0 && !slices.Contains(s.only, p.name) {
			continue
		}
		if err := errors.Join(p.run(s, ctx), s.end()); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(s.findings, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// found prints and keeps a figure that must be at most target; 0 is no target.
func (s *scaling) found(what string, value float64, unit string, target float64) {
	f := finding{what, value, unit, target, target == 0 || value <= target}
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

// end ends all processes, the last first.
func (s *scaling) end() error {
	var problems []error
	for _, p := range slices.Backward(s.started) {
		problems = append(problems, p.stop())
	}
	s.started = nil
	return errors.Join(problems...)
}

// backend starts one with so many tools; those that can be called are among them.
func (s *scaling) backend(ctx context.Context, tools int) (*process, error) {
	return s.begin(start(ctx, "the backend", role("backend", "-tools", strconv.Itoa(tools-len(callable)))))
}

// gateway starts one with that many upstreams, u0 and on, all at one backend with so many tools, which it starts too. Each has the
// settings of more, lines of YAML.
func (s *scaling) gateway(ctx context.Context, upstreams, tools int, more string) (p, backend *process, err error) {
	if backend, err = s.backend(ctx, tools); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(s.dir, "gateway-")
	if err != nil {
		return nil, nil, err
	}
	var c strings.Builder
	fmt.Fprintf(&c, "log_level: info\ncallers: {keys: {bench: \"sha256:%s\"}}\nupstreams:\n", digest(s.key))
	for i := range upstreams {
		fmt.Fprintf(&c, "  u%d:\n    url: http://%s/mcp\n    credential: {bearer: %s}\n%s", i, backend.address, secret(40), more)
	}
	if p, err = s.begin(startGateway(ctx, s.binary, dir, c.String())); err != nil {
		return nil, nil, err
	}
	return p, backend, listed(ctx, p, upstreams)
}

// listed waits until all upstreams of a gateway have been listed.
func listed(ctx context.Context, p *process, upstreams int) error {
	return until(ctx, startBound, "all upstreams are listed", func(ctx context.Context) (bool, error) {
		text, err := fetch(ctx, "http://"+p.admin+"/metrics")
		return shown(text) == upstreams, err
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

// digest is how the configuration has a caller's key.
func digest(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key))) }
