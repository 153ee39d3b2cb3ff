package legacy

import (
	"errors"
	"net/http"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/sse"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/link"
)

// maxBatch bounds the messages in one array.
const maxBatch = 1000

const (
	// leastFollow and mostFollow are the pauses before the server's own stream is opened again, beside those that the server asks
	// for, while it keeps ending soon.
	leastFollow = 100 * time.Millisecond
	mostFollow  = 10 * time.Second
)

// follow reads the server's own stream for as long as the session lives. A server that ends it as soon as it is open, and wants
// it back at once, is asked ever more rarely.
func (c *httpConn) follow() {
	pace, last := link.NewPace(leastFollow, mostFollow), time.Time{}
	header := func() http.Header { // which is asked for just before the stream is opened
		if !last.IsZero() {
			pace.Wait(c.life, time.Since(last))
		}
		last = time.Now()
		return c.headers()
	}
	opened, err := c.t.client.Follow(c.life, header, c.take)
	e, ok := errors.AsType[*upstream.Error](err)
	switch {
	case !ok:
	case opened && e.HTTPStatus == http.StatusNotFound && c.legacy.Session:
		c.fail(&link.EndedError{Err: errors.New("the server has ended the session: it does not open its stream any more")})
	case opened && c.legacy.Session && doubts(e):
		c.doubtful.Store(true)
	default:
		c.debug("server offers no stream of its own", err)
	}
}

// take takes what an event of that stream carries.
func (c *httpConn) take(event sse.Event) {
	if len(event.Data) == 0 || event.Name != "message" {
		return
	}
	m, err := wire.ParseReply(event.Data)
	if !errors.Is(err, wire.ErrBatch) || !c.legacy.Batches {
		c.takeOne(m, err)
		return
	}
	texts, err := wire.Batch(event.Data, maxBatch)
	if err != nil {
		c.takeOne(nil, err)
	}
	for _, text := range texts {
		c.takeOne(wire.ParseReply(text))
	}
}

func (c *httpConn) takeOne(m *wire.Message, err error) {
	switch {
	case err != nil:
		c.debug("server's own stream has what is no message", err)
	case m.Kind == wire.Request:
		c.asked(m)
	case m.Kind == wire.Notification:
		c.notified(nil, upstream.Notification{Method: m.Method, Params: m.Params})
	default:
		c.debug("server's own stream has a response to no request of it", nil)
	}
}

// notified takes a notification that came on f's stream, or for nil on the server's own. Progress is told by its token,
// since a legacy server may send it on any stream.
func (c *httpConn) notified(f *flight, n upstream.Notification) {
	switch n.Method {
	case mcp.NotificationProgress:
		token, ok := mcp.ProgressToken(n.Params)
		c.mu.Lock()
		to := c.listeners[token]
		c.mu.Unlock()
		if !ok || to == nil {
			return
		}
		n.Params = mcp.RestoreProgressToken(n.Params, to.token)
		to.report(n, to == f)
	case mcp.NotificationMessage:
		if f != nil {
			f.report(n, true)
		}
	default:
		c.t.u.changed(n.Method, n.Params)
	}
}

// report hands n to the call. What came on its own stream waits, and the stream with it; what came on another is left out
// where the call does not keep up.
func (f *flight) report(n upstream.Notification, wait bool) {
	if f.reports == nil {
		return
	}
	select {
	case f.reports <- n:
		return
	default:
	}
	if !wait {
		return
	}
	select {
	case f.reports <- n:
	case <-f.over.Done():
	}
}

// asked answers a request of the server's, beside what it came with.
func (c *httpConn) asked(m *wire.Message) {
	answer, err := mcp.Answer(m)
	if err != nil {
		c.debug("server's request is not answered", err)
		return
	}
	select {
	case c.answers <- struct{}{}:
	default:
		if !c.flooded.Swap(true) {
			c.t.u.cfg.Log.Warn("server asks faster than it takes answers: some of its requests get none", "upstream", c.t.u.cfg.ID)
		}
		return
	}
	header := c.headers() // before the handshake goes on and changes them
	if !c.t.run(func() { defer func() { <-c.answers }(); c.post(answer, header) }) {
		<-c.answers
	}
}
