// Package modern is the engine for servers of revision 2026-07-28, whose requests carry all their metadata, over
// Streamable HTTP and over stdio.
//
// It is pinned to that revision: an upstream is live once server/discover has named it, and nothing is sent before. There is
// no session on the wire. What the engine holds as one is the belief that the server is there and speaks the revision; it
// ends when the server cannot be reached, its process ends, or another answers in its place, so that what comes back is asked
// again who it is.
//
// Start with [Upstream.Call]; connect.go has the one request that comes before, listen.go the one that lasts; http.go and
// stdio.go carry the requests.
package modern

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

// A Credential shows the server who the gateway is: Sign sets the headers of one request and numbers the token it used,
// Refresh is told of one that was refused with 401.
type Credential = exchange.Credential

// Stdio is a server that is a child process.
type Stdio = child.Server

// Config is what an Upstream is made of.
type Config struct {
	ID      string
	Version string // of the gateway, as the server is told

	// How the server is reached: over stdio where Stdio is set, else at URL.
	Stdio      *Stdio
	URL        *url.URL
	Header     http.Header // sent with each HTTP request; may hold secrets, so it goes nowhere else
	Credential Credential  // nil is none
	// Transport sends HTTP; nil is one of the upstream's own. It calls httptrace's GotConn before it sends anything, as
	// net/http's does, and sends a request at most once. Close calls its Close, if it has one, which ends what is in flight.
	Transport http.RoundTripper

	StartTimeout               time.Duration
	ReconnectMin, ReconnectMax time.Duration
	Concurrency                int // calls in flight; 0 is no limit
	Queue                      int // calls that may wait for one of them to end
	Log                        *slog.Logger

	// Scrub replaces secrets in what the server says outside the protocol, before it is cut to a length. Nil changes nothing.
	Scrub func(string) string
}

// An Upstream is one modern server. It is safe for concurrent use.
type Upstream struct {
	cfg       Config
	transport transport
	link      *link.Link[*session]
	limit     *link.Limit
	info      []byte // clientInfo
	meta      []byte // _meta of a request whose client declares nothing
}

var _ upstream.Upstream = (*Upstream)(nil)

// New only builds; Start begins to connect.
func New(cfg Config) *Upstream {
	u := &Upstream{cfg: cfg}
	if cfg.Stdio != nil {
		u.transport = &overStdio{u: u, server: cfg.Stdio}
	} else {
		u.transport = newHTTP(u)
	}
	u.info = append(wire.AppendString([]byte(`{"name":"mcp-gateway","version":`), version(cfg)), '}')
	u.meta = wire.Object{}.AppendEdited(nil, u.metaEdits(upstream.Client{})...)
	lc := link.Config[*session]{
		ID: cfg.ID, Dial: u.dial, StartTimeout: cfg.StartTimeout,
		Min: cfg.ReconnectMin, Max: cfg.ReconnectMax, AlwaysTry: cfg.Stdio == nil, Log: cfg.Log,
	}
	if cfg.Credential != nil {
		lc.Changed = cfg.Credential.Changed
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
// so does what is connected. It returns at once; Close is owed.
func (u *Upstream) Quiesce() {
	u.link.Quiesce()
	u.limit.Quiesce()
}

// Close ends the calls in flight, all connections and the server's process with all that it started, and waits for that. The
// error holds a *process.HeldError where it could not; a later Close tries again.
func (u *Upstream) Close() error {
	u.transport.closing()
	err := u.link.Close()
	u.transport.close()
	return err
}

// Call sends req once, and once more after a 401 within its budget. A server that cannot be reached is connected to anew.
//
// Where a HopError's chain holds upstream.ErrHeaderMismatch, the server has refused the headers of Mcp-Param-* before it
// ran anything.
func (u *Upstream) Call(ctx context.Context, req *upstream.Request) (*upstream.Response, error) {
	if err := u.limit.Acquire(ctx, req.Method); err != nil {
		return nil, err
	}
	defer u.limit.Release(req.Method)
	s, err := u.link.Session(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := s.ask(ctx, req)
	if err != nil {
		return nil, u.judge(ctx, s, err)
	}
	if reply.Kind == wire.Failure {
		return nil, answered(reply)
	}
	kind, err := resultType(req.Method, reply.Result)
	if err != nil {
		return nil, &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Unusable, HTTPStatus: reply.Status, Err: err}
	}
	return &upstream.Response{Result: reply.Result, Type: kind, Revision: mcp.Modern}, nil
}

// judge draws the conclusions from a failure of the transport.
func (u *Upstream) judge(ctx context.Context, s *session, err error) error {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return err
	}
	if e.Outcome == upstream.NotSent && e.Cause == upstream.Unreachable {
		u.link.Lost(s, err)
	}
	// A server that refuses headers may not have read the body, and then names no request. The response to a POST is to
	// that POST all the same.
	if stated, ok := errors.AsType[*wire.Error](err); ok && e.HTTPStatus == http.StatusBadRequest {
		if hop := hopError(stated, http.StatusBadRequest, true); hop != nil {
			return hop
		}
	}
	if u.cfg.Stdio != nil {
		return u.link.Judge(ctx, s, err)
	}
	return err
}

// answered is the error that the server sent for the request: its own, unless it is about the gateway's way to ask.
func answered(reply exchange.Reply) error {
	proof := reply.Status == http.StatusBadRequest && !reply.Streamed
	if hop := hopError(reply.Error, reply.Status, proof); hop != nil {
		return hop
	}
	return reply.Error
}

// hopError is the failure that an error of the hop between gateway and server makes, nil for any other. proof says that
// the server cannot have run the request.
func hopError(stated *wire.Error, status int, proof bool) error {
	switch stated.Code {
	case mcp.CodeHeaderMismatch, mcp.CodeUnsupportedVersion:
	default:
		return nil
	}
	err := error(stated)
	if proof && stated.Code == mcp.CodeHeaderMismatch {
		err = fmt.Errorf("%w: %w", upstream.ErrHeaderMismatch, stated)
	}
	return &upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, HTTPStatus: status, Err: err}
}

// resultType reads the member that says how far a result has come. A server must send it (2026-07-28, basic: results),
// and a value that the revision does not define, or not for the method, leaves the call unfinished.
func resultType(method string, result wire.Object) (string, error) {
	if result.Equals("resultType", mcp.ResultComplete) && result.Unique("resultType") {
		return mcp.ResultComplete, nil
	}
	kind, ok := result.String("resultType")
	if !ok || !result.Unique("resultType") {
		return "", errors.New("the result has no resultType that could be relied on")
	}
	if kind == mcp.ResultInputRequired {
		switch method {
		case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead:
			return mcp.ResultInputRequired, nil
		}
		return "", errors.New("the result asks for input, which this method cannot")
	}
	return "", errors.New("the result has a resultType that the revision does not define")
}
