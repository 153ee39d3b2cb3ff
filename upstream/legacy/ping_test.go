package legacy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

// A pipeListener is a network of net.Pipe, so that time stands still while bytes travel.
type pipeListener struct {
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.gone:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.gone) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.gone:
		return nil, net.ErrClosed
	}
}

// inBubble runs test on an upstream whose server serves each of its sockets with serve.
func inBubble(t *testing.T, options websocket.AcceptOptions, serve func(*websocket.Conn), test func(t *testing.T, u *Upstream)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &pipeListener{conns: make(chan net.Conn), gone: make(chan struct{})}
		var running sync.WaitGroup
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running.Add(1)
			defer running.Done()
			ws, err := websocket.Accept(w, r, &options)
			if err != nil {
				t.Errorf("accept: %v", err)
				return
			}
			defer ws.CloseNow()
			serve(ws)
		})}
		running.Go(func() { _ = server.Serve(l) })
		u := New(Config{
			ID: "u", StartTimeout: time.Minute, ReconnectMin: time.Second, ReconnectMax: time.Second,
			Log:       slog.New(slog.NewTextHandler(io.Discard, nil)),
			WebSocket: &Remote{URL: &url.URL{Scheme: "ws", Host: "server"}, Transport: &http.Transport{DialContext: l.dial}},
		})
		u.Start()
		upstreamtest.Await(t, u, upstream.Live)
		test(t, u)
		if err := u.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		_ = server.Close()
		running.Wait()
	})
}

// answers reads what comes until the end, and answers initialize, and calls with after.
func answers(t *testing.T, ws *websocket.Conn, after func(r *upstreamtest.Request)) {
	p := newPeer(t, after, &socketSender{ws: ws})
	defer p.end()
	defer ws.CloseNow()
	for {
		_, text, err := ws.Read(context.Background())
		if err != nil {
			return
		}
		p.take(text)
	}
}

func TestASilentSocketIsPinged(t *testing.T) {
	var pings atomic.Int64
	options := websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool {
		pings.Add(1)
		return true
	}}
	inBubble(t, options, func(ws *websocket.Conn) { answers(t, ws, func(r *upstreamtest.Request) { r.Result("") }) }, func(t *testing.T, u *Upstream) {
		<-time.After(pingInterval - time.Second)
		if err := <-call(t.Context(), u, "any"); err != nil {
			t.Fatal(err)
		}
		<-time.After(pingInterval - time.Second) // it is not silent before that
		synctest.Wait()
		if got := pings.Load(); got != 0 {
			t.Errorf("%d pings of a connection that is used", got)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if got := pings.Load(); got < 119 || got > 121 {
			t.Errorf("%d pings in an hour", got)
		}
		if status, _ := u.Status(); status.Session != 1 || status.State != upstream.Live {
			t.Errorf("%+v", status)
		}
	})
}

// A server that blocks in a call answers no ping until it is through.
func TestAServerThatAnswersNoPing(t *testing.T) {
	options := websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool { return false }}
	serve := func(ws *websocket.Conn) {
		answers(t, ws, func(r *upstreamtest.Request) {
			<-time.After(10 * time.Minute)
			r.Result("")
		})
	}
	inBubble(t, options, serve, func(t *testing.T, u *Upstream) {
		if err := <-call(t.Context(), u, "long"); err != nil {
			t.Fatalf("a call was ended for want of a pong: %v", err)
		}
		status, changed := u.Status()
		if status.Session != 1 {
			t.Fatalf("session %d", status.Session)
		}
		<-changed
		status, _ = u.Status()
		if status.State != upstream.Backoff || !strings.Contains(status.Err.Error(), "has answered no ping for 30s") {
			t.Errorf("%+v", status)
		}
	})
}

// Close waits no longer than closeWait for a server that does not say goodbye, or that does not even read.
func TestCloseOfAServerThatDoesNotListen(t *testing.T) {
	serve := func(ws *websocket.Conn) {
		_, _, _ = ws.Read(context.Background())
		_ = ws.Write(context.Background(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`))
		_, _, _ = ws.Read(context.Background())
		<-time.After(time.Hour)
	}
	inBubble(t, websocket.AcceptOptions{}, serve, func(t *testing.T, u *Upstream) {
		stuck := call(t.Context(), u, "stuck")
		synctest.Wait()
		began := time.Now()
		for range 2 {
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > closeWait {
			t.Errorf("Close took %v", took)
		}
		wantError(t, <-stuck, upstream.NoResponse, upstream.ClosedByGateway)
	})
}

// A server that takes nothing for a minute has lost its connection, not one call.
func TestAServerThatDoesNotRead(t *testing.T) {
	serve := func(ws *websocket.Conn) {
		_, _, _ = ws.Read(context.Background())
		_ = ws.Write(context.Background(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`))
		_, _, _ = ws.Read(context.Background())
		<-time.After(time.Hour)
	}
	inBubble(t, websocket.AcceptOptions{}, serve, func(t *testing.T, u *Upstream) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := call(ctx, u, "first")
		synctest.Wait()
		second := call(t.Context(), u, "second")
		wantError(t, <-first, upstream.NoResponse, upstream.Deadline)
		if status, _ := u.Status(); status.State != upstream.Live {
			t.Fatalf("a deadline ended the connection: %+v", status)
		}
		err := <-second
		e, ok := errors.AsType[*upstream.Error](err)
		if !ok || e.Outcome != upstream.NotSent || !strings.Contains(err.Error(), "has not taken a message within 1m0s") {
			t.Errorf("error %v", err)
		}
	})
}
