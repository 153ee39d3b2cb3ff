package exchange

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

const (
	maxHeader = 32 << 10 // of a response
	maxResult = 32 << 20 // of a body, or of one event
	// largeResult is how much of a reply is read without one of the client's largeSlots, which bound the memory that
	// replies in progress can take.
	largeResult = 1 << 20
	largeSlots  = 8
	// idleTimeout is shorter than the 5 s after which common servers close an idle connection: a request that meets that
	// close would be lost without a proof that it did not run.
	idleTimeout = 4 * time.Second
)

// errClosed is what an exchange and a dial meet after Close.
var errClosed = errors.New("the upstream is being closed")

// A Credential shows the server who the gateway is.
type Credential interface {
	// Sign sets req's headers or its URL, never anything that others share, and gives a number that tells its token from
	// others.
	Sign(ctx context.Context, req *http.Request) (token uint64, err error)
	// Refresh is told that the server refused the token, and returns when another attempt makes sense.
	//
	// A net.ErrClosed in the error of either says that the gateway has ended the wait.
	Refresh(ctx context.Context, token uint64) error
	// Changed gives a channel that is closed once there may be another token than the last one.
	Changed() <-chan struct{}
}

// Config is what a Client is made of.
type Config struct {
	URL        *url.URL    // never changed
	Header     http.Header // of each request, canonical; it wins over the request's own, and the credential over both
	Credential Credential  // nil is none
	// Transport sends; nil is one of the client's own. It calls httptrace's GotConn before it sends anything, as net/http's
	// does, and sends a request at most once. The client's Close calls its Close, if it has one, which ends what is in flight.
	Transport http.RoundTripper
	Log       *slog.Logger
}

// A Client makes exchanges with one server. It is safe for concurrent use.
type Client struct {
	cfg           Config
	transport     http.RoundTripper // of what does not go over connections of the client's own
	address       string            // of the server, where most requests do; empty where none does
	template      *http.Request
	fixed         http.Header   // Config.Header but for the authorization, which the credential may replace
	authorization []string      // of Config.Header
	start         string        // what requests over connections of the client's own begin with
	fields        string        // fixed as these have it
	bad           error         // why they cannot have it
	large         chan struct{} // holds a token for each reply over largeResult that is being read

	life    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup // exchanges and dials
	dialer  func(ctx context.Context, network, address string) (net.Conn, error)

	mu      sync.Mutex // guards the rest
	closed  bool
	conns   map[*conn]struct{}
	kept    []*http1    // for the next requests, the newest last
	sweeper *time.Timer // closes them in time; nil while none is kept
}

// New only builds.
func New(cfg Config) *Client {
	c := &Client{
		cfg:       cfg,
		transport: cfg.Transport,
		template: &http.Request{
			Method: http.MethodPost, URL: cfg.URL, Host: cfg.URL.Host,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		},
		large:  make(chan struct{}, largeSlots),
		conns:  make(map[*conn]struct{}),
		dialer: (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.fixed, c.authorization = maps.Clone(cfg.Header), cfg.Header["Authorization"]
	delete(c.fixed, "Authorization")
	if c.transport == nil {
		c.transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            c.dial,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxIdleConnsPerHost:    256,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeader,
			DisableCompression:     true,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		}
	}
	if c.direct() {
		c.address = addressOf(cfg.URL)
		c.prepare()
	}
	return c
}

// A Request is one JSON-RPC request and the headers that it goes with.
type Request struct {
	ID     []byte      // as it stands in Body
	Body   []byte      // the message; never changed
	Room   *Room       // that Body is in, and which Do takes; nil is none
	Header http.Header // beside Config.Header and the credential; not nil, and the exchange's own from then on
	Notify func(upstream.Notification)
	Hold   *upstream.Hold   // keeps the slot of a large reply; nil is until Do returns
	Resend *upstream.Budget // lets a request that was refused with 401 go out once more with another token
	Legacy *Legacy          // nil for a server of 2026-07-28

	method string // of HTTP; empty is POST
	leg    atomic.Pointer[leg]
}

// Legacy is what a server of the 2025 revisions may do beside answering.
type Legacy struct {
	Batches bool                // it may put its messages into arrays (2025-03-26)
	Session bool                // the request names a session: ErrSessionEnded is in the chain where the server ended that
	Asked   func(*wire.Message) // takes a request of the server's; it must not wait
	// Begun is given the header of the response before anything of its body is read. Its error makes the reply unusable. Nil
	// does not want it.
	Begun func(http.Header) error
	// Resume is the header, complete but for the credential, of a GET that goes on with a stream which ended before the
	// reply. It is the exchange's own from then on. Nil resumes none.
	Resume func() http.Header
}

// Sent reports whether a byte of the request may have reached the transport by now. It says no again once the server has
// refused it.
func (r *Request) Sent() bool {
	l := r.leg.Load()
	if l == nil {
		return false
	}
	state := l.state.Load()
	return state == legWriting || state == legSent
}

// A Reply is the response to a request: a result or the server's own error, with the request's id.
type Reply struct {
	*wire.Message
	Status   int  // of HTTP
	Streamed bool // it came as an event
}

// Do sends req and returns the reply to it. It sends again only on proof that the server did not act: after a stale
// connection that took no byte, and after a 401 within req.Resend. The error is an *upstream.Error, whose chain holds a
// *wire.Error where the server sent one that named no request. context.Cause(ctx) tells a deadline from a cancel.
func (c *Client) Do(ctx context.Context, req *Request) (Reply, error) {
	defer req.Room.release()
	if !c.begin() {
		return Reply{}, c.ended(ctx, false, errClosed)
	}
	defer c.running.Done()

	resp, err := c.accepted(ctx, req)
	if err != nil {
		return Reply{}, err
	}
	return c.read(ctx, req, resp)
}

// accepted sends req, and once more where its token was refused.
func (c *Client) accepted(ctx context.Context, req *Request) (*http.Response, error) {
	resp, token, err := c.send(ctx, req, req.Header)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || c.cfg.Credential == nil || !req.Resend.Take() {
		return resp, err
	}
	req.leg.Store(nil)
	return c.renew(ctx, req, token, c.refused(resp))
}

// renew sends req with another token than the one that was refused. Without one the refusal stands.
func (c *Client) renew(ctx context.Context, req *Request, token uint64, refusal *upstream.Error) (*http.Response, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	if err := c.cfg.Credential.Refresh(waiting, token); err != nil {
		if waiting.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil, c.ended(ctx, false, err)
		}
		refusal.Err = errors.Join(refusal.Err, err)
		return nil, refusal
	}
	resp, _, err := c.send(ctx, req, maps.Clone(req.Header), token)
	if errors.Is(err, errSameToken) {
		return nil, refusal
	}
	return resp, err
}

// errSameToken says that nothing was sent, since the server has refused the token before.
var errSameToken = errors.New("the credential's source gave the refused token again")

// send makes the attempt, and a second one if the first met a connection that was already closed. It does not send with a
// token that is in refused.
func (c *Client) send(ctx context.Context, req *Request, header http.Header, refused ...uint64) (*http.Response, uint64, error) {
	for redialed := false; ; redialed = true {
		resp, token, stale, err := c.attempt(ctx, req, header, refused)
		if err == nil || !stale || redialed {
			return resp, token, err
		}
		c.dropIdle()
		header = maps.Clone(header)
	}
}

// attempt sends once. stale says that it failed on a kept connection that took no byte.
func (c *Client) attempt(ctx context.Context, req *Request, header http.Header, refused []uint64) (resp *http.Response, token uint64, stale bool, err error) {
	l := new(leg)
	req.leg.Store(l)
	direct := c.address != "" && req.method == "" && len(req.Body) <= maxDirect
	if !direct {
		ctx = l.trace(ctx)
	}
	r := c.template.WithContext(ctx)
	r.Header = header
	if c.authorization != nil {
		header["Authorization"] = c.authorization
	}
	if !direct {
		maps.Copy(header, c.fixed)
	}
	switch {
	case req.method != "":
		r.Method = req.method
	case !direct:
		r.ContentLength = int64(len(req.Body))
		r.Body = req.Room.sending(req.Body)
	}
	if c.cfg.Credential != nil {
		if token, err = c.sign(l, r); err != nil {
			if ctx.Err() != nil || c.life.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil, 0, false, c.ended(ctx, false, err)
			}
			return nil, 0, false, &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.NoCredential, Err: err}
		}
		if slices.Contains(refused, token) {
			return nil, 0, false, errSameToken
		}
	}
	if direct {
		resp, err = c.roundTrip(ctx, l, r, req.Body)
	} else {
		resp, err = c.transport.RoundTrip(r)
	}
	if err == nil {
		return resp, token, false, nil
	}
	unsent := l.withdraw()
	switch {
	case ctx.Err() != nil || c.life.Err() != nil:
		err = c.ended(ctx, !unsent, err)
	case !unsent:
		err = &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.ConnectionLost, Err: err}
	case l.connected:
		err = &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.WriteFailed, Err: err}
		stale = l.reused
	default:
		err = &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.Unreachable, Err: err}
	}
	return nil, 0, stale, err
}

// sign has the credential sign r, for no longer than r's context and the client live.
func (c *Client) sign(l *leg, r *http.Request) (token uint64, err error) {
	l.signing.Context, l.signing.life = r.Context(), c.life
	defer l.signing.stop()
	return c.cfg.Credential.Sign(&l.signing, r)
}

// ended is the failure of an exchange whose ctx has ended, or the client's life.
func (c *Client) ended(ctx context.Context, sent bool, err error) *upstream.Error {
	if ctx.Err() != nil {
		return upstream.Ended(ctx, sent, err)
	}
	e := &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.ClosedByGateway, Err: err}
	if sent {
		e.Outcome = upstream.NoResponse
	}
	return e
}

// begin counts an exchange in, unless the client is closed.
func (c *Client) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Add(1)
	return true
}

// Close ends the exchanges in flight, which fail with the cause closed, waits for them, and closes all connections. Later
// exchanges fail the same way. It may be called again.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.dropKept()
	c.dropConns() // what is in flight on them ends with an error
	if t, ok := c.transport.(io.Closer); ok {
		_ = t.Close() // nothing depends on how it closes
	}
	c.running.Wait()
}

// dropIdle closes the connections that no exchange uses.
func (c *Client) dropIdle() {
	c.dropKept()
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
