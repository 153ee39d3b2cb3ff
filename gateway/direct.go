package gateway

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"mcp-gateway/gateway/config"
	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/wire"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

// A Client lists and calls tools for a person at a terminal, as an MCP client of the gateway would. Close is owed.
type Client struct {
	// ask makes one request. Its result is a reply: what it may not show is replaced. The error is a *wire.Error, or says why
	// there was no answer.
	ask        func(ctx context.Context, req *upstream.Request) (wire.Object, error)
	upstreamOf func(tool string) string // by a public name; "" where that is not known
	unreached  []Reached
	close      func() error
}

// Unreached are the upstreams that could not be connected, each with the phase that failed.
func (c *Client) Unreached() []Reached { return c.unreached }

// Close ends all that the Client has started, and waits for it.
func (c *Client) Close() error { return c.close() }

// ErrNoUpstream is for a tool that no upstream's prefix begins.
var ErrNoUpstream = errors.New("no upstream of the configuration has such a tool")

// Direct gives a Client of a gateway that runs in this process and serves nobody else: it starts the upstreams and waits until
// each has listed or failed, start_timeout at most. A tool starts only the upstream that has it; "" starts all. The end of
// ctx ends the start.
func Direct(ctx context.Context, cfg *config.Config, tool string, opts DialOptions) (*Client, error) {
	local := *cfg
	if tool != "" {
		local.Upstreams = nil
		for _, u := range cfg.Upstreams {
			if strings.HasPrefix(tool, u.Prefix) {
				local.Upstreams = append(local.Upstreams, u)
			}
		}
		if len(local.Upstreams) == 0 {
			return nil, noUpstream(cfg, tool)
		}
	}
	// Nobody comes back with a session or a cursor of this gateway's, so that its key need not outlive it.
	var key [32]byte
	_, _ = rand.Read(key[:]) // it never fails
	local.SealKeys = []redact.Secret{redact.NewSecret(base64.StdEncoding.EncodeToString(key[:]))}
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	d := newDialer(&local, opts.Log)
	all := map[string]*watched{}
	g, err := assemble(&local, Options{Log: opts.Log, Status: io.Discard}, func(u config.Upstream, with parts) (engine, error) {
		w := d.watch(u)
		all[u.ID] = w
		return newEngine(u, w.parts(with))
	})
	if err != nil {
		return nil, err
	}
	c := &Client{ask: g.ask, upstreamOf: g.upstreamOf, close: func() error { return d.shownError(g.leave()) }}
	c.unreached = g.arrive(ctx, d, all, opts.Waiting)
	return c, nil
}

// shownError is an error as anybody may read it.
func (d *dialer) shownError(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(d.shown(strings.Join(strings.Fields(err.Error()), " ")))
}

func noUpstream(cfg *config.Config, tool string) error {
	prefixes := make([]string, len(cfg.Upstreams))
	for i, u := range cfg.Upstreams {
		prefixes[i] = u.Prefix + "…"
	}
	return fmt.Errorf("%w: %q begins with none of the prefixes: %s", ErrNoUpstream, tool, strings.Join(prefixes, ", "))
}

// arrive starts the upstreams, waits for them and gives those that could not be reached.
func (g *Gateway) arrive(ctx context.Context, d *dialer, all map[string]*watched, tell func([]string)) []Reached {
	snap := g.snapshot.Load()
	longest := time.Duration(0)
	for _, u := range snap.cfg.Upstreams {
		longest = max(longest, u.StartTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, longest+startWait)
	defer cancel()
	for _, m := range snap.members {
		m.Start()
	}
	snap.catalog.Start()
	wait := newWaiting(snap.cfg.Upstreams, tell)
	found := make([]*Reached, len(snap.members))
	var running sync.WaitGroup
	for i, m := range snap.members {
		running.Go(func() {
			defer wait.done(m.id)
			if status := settled(ctx, m); status.State != upstream.Live {
				w := all[m.id]
				r := d.blank(w.u)
				r.Phases = w.phases(ctx, status)
				found[i] = &r
				return
			}
			snap.catalog.Settled(ctx, m.id)
		})
	}
	running.Wait()
	var out []Reached
	for _, r := range found {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out
}

// leave ends everything.
func (g *Gateway) leave() error {
	g.end()
	return errors.Join(g.teardown(), g.closeLog())
}

func (g *Gateway) upstreamOf(tool string) string {
	if route, _ := g.snapshot.Load().route(tool); route != nil {
		return route.id
	}
	return ""
}

// ask has the request dispatched as one of a client's.
func (g *Gateway) ask(ctx context.Context, req *upstream.Request) (wire.Object, error) {
	reply := g.dispatch(ctx, &front.Request{
		Method: req.Method, Params: req.Params, Name: req.Target, Notify: req.Notify, Received: time.Now(),
	})
	if reply.After != nil {
		reply.After(front.Answer{})
	}
	if reply.Error != nil {
		return wire.Object{}, reply.Error
	}
	return reply.Result, nil
}
