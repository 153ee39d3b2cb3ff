// Package legacy is the engine for servers of the revisions 2024-11-05 to 2025-11-25, which begin with an initialize
// handshake, on every transport that such servers have.
//
// Above it such a server behaves as a modern one. server/discover is answered from the handshake; the results of all other
// methods are the server's bytes as they are. Start with [Upstream.Call]; connect.go has the handshake, and one file for
// each transport opens its connections.
package legacy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/child"
	"mcp-gateway/upstream/internal/exchange"
	"mcp-gateway/upstream/internal/link"
)

// Config is what an Upstream is made of.
type Config struct {
	ID       string
	Revision string // pins one; empty offers the newest and takes any with a handshake
	Version  string // of the gateway, as the server is told

	// How the server is reached: exactly one is set.
	Stdio     *Stdio
	WebSocket *Remote
	SSE       *Remote // HTTP+SSE of 2024-11-05
	HTTP      *Remote // Streamable HTTP of the 2025 revisions

	StartTimeout               time.Duration
	ReconnectMin, ReconnectMax time.Duration
	Concurrency                int // calls in flight; 0 is no limit
	Queue                      int // calls that may wait for one of them to end
	Log                        *slog.Logger

	// Scrub replaces secrets in what the server says outside the protocol, before it is cut to a length. Nil changes nothing.
	Scrub func(string) string
}

// Stdio is a server that is a child process.
type Stdio = child.Server

// Remote is a server at a url.
type Remote struct {
	URL        *url.URL
	Header     http.Header // sent with each HTTP request; may hold secrets, so it goes nowhere else
	Credential Credential  // nil is none
	// Transport sends; nil is one of the connection's own. It does what exchange.Config asks of one.
	Transport http.RoundTripper
}

// A Credential shows the server who the gateway is: Sign sets the headers of one request and numbers the token it used,
// Refresh is told of one that was refused with 401.
type Credential = exchange.Credential

// An Upstream is one legacy server. It is safe for concurrent use.
type Upstream struct {
	cfg       Config
	transport transport
	link      *link.Link[*session]
	limit     *link.Limit
}

var _ upstream.Upstream = (*Upstream)(nil)

// New only builds; Start begins to connect. It panics unless exactly one way to reach the server is set.
func New(cfg Config) *Upstream {
	if cfg.Scrub == nil {
		cfg.Scrub = func(s string) string { return s }
	}
	u := &Upstream{cfg: cfg}
	u.transport = transportOf(u)
	lc := link.Config[*session]{
		ID: cfg.ID, Dial: u.dial, StartTimeout: cfg.StartTimeout,
		Min: cfg.ReconnectMin, Max: cfg.ReconnectMax, Log: cfg.Log,
	}
	for _, remote := range []*Remote{cfg.WebSocket, cfg.SSE, cfg.HTTP} {
		if remote != nil && remote.Credential != nil {
			lc.Changed = remote.Credential.Changed
		}
	}
	u.link = link.New(lc)
	u.limit = link.NewLimit(cfg.Concurrency, cfg.Queue, u.link.Status)
	return u
}

// Start begins the first attempt to connect and returns at once.
func (u *Upstream) Start() { u.link.Start() }

// Refuse is in the place of Start where another process holds the upstream's: nothing is started beside it. err says which.
func (u *Upstream) Refuse(err error) { u.link.Refuse(err) }

// Status is the state now, and a channel that is closed at the next change.
func (u *Upstream) Status() (upstream.Status, <-chan struct{}) { return u.link.Status() }

// Load is how many calls are in flight, how many wait for one of them to end, and how many did not fit.
func (u *Upstream) Load() upstream.Load { return u.limit.Load() }

// Quiesce begins no connection any more: calls that wait for one, or for their turn, end as not sent. Those in flight go on, and
// so does the session. It returns at once; Close is owed.
func (u *Upstream) Quiesce() {
	u.link.Quiesce()
	u.limit.Quiesce()
}

// Close ends the connection to the server, its process and all that it started, and waits for that. The error holds a
// *process.HeldError where it could not; a later Close tries again.
func (u *Upstream) Close() error {
	t, ok := u.transport.(*streamable)
	if ok {
		t.closing()
	}
	err := u.link.Close()
	if ok {
		t.close()
	}
	return err
}

// Call sends req, once more within its budget after a 401, or where the server had ended the session before it read req.
// Its client and target have no place in these revisions and are ignored.
func (u *Upstream) Call(ctx context.Context, req *upstream.Request) (*upstream.Response, error) {
	if req.Method != mcp.MethodDiscover { // which is not sent
		if err := u.limit.Acquire(ctx, req.Method); err != nil {
			return nil, err
		}
		defer u.limit.Release(req.Method)
	}
	s, err := u.link.Session(ctx)
	if err != nil {
		return nil, err
	}
	if req.Method == mcp.MethodDiscover {
		return &upstream.Response{Result: s.info.Discover, Type: mcp.ResultComplete, Revision: s.info.Revision}, nil
	}
	m, err := s.Call(ctx, req)
	if errors.Is(err, errSessionEnded) {
		if s, err = u.renewed(ctx, req, s, err); err == nil {
			m, err = s.Call(context.WithValue(ctx, renewedKey{}, true), req)
		}
	}
	if err != nil {
		return nil, u.judge(ctx, s, err)
	}
	u.link.Served()
	if m.Kind == wire.Failure {
		return nil, m.Error
	}
	return &upstream.Response{Result: m.Result, Type: resultType(m.Result), Revision: s.info.Revision}, nil
}

// renewed is the session that follows s, which the server has ended, if req may be sent again and there is one in time. Without
// one, what s said of the call stands; where that had not been sent, nothing else than the missing session is to be said.
func (u *Upstream) renewed(ctx context.Context, req *upstream.Request, s *session, ended error) (*session, error) {
	e, ok := errors.AsType[*upstream.Error](ended)
	sent := !ok || e.Outcome != upstream.NotSent
	if sent && !req.Resend.Take() {
		return s, ended
	}
	next, err := u.link.Session(ctx)
	switch {
	case err == nil:
		return next, nil
	case sent && ok:
		e.Err = fmt.Errorf("%w; then: %w", e.Err, err)
		return s, e
	}
	return s, err
}

// judge waits, for a call that lost its session, until it is known whether there can be another one.
func (u *Upstream) judge(ctx context.Context, s *session, err error) error {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return err
	}
	if u.cfg.HTTP != nil { // each call has a connection of its own
		if e.Outcome == upstream.NotSent && e.Cause == upstream.Unreachable {
			u.link.Lost(s, err)
		}
		return e
	}
	return u.link.Judge(ctx, s, e)
}

// resultType reads a missing one as complete, as modern clients are told to.
func resultType(result wire.Object) string {
	if kind, ok := result.String("resultType"); ok {
		return kind
	}
	return mcp.ResultComplete
}

// changed counts what the server tells that has changed; its other notifications belong to no call and end here.
func (u *Upstream) changed(method string, _ wire.Object) {
	switch method {
	case mcp.NotificationToolsChanged:
		u.link.Changed(link.Tools)
	case mcp.NotificationPromptsChanged:
		u.link.Changed(link.Prompts)
	case mcp.NotificationResourcesChanged:
		u.link.Changed(link.Resources)
	case mcp.NotificationResourceUpdated:
		u.link.Changed(link.Updated)
	}
}
