package main

import (
	"context"
	"fmt"
	"slices"
)

// The cells that are no kind of tool but a kind of client or server.
const (
	legacyCall = "small call, legacy client"
	stdioCall  = "small call, stdio server"

	gatewayModern = gateway + ", modern client"
)

// callNames are all calls, in the order of the table.
func callNames() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return append(names, legacyCall, stdioCall)
}

// cell prepares the calls that a cell makes.
func (f *fleet) cell(ctx context.Context, call string, connections int) (*cell, error) {
	c := &cell{call: call, connections: connections, goals: goals(call, connections)}
	small := kinds()[0]
	switch call {
	case legacyCall:
		session, err := handshake(ctx, f.peers[gateway].address, f.key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.title(), err)
		}
		c.leaveOut("the backend speaks revision 2026-07-28 alone, and nothing translates", direct, nginx)
		c.leaveOut("it serves without sessions", typedGateway)
		address := f.peers[gateway].address
		return c, f.fill(ctx, c, small,
			entry{reverseProxy, reverseProxy, small.modern(f.address(reverseProxy), f.key, "small")},
			entry{gatewayModern, gateway, small.modern(address, f.key, "bench__small")},
			entry{gateway, gateway, small.legacy(address, f.key, session, "bench__small")})
	case stdioCall:
		c.leaveOut("it speaks HTTP alone", direct, nginx, typedGateway)
		return c, f.fill(ctx, c, small,
			entry{reverseProxy, reverseProxy, small.modern(f.address(reverseProxy), f.key, "small")},
			entry{gateway, gateway, small.modern(f.address(gateway), f.key, "pipe__small")})
	}
	i := slices.IndexFunc(kinds(), func(k kind) bool { return k.name == call })
	if i < 0 {
		return nil, fmt.Errorf("there is no call %q; there are %q", call, callNames())
	}
	k := kinds()[i]
	var entries []entry
	for _, peer := range []string{direct, reverseProxy, nginx, typedGateway, gateway} {
		name := k.tool
		switch {
		case f.peers[peer] == nil:
			c.leaveOut(f.absent[peer], peer)
			continue
		case peer == typedGateway && k.progress:
			c.leaveOut("CallTool has no way for progress", peer)
			continue
		case peer == gateway:
			name = "bench__" + name
		}
		entries = append(entries, entry{peer, peer, k.modern(f.address(peer), f.key, name)})
	}
	return c, f.fill(ctx, c, k, entries...)
}

// An entry is how a peer takes part in a cell.
type entry struct {
	name, peer string
	request    []byte
}

func (f *fleet) address(peer string) string { return f.peers[peer].address }

func (c *cell) leaveOut(reason string, peers ...string) {
	for _, peer := range peers {
		c.absent = append(c.absent, absence{peer, reason})
	}
}

func (f *fleet) fill(ctx context.Context, c *cell, k kind, entries ...entry) error {
	for _, e := range entries {
		t, err := prepare(ctx, e.name+", "+c.call, f.address(e.peer), e.request, k.verify)
		if err != nil {
			return err
		}
		f.targets = append(f.targets, t)
		c.series = append(c.series, &series{peer: e.name, process: f.peers[e.peer], target: t})
	}
	return nil
}
