package exchange

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// drainTime bounds how long a finished call waits for the end of its response, without which its connection could not be
// kept. Servers end it together with the reply.
const drainTime = 20 * time.Millisecond

var (
	errTooLarge = fmt.Errorf("the reply is over %d MiB", maxResult>>20)
	errOtherID  = errors.New("the reply names another request")
	errRedirect = errors.New("redirects are not followed: configure the url that the server redirects to")
	errEncoded  = errors.New("the reply has an encoding, which was not asked for")
)

// read takes the reply to req out of resp, and ends resp.
func (c *Client) read(ctx context.Context, req *Request, resp *http.Response) (Reply, error) {
	if resp.StatusCode == http.StatusNotFound && req.Legacy != nil && req.Legacy.Session {
		if err := sessionEnded(req, resp); err != nil {
			return Reply{}, err
		}
	}
	return c.readReply(ctx, req, resp)
}

func (c *Client) readReply(ctx context.Context, req *Request, resp *http.Response) (Reply, error) {
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return Reply{}, c.refused(resp)
	}
	if req.Legacy != nil && req.Legacy.Begun != nil {
		if err := req.Legacy.Begun(resp.Header); err != nil {
			drain(resp.Body)
			return Reply{}, unusable(resp, err)
		}
	}
	b := &body{ctx: ctx, client: c, src: resp.Body}
	defer b.handOver(req.Hold)
	media := mediaType(resp.Header.Get("Content-Type"))
	encoding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		drain(resp.Body)
		return Reply{}, httpError(resp, errRedirect)
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		drain(resp.Body)
		return Reply{}, unusable(resp, fmt.Errorf("%w: %s", errEncoded, shown(encoding)))
	case strings.EqualFold(media, "text/event-stream"):
		return c.readStream(req, resp, b)
	case strings.EqualFold(media, "application/json"):
		return c.readJSON(req, resp, b)
	}
	drain(resp.Body)
	return Reply{}, unusable(resp, fmt.Errorf("the reply has content type %s, not application/json or text/event-stream", shown(media)))
}

// readJSON reads a body that is one message, or an array of them.
func (c *Client) readJSON(req *Request, resp *http.Response, b *body) (Reply, error) {
	data, err := b.all(resp.ContentLength)
	if err != nil {
		_ = resp.Body.Close()
		return Reply{}, b.failure(resp, err)
	}
	_ = resp.Body.Close() // it has been read to its end
	m, err := wire.ParseReply(data)
	switch {
	case errors.Is(err, wire.ErrBatch) && req.Legacy != nil && req.Legacy.Batches:
		in := reading{client: c, req: req, resp: resp}
		if m, err = in.batch(data); m != nil {
			return Reply{Message: m, Status: resp.StatusCode}, nil
		}
		return Reply{}, unusable(resp, cmp.Or(err, in.stray, errOtherID))
	case errors.Is(err, wire.ErrBatch):
		return Reply{}, unusable(resp, err)
	case err != nil:
		return Reply{}, unusable(resp, fmt.Errorf("the reply (%d bytes) cannot be used: %w", len(data), err))
	case answers(m, req, resp):
		if m.Kind == wire.Result && req.Legacy == nil { // whose reply others may read for longer than its call lasts
			b.lend(req.Hold)
		}
		return Reply{Message: m, Status: resp.StatusCode}, nil
	case m.Kind == wire.Failure && namesNone(m):
		return Reply{}, unusable(resp, fmt.Errorf("%w: %w", errOtherID, m.Error))
	}
	return Reply{}, unusable(resp, errOtherID)
}

// readStream reads events until the reply. What else a server sends there is for the call alone, so that an event that
// cannot be read ends it: it may have been the reply.
func (c *Client) readStream(req *Request, resp *http.Response, b *body) (Reply, error) {
	in := reading{client: c, req: req, resp: resp}
	events := b.stream()
	at := place{}
	for {
		event, err := events.Next()
		if err != nil {
			_ = in.resp.Body.Close()
			if req.Legacy != nil && b.resumable(err) {
				if next := c.resume(b.ctx, req, &at); next != nil {
					b.begin(next.Body)
					in.resp, events = next, b.stream()
					continue
				}
			}
			return Reply{}, b.ended(in.resp, err, in.stray)
		}
		at.move(event)
		if len(event.Data) == 0 || event.Name != "message" {
			continue
		}
		m, err := in.take(event.Data)
		switch {
		case m != nil:
			drain(in.resp.Body)
			return Reply{Message: m, Status: in.resp.StatusCode, Streamed: true}, nil
		case err != nil:
			_ = in.resp.Body.Close()
			return Reply{}, unusable(in.resp, fmt.Errorf("an event of %d bytes cannot be used: %w", len(event.Data), err))
		}
	}
}

// A reading takes the messages of one reply apart.
type reading struct {
	client *Client
	req    *Request
	resp   *http.Response
	stray  error // a response to another request
}

// take gives the reply if it is in text. An error says that text cannot be read.
func (r *reading) take(text []byte) (*wire.Message, error) {
	m, err := wire.ParseReply(text)
	switch {
	case errors.Is(err, wire.ErrBatch) && r.req.Legacy != nil && r.req.Legacy.Batches:
		return r.batch(text)
	case err != nil:
		return nil, err
	}
	return r.one(m), nil
}

// batch takes each message of an array. One that cannot be read is an error only where none of them is the reply.
func (r *reading) batch(text []byte) (found *wire.Message, failed error) {
	texts, err := wire.Batch(text, maxBatch)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		m, err := wire.ParseReply(text)
		if err != nil {
			failed = err
		} else if m = r.one(m); m != nil {
			found = m
		}
	}
	return found, failed
}

// one gives m back if it is the reply.
func (r *reading) one(m *wire.Message) *wire.Message {
	switch {
	case m.Kind == wire.Notification:
		if r.req.Notify != nil {
			r.req.Notify(upstream.Notification{Method: m.Method, Params: m.Params})
		}
	case m.Kind == wire.Request && r.req.Legacy != nil:
		r.req.Legacy.Asked(m)
	case m.Kind == wire.Request:
		r.client.debug("upstream sent a request, which this revision does not have; dropped")
	case answers(m, r.req, r.resp):
		return m
	default:
		r.client.debug("upstream sent a response to another request; dropped")
		if r.stray = errOtherID; m.Kind == wire.Failure {
			r.stray = fmt.Errorf("%w: %w", errOtherID, m.Error)
		}
	}
	return nil
}

func (c *Client) debug(text string) {
	if c.cfg.Log != nil {
		c.cfg.Log.LogAttrs(context.Background(), slog.LevelDebug, text)
	}
}

// answers reports whether m is the response to req. An error is, whatever the status; a result needs one that agrees.
func answers(m *wire.Message, req *Request, resp *http.Response) bool {
	if !bytes.Equal(m.ID, req.ID) {
		return false
	}
	// What a server has run under a session that it then says is gone must not read as not run.
	gone := req.Legacy != nil && resp.StatusCode == http.StatusNotFound
	return m.Kind == wire.Failure || m.Kind == wire.Result && (success(resp) || gone)
}

func success(resp *http.Response) bool { return resp.StatusCode >= 200 && resp.StatusCode < 300 }

// refused is the failure of a request that the HTTP layer did not let through, and ends resp.
func (c *Client) refused(resp *http.Response) *upstream.Error {
	drain(resp.Body)
	return &upstream.Error{
		Outcome: upstream.ErrorResponse, Cause: upstream.Refused, HTTPStatus: resp.StatusCode,
		Err: fmt.Errorf("the server refused the request with HTTP %d", resp.StatusCode),
	}
}

func httpError(resp *http.Response, err error) *upstream.Error {
	return &upstream.Error{
		Outcome: upstream.NoResponse, Cause: upstream.HTTPError, HTTPStatus: resp.StatusCode,
		Err: fmt.Errorf("the server answered with HTTP %d: %w", resp.StatusCode, err),
	}
}

// unusable is the failure of a reply that says nothing about the request. With a status that tells of an error, that is
// what there is to say.
func unusable(resp *http.Response, err error) *upstream.Error {
	if !success(resp) {
		return httpError(resp, err)
	}
	return &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Unusable, HTTPStatus: resp.StatusCode, Err: err}
}

// mediaType is a Content-Type without its parameters.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(media)
}

// shown is a header's value for the log. A long one is left out instead of cut: a cut could hide half a secret from what
// replaces it.
func shown(value string) string {
	if len(value) > 80 {
		return fmt.Sprintf("(%d bytes)", len(value))
	}
	return strconv.Quote(value)
}

// drain reads what little is left of a body, so that its connection can be kept, and closes it.
func drain(src io.ReadCloser) {
	timer := time.AfterFunc(drainTime, func() { _ = src.Close() })
	_, _ = io.CopyN(io.Discard, src, 64<<10) // whatever ends it, the body is closed next
	timer.Stop()
	_ = src.Close()
}
