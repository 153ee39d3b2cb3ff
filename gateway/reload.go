package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"mcp-gateway/gateway/config"
	"mcp-gateway/gateway/front"
)

// A Diff says what a reload has done, by the ids of the upstreams and the names of the settings.
type Diff struct {
	Added    []string `json:"added,omitempty"`    // upstreams
	Removed  []string `json:"removed,omitempty"`  // upstreams
	Changed  []string `json:"changed,omitempty"`  // upstreams that have begun anew
	Kept     []string `json:"kept,omitempty"`     // upstreams
	Settings []string `json:"settings,omitempty"` // of all else, that have other values
	Hash     string   `json:"hash"`               // of the configuration as it is now
}

// String is the diff for a log.
func (d *Diff) String() string {
	var parts []string
	for _, p := range []struct {
		what string
		ids  []string
	}{{"added", d.Added}, {"removed", d.Removed}, {"started anew", d.Changed}, {"kept", d.Kept}, {"settings", d.Settings}} {
		if len(p.ids) > 0 {
			parts = append(parts, p.what+": "+strings.Join(p.ids, ", "))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

var errStopping = errors.New("the gateway is stopping")

// RequestReload asks for a reload and returns at once. Requests that come while one runs are one more.
func (g *Gateway) RequestReload() {
	select {
	case g.wanted <- struct{}{}:
	default:
	}
}

// reloads makes the reloads that are asked for, until the drain.
func (g *Gateway) reloads() {
	for {
		select {
		case <-g.wanted:
			// It says in the log what has become of it.
			_, _ = g.Reload()
		case <-g.life.Done():
			return
		}
	}
}

// Reload reads the configuration anew and makes it the one that is served. All that can fail comes first: an error has changed nothing. An
// upstream whose settings are the same keeps its connection and its process, unless it has given up or its id is among anew.
// It returns when requests are served by the new configuration; what the old one leaves ends after that.
func (g *Gateway) Reload(anew ...string) (*Diff, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	diff, err := g.reload(anew)
	hash := ""
	if diff != nil {
		hash = diff.Hash
	}
	g.observer.Reloaded(time.Now(), hash, err)
	if err != nil {
		g.log.Error("not reloaded: the configuration is as it was", "error", err)
		return nil, err
	}
	g.log.Info("reloaded", "diff", diff.String(), "hash", diff.Hash)
	return diff, nil
}

func (g *Gateway) reload(anew []string) (*Diff, error) {
	if g.life.Err() != nil {
		return nil, errStopping
	}
	if g.opts.Load == nil {
		return nil, errors.New("there is no configuration file to read: start with -c FILE")
	}
	cfg, err := g.load()
	if err != nil {
		return nil, err
	}
	before := g.snapshot.Load()
	for _, id := range anew {
		if before.byID[id] == nil {
			return nil, fmt.Errorf("%w: %q", ErrUnknownUpstream, id)
		}
	}
	if err := unchangeable(before.cfg, cfg); err != nil {
		return nil, err
	}
	keys, err := g.keys(cfg)
	if err != nil {
		return nil, err
	}
	next, err := g.build(cfg, before, anew)
	if err != nil {
		return nil, err
	}
	diff := diffOf(before, next)
	var ln net.Listener
	if cfg.Listen != before.cfg.Listen && len(g.doors) > 0 {
		if ln, err = net.Listen("tcp", cfg.Listen); err != nil {
			g.discard(before, next)
			return nil, fmt.Errorf("listening on %s: %w", cfg.Listen, err)
		}
	}
	_ = g.release() // what still cannot be ended keeps its place
	// Nothing fails from here on.
	g.launch(before, next)
	g.change(before, next, keys, ln)
	g.retire(before, next)
	return diff, nil
}

// load reads the configuration. A file that nothing comes out of ends no end of the gateway.
func (g *Gateway) load() (*config.Config, error) {
	type loaded struct {
		cfg      *config.Config
		warnings []config.Problem
		err      error
	}
	done := make(chan loaded, 1)
	go func() {
		cfg, warnings, err := g.opts.Load()
		done <- loaded{cfg, warnings, err}
	}()
	select {
	case l := <-done:
		for _, w := range l.warnings {
			g.log.Warn("configuration", "warning", w.String())
		}
		if refused, ok := errors.AsType[*config.Refused](l.err); ok {
			g.read.Store(&refused.Read)
		} else if l.err == nil {
			g.read.Store(&l.cfg.Read)
		}
		return l.cfg, l.err
	case <-g.life.Done():
		return nil, errStopping
	}
}

// discard ends what was built for a snapshot that is not to be. Nothing of it has been started.
func (g *Gateway) discard(before, next *snapshot) {
	for _, m := range next.members {
		if before == nil || before.member(m.id) != m {
			_ = m.Close() // there is nothing that could not be ended
		}
	}
	next.forget()
}

// ErrUnknownUpstream is for an id that the configuration does not have.
var ErrUnknownUpstream = errors.New("there is no such upstream")

// unchangeable refuses what only a restart can change.
func unchangeable(before, now *config.Config) error {
	if before.StateDir != now.StateDir {
		return errors.New("state_dir cannot change while the gateway runs: it keeps keys and tokens there; restart it instead")
	}
	if before.Admin != now.Admin {
		return errors.New("admin cannot change while the gateway runs; restart it instead")
	}
	if before.Listen == now.Listen {
		return nil
	}
	_, was, err1 := net.SplitHostPort(before.Listen)
	_, is, err2 := net.SplitHostPort(now.Listen)
	if err1 == nil && err2 == nil && was == is && was != "0" {
		return fmt.Errorf("listen cannot change from %s to %s while the gateway runs, since both want the same port; restart it, or go by way of another port", before.Listen, now.Listen)
	}
	return nil
}

// launch starts what may run beside that which still serves, and gives it start_grace to list.
func (g *Gateway) launch(before, next *snapshot) {
	var started []string
	for _, m := range next.members {
		old := before.member(m.id)
		if old == m {
			continue
		}
		if old == nil || !old.child {
			old = g.leaving[m.id]
		}
		switch {
		case !m.child:
		case old != nil:
			m.replaces, m.after = true, old.gone
			continue // its turn comes when the other has ended
		case g.holds(m.id):
			m.Refuse(errHeld)
			continue
		}
		m.Start()
		started = append(started, m.id)
	}
	next.catalog.Start()
	if len(started) == 0 {
		return
	}
	grace, cancel := context.WithTimeout(g.life, next.cfg.StartGrace)
	defer cancel()
	next.catalog.Settled(grace, started...)
}

// change makes next the snapshot of all requests to come.
func (g *Gateway) change(before, next *snapshot, keys [][]byte, ln net.Listener) {
	if keys != nil {
		// They were read as keys of a configuration, which are all of the length that a ring wants, and different.
		_ = g.ring.Rotate(keys)
	}
	g.setLevel(next.cfg)
	if g.opts.Admin != nil {
		g.admit(next.cfg)
	}
	next.catalog.Replace() // first, so that no list is served by a catalog which may still take over a newer one
	g.snapshot.Store(next)
	old := g.front.Load()
	if ln != nil || !sameFront(before.cfg, next.cfg) {
		cfg := g.frontConfig(next.cfg)
		cfg.Before = old
		f := front.New(cfg)
		g.front.Store(f)
		if ln != nil {
			g.move(ln)
		}
		old.EndStreams()
	} else {
		old.Readmit()
	}
}

// sameFront reports whether clients meet the same settings of the front in both.
func sameFront(a, b *config.Config) bool {
	return a.Path == b.Path && slices.Equal(a.Hosts, b.Hosts) && slices.Equal(a.Origins, b.Origins) &&
		config.Loopback(a.Listen) == config.Loopback(b.Listen) && a.Keepalive == b.Keepalive && a.StreamAfter == b.StreamAfter
}

// retire ends what next has no place for, and starts what waits for the end of another. It returns at once.
func (g *Gateway) retire(before, next *snapshot) {
	before.catalog.Close()
	maps.DeleteFunc(g.leaving, func(_ string, m *member) bool {
		select {
		case <-m.gone:
			return true
		default:
			return false
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), before.cfg.ShutdownTimeout)
	var ending sync.WaitGroup
	for _, m := range before.members {
		if next.member(m.id) != m {
			if m.child {
				g.leaving[m.id] = m
			}
			ending.Go(func() { g.part(ctx, m) })
		}
	}
	for _, m := range next.members {
		if m.after != nil && before.member(m.id) != m {
			g.retiring.Go(func() { g.follow(m) })
		}
	}
	g.retiring.Go(func() {
		defer cancel()
		ending.Wait()
		g.forget(before)
	})
}

// part ends a member that has no place any more.
func (g *Gateway) part(ctx context.Context, m *member) {
	defer close(m.gone)
	err := m.retire(ctx)
	if err == nil {
		return
	}
	g.log.Error("an upstream that has no place any more could not be ended; it is tried again at the next reload", "upstream", m.id, "error", err)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held[m.id] = append(g.held[m.id], m)
}

// errHeld is why nothing is started in the place of a process that is still there.
var errHeld = errors.New("another process of this upstream could not be ended; the log says which, and the next reload tries again")

// follow starts a member once the one before it has ended. Beside a process that could not be ended nothing is started.
func (g *Gateway) follow(m *member) {
	<-m.after
	switch {
	case g.holds(m.id):
		m.Refuse(errHeld)
	case g.life.Err() == nil && !m.leaving.Load():
		m.Start()
	}
}

// holds reports whether a process of that id could not be ended.
func (g *Gateway) holds(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.held[id]) > 0
}

// release tries again to end what earlier reloads could not. What it has ended is held no more.
func (g *Gateway) release() error {
	g.mu.Lock()
	var held []*member
	for _, members := range g.held {
		held = append(held, members...)
	}
	g.mu.Unlock()
	errs := make([]error, len(held))
	var ending sync.WaitGroup
	for i, m := range held {
		ending.Go(func() {
			if errs[i] = m.Close(); errs[i] != nil {
				return
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.held[m.id] = slices.DeleteFunc(g.held[m.id], func(other *member) bool { return other == m }); len(g.held[m.id]) == 0 {
				delete(g.held, m.id)
			}
		})
	}
	ending.Wait()
	return errors.Join(errs...)
}

// forget lets go of the secrets of a retired snapshot, unless something of it still runs, which may still say them.
func (g *Gateway) forget(retired *snapshot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.held) == 0 {
		retired.forget()
	}
}

// diffOf compares the upstreams and the settings of two snapshots.
func diffOf(before, next *snapshot) *Diff {
	d := &Diff{Hash: next.cfg.Hash, Settings: changedSettings(before.cfg, next.cfg)}
	for _, m := range next.members {
		switch old := before.member(m.id); old {
		case nil:
			d.Added = append(d.Added, m.id)
		case m:
			d.Kept = append(d.Kept, m.id)
		default:
			d.Changed = append(d.Changed, m.id)
		}
	}
	for _, m := range before.members {
		if next.member(m.id) == nil {
			d.Removed = append(d.Removed, m.id)
		}
	}
	return d
}
