package legacy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/exchange"
	"mcp-gateway/upstream/internal/link"
)

// reportRoom is how many notifications wait for a call's Notify.
const reportRoom = 32

// A flight is one call on its way. Its exchange does not end with the caller, who is gone before the server has been told.
type flight struct {
	id       int64
	request  *exchange.Request
	token    []byte                     // of the caller, for progress; nil is none
	reports  chan upstream.Notification // nil where nobody listens
	over     context.Context            // ends the exchange
	stop     context.CancelCauseFunc
	answered chan struct{} // closed once reply and err are there
	reply    exchange.Reply
	err      error
}

// Call sends req in an exchange of its own. A call that was sent and whose ctx ends is canceled on the wire.
func (c *httpConn) Call(ctx context.Context, req *upstream.Request) (*wire.Message, error) {
	if req.Method == mcp.MethodInitialize {
		return c.initialize(ctx, req)
	}
	if ctx.Err() != nil {
		return nil, givenUp(ctx, false)
	}
	if err := c.prove(ctx); err != nil {
		return nil, err
	}
	f, err := c.launch(ctx, req)
	if err != nil {
		return nil, err
	}
	defer c.forget(f)
	for {
		select {
		case n := <-f.reports:
			req.Notify(n)
		case <-f.answered:
			return c.land(f, req)
		case <-ctx.Done():
			return c.abandon(ctx, f, req)
		}
	}
}

// renewed reports whether the session was begun since the one before it could not take the call.
func (f *flight) renewed() bool { return f.over.Value(renewedKey{}) != nil }

func (c *httpConn) launch(ctx context.Context, req *upstream.Request) (*flight, error) {
	f := &flight{id: c.ids.Add(1), answered: make(chan struct{})}
	params := req.Params
	if req.Notify == nil {
		params = mcp.DropProgressToken(params)
	} else {
		params, f.token = mcp.SwapProgressToken(params, f.id)
		f.reports = make(chan upstream.Notification, reportRoom)
	}
	f.request = c.request(f.id, req.Method, params, req.Resend)
	forward(f.request.Header, req.Header)
	f.request.Notify = func(n upstream.Notification) { c.notified(f, n) }
	f.over, f.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	if f.token != nil {
		c.mu.Lock()
		c.listeners[f.id] = f
		c.mu.Unlock()
	}
	started := c.t.run(func() {
		f.reply, f.err = c.t.calls.Do(f.over, f.request)
		close(f.answered)
	})
	if !started {
		c.forget(f)
		return nil, &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.ClosedByGateway}
	}
	return f, nil
}

// forget ends what the call holds, but not an exchange that is being canceled.
func (c *httpConn) forget(f *flight) {
	c.mu.Lock()
	delete(c.listeners, f.id)
	c.mu.Unlock()
	select {
	case <-f.answered:
		f.stop(nil)
	default:
	}
}

// land is the end of a call whose exchange has ended: what the server reported before goes first.
func (c *httpConn) land(f *flight, req *upstream.Request) (*wire.Message, error) {
	for len(f.reports) > 0 {
		req.Notify(<-f.reports)
	}
	if f.err != nil {
		return nil, c.judge(f.err, f.renewed())
	}
	if f.reply.Status == http.StatusNotFound && c.legacy.Session {
		if f.renewed() {
			c.doubtful.Store(true)
		} else {
			c.fail(&link.EndedError{Asked: true, Err: errors.New("the server answered a call with HTTP 404, which it should only where it has ended the session")})
		}
	}
	return f.reply.Message, nil
}

// abandon ends a call whose ctx has ended.
func (c *httpConn) abandon(ctx context.Context, f *flight, req *upstream.Request) (*wire.Message, error) {
	select {
	case <-f.answered: // at the same moment
		return c.land(f, req)
	default:
	}
	if !f.request.Sent() {
		f.stop(context.Cause(ctx))
		<-f.answered
		e, ok := errors.AsType[*upstream.Error](f.err)
		if !ok || e.Outcome != upstream.NoResponse {
			return c.land(f, req)
		}
	}
	e := givenUp(ctx, true)
	if !c.t.run(func() { c.cancel(f, e) }) {
		f.stop(nil)
	}
	return nil, e
}

// cancel tells the server, and then ends the exchange.
func (c *httpConn) cancel(f *flight, e *upstream.Error) {
	defer f.stop(e.Err)
	reason := "the caller canceled it"
	if e.Cause == upstream.Deadline {
		reason = "its deadline passed"
	}
	c.post(mcp.Cancel(f.id, reason), c.headers())
}

// post sends a message that nobody waits for.
func (c *httpConn) post(message []byte, header http.Header) {
	ctx, cancel := context.WithTimeout(context.Background(), sideWait)
	defer cancel()
	if err := c.t.client.Post(ctx, &exchange.Request{Body: message, Header: header}); err != nil {
		c.debug("server did not take an answer or a cancel", err)
	}
}

// givenUp is the failure of a call whose ctx has ended.
func givenUp(ctx context.Context, sent bool) *upstream.Error {
	e := &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.CanceledUnsent, Err: context.Cause(ctx)}
	late := errors.Is(e.Err, context.DeadlineExceeded)
	switch {
	case sent && late:
		e.Outcome, e.Cause = upstream.NoResponse, upstream.Deadline
	case sent:
		e.Outcome, e.Cause = upstream.NoResponse, upstream.Canceled
	case late:
		e.Cause = upstream.DeadlineUnsent
	}
	return e
}

// judge draws the conclusions from a failure of the exchange about the session. For a call on a renewed one, 404 proves neither
// that the session has ended nor that nothing ran: whatever answers in the server's place may say so of that call alone.
func (c *httpConn) judge(err error, renewed bool) error {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok || !c.legacy.Session {
		return err
	}
	switch ended := errors.Is(err, exchange.ErrSessionEnded); {
	case ended && renewed:
		e.Outcome, e.Cause = upstream.NoResponse, upstream.HTTPError
		e.Err = errors.New("the server answered with HTTP 404 on a session that had only just begun")
	case ended:
		e.Err = fmt.Errorf("%w: %w", errSessionEnded, e.Err)
		c.fail(&link.EndedError{Err: e.Err, Asked: true})
		return e
	}
	if _, anonymous := errors.AsType[*wire.Error](err); anonymous || doubts(e) {
		c.doubtful.Store(true)
	}
	return e
}

// doubts reports whether a status is one that servers give for a session that they do not know, and for much else.
func doubts(e *upstream.Error) bool {
	switch e.HTTPStatus {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusGone:
		return e.Cause != upstream.Refused
	}
	return false
}

// prove asks the server for a sign of life where the reply to an earlier call left it open whether it knows the session. One
// asks, and the others wait. Only a refusal ends the session; without one the call goes on.
func (c *httpConn) prove(ctx context.Context) error {
	if !c.doubtful.Load() {
		return nil
	}
	select {
	case c.proving <- struct{}{}:
		defer func() { <-c.proving }()
	case <-ctx.Done():
		return givenUp(ctx, false)
	}
	if !c.doubtful.Load() {
		return c.gone()
	}
	asking, cancel := context.WithTimeout(ctx, sideWait)
	defer cancel()
	reply, err := c.t.client.Do(asking, c.request(c.ids.Add(1), mcp.MethodPing, wire.Object{}, nil))
	switch {
	case ctx.Err() != nil:
		return givenUp(ctx, false)
	case !refuses(reply, err):
		if err == nil {
			c.doubtful.Store(false)
		}
		return nil
	}
	c.fail(&link.EndedError{Asked: true, Err: errors.New("the server refused a ping: it does not know the session any more")})
	c.doubtful.Store(false)
	return c.gone()
}

// gone is the failure of a call that finds the session ended before it was sent.
func (c *httpConn) gone() error {
	err := c.Err()
	if err == nil {
		return nil
	}
	return &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.Reconnecting, Err: fmt.Errorf("%w: %w", errSessionEnded, err)}
}

// refuses reports whether the answer to a ping says that the session is not known. A server that does not know ping knows
// the session.
func refuses(reply exchange.Reply, err error) bool {
	if err == nil {
		return reply.Kind == wire.Failure && reply.Error.Code != wire.CodeMethodNotFound
	}
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return false
	}
	_, anonymous := errors.AsType[*wire.Error](err)
	return anonymous || errors.Is(err, exchange.ErrSessionEnded) || doubts(e)
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }
