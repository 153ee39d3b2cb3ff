// Package legacy is the engine for servers of the revisions 2024-11-05 to 2025-11-25, which begin with an initialize
// handshake, over stdio: the server is a child process.
//
// Above it such a server behaves as a modern one. server/discover is answered from the handshake; the results of all other
// methods are the server's bytes as they are. Start with [Upstream.Call]; connect.go has the handshake.
package legacy

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/child"
	"mcp-gateway/upstream/internal/link"
)

// Config is what an Upstream is made of.
type Config struct {
	ID         string
	Command    string // a path, or a name to look for in the PATH of the environment
	Args       []string
	Env        []string // NAME=value, beside a few variables of the gateway's own
	InheritEnv bool     // beside all of them
	Dir        string   // where it runs; empty is the gateway's own directory
	Revision   string   // pins one; empty offers the newest and takes any with a handshake
	Version    string   // of the gateway, as the server is told

	StartTimeout               time.Duration
	ReconnectMin, ReconnectMax time.Duration
	Concurrency                int // calls in flight; 0 is 32
	Log                        *slog.Logger

	// Scrub replaces secrets in what the server says outside the protocol, before it is cut to a length. Nil changes nothing.
	Scrub func(string) string
}

// An Upstream is one legacy server. It is safe for concurrent use.
type Upstream struct {
	cfg  Config
	link *link.Link[*session]

	// Set by tests whose child cannot be ended.
	kill  func(group int, signal syscall.Signal) error
	grace child.Grace
}

var _ upstream.Upstream = (*Upstream)(nil)

// New only builds; Start begins to connect.
func New(cfg Config) *Upstream {
	if cfg.Scrub == nil {
		cfg.Scrub = func(s string) string { return s }
	}
	u := &Upstream{cfg: cfg}
	u.link = link.New(link.Config[*session]{
		ID: cfg.ID, Dial: u.dial, StartTimeout: cfg.StartTimeout,
		Min: cfg.ReconnectMin, Max: cfg.ReconnectMax, Log: cfg.Log,
	})
	return u
}

// Start begins the first attempt to connect and returns at once.
func (u *Upstream) Start() { u.link.Start() }

// Status is the state now, and a channel that is closed at the next change.
func (u *Upstream) Status() (upstream.Status, <-chan struct{}) { return u.link.Status() }

// Close ends the server's process and all that it started, and waits for that. The error holds a *process.HeldError where it could
// not; a later Close tries again.
func (u *Upstream) Close() error { return u.link.Close() }

// Call sends req once. Its header, client and target have no place on this transport and are ignored.
func (u *Upstream) Call(ctx context.Context, req *upstream.Request) (*upstream.Response, error) {
	s, err := u.link.Session(ctx)
	if err != nil {
		return nil, err
	}
	if req.Method == mcp.MethodDiscover {
		return &upstream.Response{Result: s.info.Discover, Type: mcp.ResultComplete, Revision: s.info.Revision}, nil
	}
	m, err := s.Call(ctx, req.Method, req.Params.Raw())
	if err != nil {
		return nil, u.judge(ctx, s, err)
	}
	if m.Kind == wire.Failure {
		return nil, m.Error
	}
	return &upstream.Response{Result: m.Result, Type: resultType(m.Result), Revision: s.info.Revision}, nil
}

// judge waits, for a call that lost its session, until it is known whether there can be another one.
func (u *Upstream) judge(ctx context.Context, s *session, err error) error {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return err
	}
	switch e.Cause {
	case upstream.ConnectionLost, upstream.WriteFailed, upstream.StdinFailed, upstream.Reconnecting:
		if u.link.Settled(ctx, s) == upstream.Held {
			e.Cause = upstream.HeldProcess
		}
	}
	return e
}

// resultType reads a missing one as complete, as modern clients are told to.
func resultType(result wire.Object) string {
	if kind, ok := result.String("resultType"); ok {
		return kind
	}
	return mcp.ResultComplete
}

// changed tells the link of a list that changed; the server's other notifications belong to no call and end here.
func (u *Upstream) changed(method string, _ wire.Object) {
	if method == mcp.NotificationToolsChanged {
		u.link.ListChanged()
	}
}
