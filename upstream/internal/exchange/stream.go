package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"mcp-gateway/internal/sse"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

const (
	// maxBatch bounds the messages in one array.
	maxBatch = 1000
	// maxPlace bounds the event id that is repeated to the server.
	maxPlace = 4 << 10
	// resumes is how many attempts in a row to resume may bring no event. A server may close a stream as often as it likes
	// while it works, but each time that it is asked it has something to say or a stream to wait on.
	resumes = 10
	// usualRetry is the pause before a stream is opened again where the server names none, and leastRetry the shortest that it
	// can name. Pauses grow up to mostRetry, or what the server names, while nothing comes of them.
	usualRetry = time.Second
	leastRetry = 100 * time.Millisecond
	mostRetry  = 30 * time.Second
	// settled is the life of a stream after which its end is nothing that has to be asked for less often.
	settled = 30 * time.Second
)

// ErrSessionEnded says that the server does not know the request's session (any more), and so has not run it.
var ErrSessionEnded = errors.New("the server has ended the session")

// goneBody is how much of a 404's body is looked at. What is longer than any refusal is none.
const goneBody = 64 << 10

// sessionEnded is the failure of a request that was answered with 404 because its session is not there, or nil where that is
// not sure. Only what cannot have come from a server that ran the request is proof: nothing, a text that is no message, or a JSON-RPC
// error that names no request. What resp had is still to be read.
func sessionEnded(req *Request, resp *http.Response) error {
	if resp.Header.Get("Content-Encoding") != "" || strings.EqualFold(mediaType(resp.Header.Get("Content-Type")), "text/event-stream") {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, goneBody+1))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), resp.Body), resp.Body}
	if err != nil || len(text) > goneBody || !refusesSession(text, req.ID) {
		return nil
	}
	drain(resp.Body)
	return &upstream.Error{
		Outcome: upstream.ErrorResponse, Cause: upstream.Refused, HTTPStatus: http.StatusNotFound,
		Err: fmt.Errorf("%w: the server answered with HTTP 404", ErrSessionEnded),
	}
}

// refusesSession decides by the text alone, since servers say text/plain of anything.
func refusesSession(text, id []byte) bool {
	text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\uFEFF")), " \t\r\n")
	if len(text) == 0 {
		return true
	}
	for _, field := range []string{":", "data", "event", "id", "retry"} {
		if bytes.HasPrefix(text, []byte(field)) {
			return false
		}
	}
	if text[0] == '[' {
		return false
	}
	if text[0] != '{' {
		return true
	}
	if m, err := wire.ParseReply(text); err == nil {
		return m.Kind == wire.Failure && (namesNone(m) || isForeign(m.ID, id))
	}
	// An error in a form of the framework's own.
	o, err := wire.ParseObject(bytes.TrimRight(text, " \t\r\n"))
	return err == nil && !o.Has("result") && !o.Has("id") && !o.Has("method")
}

// namesNone reports whether m is a response to no request in particular.
func namesNone(m *wire.Message) bool { return m.ID == nil || string(m.ID) == "null" }

// isForeign reports whether an id is a string that nobody can take for ours, which is a number: there are servers that answer with one of
// their own where the session is not known.
func isForeign(raw, ours []byte) bool {
	text, ok := wire.Unquote(raw)
	return ok && strings.TrimSpace(text) != string(ours) && strings.Trim(text, "0123456789.eE+- ") != ""
}

// A place is how far a stream has been read, and when it may be opened again.
type place struct {
	id     string
	retry  time.Duration
	named  bool // the server names retry
	barren int  // attempts in a row that brought no event
}

// move takes what an event says of it.
func (p *place) move(e sse.Event) {
	p.barren = 0
	if e.HasID {
		p.id = e.ID
		if len(p.id) > maxPlace || strings.ContainsFunc(p.id, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			p.id = "" // it cannot be said in a header
		}
	}
	if e.HasRetry {
		p.retry, p.named = e.Retry, true
	}
}

// pause is how long to wait before the next attempt: never under what the server names.
func (p *place) pause() time.Duration {
	d := usualRetry
	if p.named {
		d = max(p.retry, leastRetry)
	}
	return max(d, min(d<<min(p.barren, resumes), mostRetry))
}

// header is h with the place from which the server is to go on.
func (p *place) header(h http.Header) http.Header {
	h["Accept"] = []string{"text/event-stream"}
	delete(h, "Content-Type")
	if p.id != "" {
		h["Last-Event-Id"] = []string{p.id}
	}
	return h
}

// resumable reports whether a stream that ended with err may have more to give.
func (b *body) resumable(err error) bool {
	return !b.cut() && !errors.Is(err, sse.ErrEventTooLarge) && b.first != '{' && b.first != '[' && b.first != '<'
}

// resume waits as long as the server wants and asks it to go on after the last event, until it does. It gives nil where it
// will not.
func (c *Client) resume(ctx context.Context, req *Request, at *place) *http.Response {
	if at.id == "" || req.Legacy.Resume == nil {
		return nil
	}
	for at.barren < resumes {
		if !c.sleep(ctx, at.pause()) {
			return nil
		}
		at.barren++
		resp, err := c.events(ctx, at.header(req.Legacy.Resume()))
		if err == nil {
			return resp
		}
		if !passing(err) {
			c.debug("upstream does not go on with a stream that broke off")
			return nil
		}
	}
	return nil
}

// passing reports whether a refusal to open a stream can be another one's next time. 409 is a server that has not seen yet
// that the stream before has ended.
func passing(err error) bool {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return false
	}
	switch status := e.HTTPStatus; {
	case status == 0, status >= 500 && status != http.StatusNotImplemented:
		return true
	default:
		return status == http.StatusConflict || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
	}
}

// events opens an event stream.
func (c *Client) events(ctx context.Context, header http.Header) (*http.Response, error) {
	resp, err := c.Open(ctx, header)
	if err != nil {
		return nil, err
	}
	encoding := resp.Header.Get("Content-Encoding")
	switch media := mediaType(resp.Header.Get("Content-Type")); {
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		err = fmt.Errorf("%w: %s", errEncoded, shown(encoding))
	case resp.StatusCode != http.StatusOK || !strings.EqualFold(media, "text/event-stream"):
		err = fmt.Errorf("the reply to GET has content type %s, not text/event-stream", shown(media))
	default:
		return resp, nil
	}
	drain(resp.Body)
	return nil, unusable(resp, err)
}

// A Stream is an event stream that belongs to no request. It is for one goroutine.
type Stream struct {
	resp   *http.Response
	body   *body
	events *sse.Reader
	at     *place
}

// Listen opens an event stream, after the last event of the stream before where that is not nil. It ends with ctx, or the
// client; Close is owed. header is complete but for the credential, and the exchange's own from then on. The error is an
// *upstream.Error, with the server's status where it answered something else.
func (c *Client) Listen(ctx context.Context, header http.Header, before *Stream) (*Stream, error) {
	at := new(place)
	if before != nil {
		at = before.at
	}
	return c.listen(ctx, header, at)
}

func (c *Client) listen(ctx context.Context, header http.Header, at *place) (*Stream, error) {
	resp, err := c.events(ctx, at.header(header))
	if err != nil {
		return nil, err
	}
	b := &body{ctx: ctx, client: c, src: resp.Body}
	return &Stream{resp, b, b.stream(), at}, nil
}

// Next gives the next event, as sse.Reader's does.
func (s *Stream) Next() (sse.Event, error) {
	event, err := s.events.Next()
	s.body.release() // others wait for it, and this stream may be silent for hours
	if err == nil {
		s.at.move(event)
	}
	return event, err
}

// Close ends the stream.
func (s *Stream) Close() {
	_ = s.resp.Body.Close()
	s.body.release()
}

// Follow reads the server's own event stream, apart from any request's, and gives each event to take, which must not wait.
// Whenever the stream ends it is opened again after the last event, not before the server wants that, and ever more
// slowly while nothing comes of it. It returns once ctx or the client has ended, or with the server's refusal to offer such
// a stream; opened says that it had done so before. header gives what is complete but for the credential.
func (c *Client) Follow(ctx context.Context, header func() http.Header, take func(sse.Event)) (opened bool, err error) {
	for at := new(place); ; {
		s, err := c.listen(ctx, header(), at)
		if err == nil {
			opened = true
			began := time.Now()
			c.readAll(s, take)
			if time.Since(began) >= settled {
				at.barren = 0
			}
		} else if !opens(err) {
			return opened, err
		}
		if !c.sleep(ctx, at.pause()) {
			return opened, nil
		}
		at.barren = min(at.barren+1, resumes)
	}
}

// readAll reads a stream to its end.
func (c *Client) readAll(s *Stream, take func(sse.Event)) {
	defer s.Close()
	for {
		event, err := s.Next()
		switch {
		case errors.Is(err, sse.ErrEventTooLarge):
			c.debug("upstream sent an event that is too large; dropped")
		case err != nil:
			return
		default:
			take(event)
		}
	}
}

// opens reports whether a server that did not open its stream may yet: one that says that it has none is not asked again.
func opens(err error) bool {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return false
	}
	switch e.HTTPStatus {
	case http.StatusUnauthorized, http.StatusForbidden:
		return true
	}
	return passing(err)
}

// sleep reports whether it was ended neither by ctx nor by the client.
func (c *Client) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-c.life.Done():
	}
	return ctx.Err() == nil && c.life.Err() == nil
}

// Delete ends the session that header names, which is the exchange's own from then on. The error is an *upstream.Error.
func (c *Client) Delete(ctx context.Context, header http.Header) error {
	delete(header, "Content-Type") // some servers refuse one without a body
	resp, err := c.open(ctx, &Request{method: http.MethodDelete, Header: header, Resend: new(upstream.Budget)})
	if err == nil {
		drain(resp.Body)
	}
	return err
}
