package legacy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/exchange"
	"mcp-gateway/upstream/internal/link"
	"mcp-gateway/upstream/internal/pipe"
)

const (
	maxMessage   = 32 << 20
	messageEnds  = 512              // what is kept of each end of a larger one
	pingInterval = 30 * time.Second // of silence
	pongWait     = 30 * time.Second
	writeWait    = time.Minute // for a server to take one message
	closeWait    = 2 * time.Second
)

// webSocket is the transport to a server that speaks in text frames, one message each. No revision defines it; it is stdio in other
// clothes.
type webSocket struct {
	u   *Upstream
	cfg Remote
}

func (w *webSocket) toModern() string {
	return "no setting makes the gateway speak that over WebSocket: set the server's http `url` in place of this one"
}

// open makes the upgrade.
func (w *webSocket) open(ctx context.Context) (conn, error) {
	target := *w.cfg.URL
	target.Scheme = "http"
	if w.cfg.URL.Scheme == "wss" {
		target.Scheme = "https"
	}
	header := w.cfg.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if user := target.User; user != nil {
		password, _ := user.Password()
		basic := http.Request{Header: header}
		basic.SetBasicAuth(user.Username(), password)
		target.User = nil
	}
	client := exchange.New(exchange.Config{
		URL: &target, Credential: w.cfg.Credential, Transport: w.cfg.Transport, Log: w.u.cfg.Log,
	})
	ws, err := w.upgrade(ctx, client, header)
	if err != nil {
		client.Close()
		return nil, err
	}
	s := &socket{u: w.u, ws: ws, client: client, began: time.Now()}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.pinging.Go(s.ping)
	return &socketConn{w.u.pipe(s), s}, nil
}

// upgrade opens the connection by way of client, so that credential, redirects and refusals are those of all HTTP.
func (w *webSocket) upgrade(ctx context.Context, client *exchange.Client, header http.Header) (*websocket.Conn, error) {
	var refused error
	ws, _, err := websocket.Dial(ctx, w.cfg.URL.Scheme+"://"+w.cfg.URL.Host, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (resp *http.Response, err error) {
			resp, refused = client.Open(r.Context(), r.Header)
			if refused == nil && resp.StatusCode != http.StatusSwitchingProtocols {
				_ = resp.Body.Close()
				refused = fmt.Errorf("the server answered with HTTP %d, not 101: it speaks no WebSocket at this url", resp.StatusCode)
				resp = nil
			}
			return resp, refused
		})},
		HTTPHeader: header, Subprotocols: []string{"mcp"},
	})
	switch {
	case refused != nil:
		return nil, refusal("upgrade", refused)
	case err != nil: // it quotes the server's headers
		return nil, errors.New("upgrade: " + w.u.quote(err.Error()))
	}
	ws.SetReadLimit(-1) // larger messages are passed over, not kept
	return ws, nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// refusal explains a step of the connect that failed. A refused credential is for a person to change.
func refusal(step string, err error) error {
	if e, ok := errors.AsType[*upstream.Error](err); ok && e.Cause == upstream.Refused {
		return &link.RefusedError{Err: fmt.Errorf("%s: check the credential: %w", step, err)}
	}
	return fmt.Errorf("%s: %w", step, err)
}

// A socketConn is the connection over one socket.
type socketConn struct {
	piped
	s *socket
}

func (c *socketConn) Call(ctx context.Context, req *upstream.Request) (*wire.Message, error) {
	c.s.calls.Add(1)
	defer c.s.calls.Add(-1)
	return c.piped.Call(ctx, req)
}

// A socket carries frames over a WebSocket. The library closes it whenever a context ends, so that no call's may reach it.
type socket struct {
	u      *Upstream
	ws     *websocket.Conn
	client *exchange.Client // holds the connection below
	life   context.Context
	end    context.CancelCauseFunc

	calls   atomic.Int64 // in flight
	began   time.Time
	heard   atomic.Int64 // when the server last said something, in ns since began
	said    atomic.Int64 // when something was last said to it
	ended   atomic.Bool  // nothing written from here on leaves the gateway
	binary  bool         // a binary frame was dropped, and that was logged; only Read touches it
	closing sync.Once
	pinging sync.WaitGroup
}

var _ pipe.Frames = (*socket)(nil)

// Read gives the next text message. Binary ones are no messages of MCP's, and are passed over.
func (s *socket) Read() ([]byte, error) {
	for {
		kind, r, err := s.ws.Reader(s.life)
		if err != nil {
			return nil, s.over(err)
		}
		if kind != websocket.MessageText {
			if !s.binary {
				s.binary = true
				s.u.cfg.Log.Warn("server sends binary frames, which are dropped", "upstream", s.u.cfg.ID)
			}
			if _, err := io.Copy(io.Discard, s.heed(r)); err != nil {
				return nil, s.over(err)
			}
			continue
		}
		frame, err := takeMessage(s.heed(r))
		if _, skipped := errors.AsType[*pipe.SkippedError](err); err != nil && !skipped {
			err = s.over(err)
		}
		return frame, err
	}
}

// takeMessage reads one message. Of one that is too large it keeps both ends.
func takeMessage(r io.Reader) ([]byte, error) {
	var text bytes.Buffer
	if _, err := text.ReadFrom(io.LimitReader(r, maxMessage+1)); err != nil {
		return nil, err
	}
	if text.Len() <= maxMessage {
		return text.Bytes(), nil
	}
	head := bytes.Clone(text.Bytes()[:messageEnds])
	tail := lastBytes(bytes.Clone(text.Bytes()[text.Len()-messageEnds:]))
	text = bytes.Buffer{}
	if _, err := io.Copy(&tail, r); err != nil {
		return nil, err
	}
	return nil, &pipe.SkippedError{Err: fmt.Errorf("a frame is over %d MiB", maxMessage>>20), Head: head, Tail: tail}
}

// lastBytes keeps the end of what is written to it.
type lastBytes []byte

func (b *lastBytes) Write(p []byte) (int, error) {
	*b = append(*b, p[max(0, len(p)-messageEnds):]...)
	*b = append((*b)[:0], (*b)[max(0, len(*b)-messageEnds):]...)
	return len(p), nil
}

// heed notes that the server is heard while r is read.
func (s *socket) heed(r io.Reader) io.Reader { return heeded{s, r} }

type heeded struct {
	s *socket
	r io.Reader
}

func (h heeded) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.s.heard.Store(int64(time.Since(h.s.began)))
	return n, err
}

// over says why nothing more can be read.
func (s *socket) over(err error) error {
	s.ended.Store(true)
	if cause := context.Cause(s.life); cause != nil {
		return cause
	}
	if closed, ok := errors.AsType[websocket.CloseError](err); ok {
		if closed.Reason == "" {
			return fmt.Errorf("the server closed the connection with code %d", closed.Code)
		}
		return fmt.Errorf("the server closed the connection with code %d: %s", closed.Code, s.u.quote(closed.Reason))
	}
	return err
}

// Write sends one message. Once it has begun, what of it has gone out cannot be known.
func (s *socket) Write(frame []byte) (int, error) {
	if s.ended.Load() {
		return 0, fmt.Errorf("write to the server: %w", net.ErrClosed)
	}
	timer := time.AfterFunc(writeWait, func() { s.end(fmt.Errorf("the server has not taken a message within %v", writeWait)) })
	defer timer.Stop()
	if err := s.ws.Write(context.Background(), websocket.MessageText, frame); err != nil {
		if cause := context.Cause(s.life); cause != nil {
			err = cause
		}
		return 1, fmt.Errorf("write to the server: %w", err)
	}
	s.said.Store(int64(time.Since(s.began)))
	return len(frame), nil
}

// ping keeps a silent connection open, and ends one whose server has gone without a word. A server that has a call may be too busy to
// answer, so that it is not ended for that.
func (s *socket) ping() {
	timer := time.NewTimer(pingInterval)
	defer timer.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-timer.C:
		}
		last := time.Duration(max(s.heard.Load(), s.said.Load()))
		if silent := time.Since(s.began) - last; silent < pingInterval {
			timer.Reset(pingInterval - silent)
			continue
		}
		ctx, cancel := context.WithTimeout(s.life, pongWait)
		err := s.ws.Ping(ctx)
		cancel()
		now := time.Since(s.began)
		switch {
		case err == nil:
			s.heard.Store(int64(now))
		case s.calls.Load() == 0 && now-time.Duration(s.heard.Load()) >= pongWait:
			s.end(fmt.Errorf("the server has answered no ping for %v", pongWait))
			return
		}
		timer.Reset(pingInterval)
	}
}

// Close says goodbye, waits a moment for the server's answer, and drops the connection.
func (s *socket) Close() error {
	s.closing.Do(func() {
		s.ended.Store(true)
		timer := time.AfterFunc(closeWait, s.drop)
		_ = s.ws.Close(websocket.StatusNormalClosure, "") // however it goes, the connection is dropped next
		timer.Stop()
		s.drop()
		s.pinging.Wait()
	})
	return nil
}

func (s *socket) drop() {
	s.end(net.ErrClosed)
	s.client.Close()
}
