package legacy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/exchange"
	"mcp-gateway/upstream/internal/link"
)

const (
	// sideWait bounds what nobody waits for: a cancel, an answer to the server, the end of a session.
	sideWait = 2 * time.Second
	// maxAnswers bounds the answers to the server that are on their way. What it asks beyond them gets none.
	maxAnswers = 32
	// maxSessionID bounds the session id that is repeated with each request.
	maxSessionID = 4 << 10
)

// streamable is the transport of the 2025 revisions, Streamable HTTP. Its exchanges outlive a session: one that the server has
// ended says nothing of what it still works at.
type streamable struct {
	u      *Upstream
	calls  *exchange.Client // ends before the session is
	client *exchange.Client // for all else
	header http.Header      // of each POST, before the handshake

	mu      sync.Mutex // guards closed, and running against it
	closed  bool
	running sync.WaitGroup
}

func newStreamable(u *Upstream, cfg Remote) *streamable {
	t := &streamable{u: u, header: exchange.Header(cfg.Header, u.version())}
	to := exchange.Config{URL: cfg.URL, Credential: cfg.Credential, Transport: cfg.Transport, Log: u.cfg.Log}
	t.calls, t.client = exchange.New(to), exchange.New(to)
	return t
}

// open sends nothing: the first message is the handshake's.
func (t *streamable) open(context.Context) (conn, error) {
	c := &httpConn{
		t: t, header: t.header, done: make(chan struct{}),
		proving: make(chan struct{}, 1), answers: make(chan struct{}, maxAnswers),
		listeners: make(map[int64]*flight),
	}
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}

func (t *streamable) toModern() string { return "set `protocol: modern`" }

// run runs f beside the calls unless the transport is closed.
func (t *streamable) run(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.running.Go(f)
	return true
}

// closing ends the calls in flight, so that they fail by the gateway's doing and not by the end of their session.
func (t *streamable) closing() { t.calls.Close() }

// close ends what is left of all sessions, and waits for it.
func (t *streamable) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.client.Close()
	t.running.Wait()
}

// An httpConn is one session with the server, or, where it gives no id, the belief that there is one.
type httpConn struct {
	t       *streamable
	ids     atomic.Int64
	header  http.Header // of each POST; set during the handshake, then never changed
	session string      // its id; "" where the server gave none
	legacy  exchange.Legacy

	life      context.Context // ends with Close
	end       context.CancelFunc
	following sync.WaitGroup // the server's own stream
	answers   chan struct{}  // one for each answer on its way
	flooded   atomic.Bool    // an answer was left out, and that was logged

	doubtful atomic.Bool   // a reply leaves open whether the server knows the session
	proving  chan struct{} // held by the one who asks it

	mu        sync.Mutex // guards the rest
	listeners map[int64]*flight
	ended     bool // done is closed
	err       error
	done      chan struct{}
}

// Done is closed once the server has ended the session.
func (c *httpConn) Done() <-chan struct{} { return c.done }

// Err says how, after Done.
func (c *httpConn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail ends a session that the server does not have any more. Its successor's handshake begins at once.
func (c *httpConn) fail(end *link.EndedError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended, c.err = true, end
	close(c.done)
}

// Close ends the server's own stream and tells the server that the session is over, unless it said so itself. Calls in
// flight go on: they run on connections of their own.
func (c *httpConn) Close() error {
	c.end()
	c.following.Wait()
	c.mu.Lock()
	owed := c.session != "" && !c.ended
	c.session = ""
	c.mu.Unlock()
	if !owed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sideWait)
	defer cancel()
	if err := c.t.client.Delete(ctx, c.headers()); err != nil {
		c.debug("server did not end the session", err) // it need not (405)
	}
	return nil
}

// headers are those of one more request.
func (c *httpConn) headers() http.Header {
	h := make(http.Header, len(c.header)+2) // for the credential, and the place in a stream
	maps.Copy(h, c.header)
	return h
}

func (c *httpConn) debug(text string, err error) {
	c.t.u.cfg.Log.Debug(text, "upstream", c.t.u.cfg.ID, "error", err)
}

// begun takes the session's id off the response to initialize.
func (c *httpConn) begun(h http.Header) error {
	ids := h[mcp.HeaderSession]
	if len(ids) == 0 {
		return nil
	}
	bad := func(r rune) bool { return r <= ' ' || r > '~' }
	if id := ids[0]; len(ids) > 1 || id == "" || len(id) > maxSessionID || strings.ContainsFunc(id, bad) {
		return fmt.Errorf("the server's session id cannot be used: it has to be one, of at most %d visible ASCII characters", maxSessionID)
	}
	c.session = ids[0]
	c.header = c.headers()
	c.header[mcp.HeaderSession] = ids
	return nil
}

// initialize is the first request of the session, and may not be canceled.
func (c *httpConn) initialize(ctx context.Context, req *upstream.Request) (*wire.Message, error) {
	c.legacy = exchange.Legacy{Begun: c.begun, Asked: c.asked, Resume: c.headers}
	r := c.request(c.ids.Add(1), req.Method, req.Params, req.Resend)
	r.Legacy = &c.legacy
	reply, err := c.t.client.Do(ctx, r)
	return reply.Message, err
}

// request is a message with an id, whose stream may carry more than its reply.
func (c *httpConn) request(id int64, method string, params wire.Object, resend *upstream.Budget) *exchange.Request {
	text := appendInt(nil, id)
	body := make([]byte, 0, params.Size()+len(method)+len(text)+64)
	return &exchange.Request{
		ID: text, Body: wire.AppendEditedRequest(body, text, method, params), Header: c.headers(), Resend: resend, Legacy: &c.legacy,
		Notify: func(n upstream.Notification) { c.notified(nil, n) },
	}
}

// agreed takes the revision, which each later request names.
func (c *httpConn) agreed(revision string) {
	c.header = c.headers()
	c.header[mcp.HeaderVersion] = []string{revision}
	c.legacy = exchange.Legacy{
		Batches: revision == mcp.Revision20250326, Session: c.session != "", Asked: c.asked, Resume: c.headers,
	}
}

// Notify posts one notification. After the last of the handshake, the server's own stream is opened.
func (c *httpConn) Notify(ctx context.Context, method string, params []byte) error {
	err := c.t.client.Post(ctx, &exchange.Request{
		Body: wire.AppendRequest(nil, nil, method, params), Header: c.headers(), Resend: new(upstream.Budget),
	})
	if err == nil && method == mcp.NotificationInitialized {
		c.following.Go(c.follow)
	}
	return err
}

// explain names the settings for the servers that most often refuse initialize.
func (c *httpConn) explain(err error) error {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return err
	}
	// Who refuses the version before it has read which request it is names no request.
	stated, ok := errors.AsType[*wire.Error](err)
	if ok && stated.Code == mcp.CodeUnsupportedVersion && e.HTTPStatus == http.StatusBadRequest {
		return c.t.u.refused(cmp.Or(c.t.u.cfg.Revision, mcp.LegacyLatest), stated)
	}
	const hint = "a server with an SSE endpoint needs `transport: sse`, one that speaks only " + mcp.Modern + " `protocol: modern`"
	switch status := e.HTTPStatus; {
	case e.Cause == upstream.Refused && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return &link.RefusedError{Err: fmt.Errorf("check the credential: %w", err)}
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout, e.Cause == upstream.Unusable:
		return fmt.Errorf("%s: %w", hint, err)
	}
	return err
}
