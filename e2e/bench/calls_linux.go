package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A plan is what the flags ask for.
type plan struct {
	rounds      int
	each        time.Duration
	connections []int // of every call; without any a selection
	calls       []string
	json        string
	profiles    string
	log         string // the gateway's level
	brief       bool
}

func readPlan(args []string) (plan, error) {
	p := plan{calls: callNames()}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&p.rounds, "rounds", 5, "how often each peer is measured in a cell, in turn with the others")
	flags.DurationVar(&p.each, "time", 2*time.Second, "how long each time")
	flags.StringVar(&p.json, "json", "", "write everything to this `FILE` too")
	flags.StringVar(&p.profiles, "profile", "", "write a CPU profile of the gateway for each cell into this `FOLDER`")
	flags.StringVar(&p.log, "log", "debug", "the gateway's log `LEVEL`: at debug it logs each call and each request, at info only those that fail")
	flags.BoolVar(&p.brief, "markdown", false, "print one line a cell, for the README")
	flags.Func("connections", "a `LIST` such as 1,16,64 for every call; by default all three for the small call and 16 for the others", func(list string) error {
		for _, part := range strings.Split(list, ",") {
			n, err := strconv.Atoi(part)
			if err != nil || n < 1 || n > 1000 {
				return fmt.Errorf("%q is no number from 1 to 1000", part)
			}
			p.connections = append(p.connections, n)
		}
		return nil
	})
	flags.Func("calls", "only those whose name holds one of this `LIST`, such as small,structured", func(list string) error {
		p.calls = slices.DeleteFunc(p.calls, func(call string) bool {
			return !slices.ContainsFunc(strings.Split(list, ","), func(part string) bool { return strings.Contains(call, part) })
		})
		if len(p.calls) == 0 {
			return fmt.Errorf("there is none; there are %q", callNames())
		}
		return nil
	})
	if err := readFlags(flags, args); err != nil {
		return p, err
	}
	if p.rounds < 1 || p.each <= 0 {
		return p, errors.New("-rounds and -time must be more than zero")
	}
	return p, nil
}

// readFlags reads args, which must all be flags. Whoever asks for help gets it, and a mistake is told once.
func readFlags(flags *flag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(os.Stdout)
			flags.PrintDefaults()
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag: -h lists them", flags.Arg(0))
	}
	return nil
}

// connectionsOf are the numbers of connections at which a call is measured.
func (p plan) connectionsOf(call string) []int {
	switch {
	case p.connections != nil:
		return p.connections
	case call == "small call":
		return []int{1, 16, 64}
	}
	return []int{16}
}

// calls measures the calls and prints the table.
func calls(ctx context.Context, args []string) (err error) {
	p, err := readPlan(args)
	if err != nil {
		return err
	}
	began := time.Now()
	f, err := startFleet(ctx, p.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	cells, err := f.measure(ctx, p)
	if err != nil {
		return err
	}
	r := newReport(p, began, cells)
	if p.brief {
		err = r.writeBrief(os.Stdout)
	} else {
		err = r.write(os.Stdout)
	}
	if err != nil || p.json == "" {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(p.json, append(text, '\n'), 0o644)
}

func (f *fleet) measure(ctx context.Context, p plan) ([]*cell, error) {
	var cells []*cell
	for _, call := range p.calls {
		for _, connections := range p.connectionsOf(call) {
			c, err := f.cell(ctx, call, connections)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(os.Stderr, "%s: %d peers\n", c.title(), len(c.series))
			if err := c.measure(ctx, p.rounds, p.each); err != nil {
				return nil, err
			}
			if p.profiles != "" {
				if err := c.profile(ctx, p.profiles); err != nil {
					return nil, err
				}
			}
			// A run logs more than a disk should have to hold.
			if err := f.emptyLog(); err != nil {
				return nil, err
			}
			cells = append(cells, c)
		}
	}
	return cells, nil
}
