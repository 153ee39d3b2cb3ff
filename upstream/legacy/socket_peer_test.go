package legacy

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"mcp-gateway/upstream/upstreamtest"
)

// onSockets runs a server whose connections each get their own serve.
func onSockets(t *testing.T, options websocket.AcceptOptions, serve func(*websocket.Conn, *http.Request)) string {
	t.Helper()
	var running sync.WaitGroup
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &options)
		if err != nil {
			t.Errorf("accept: %v", err)
			return
		}
		running.Add(1)
		defer running.Done()
		defer ws.CloseNow()
		ws.SetReadLimit(-1)
		serve(ws, r)
	}))
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, carrier{}, c) }
	s.Start()
	t.Cleanup(func() {
		s.Close()
		running.Wait()
	})
	return "ws" + strings.TrimPrefix(s.URL, "http") + "/mcp"
}

// carrier is what a request's context carries its connection under.
type carrier struct{}

// socketServer is a scripted server over WebSocket.
func socketServer(t *testing.T, h upstreamtest.Handler, protocols ...string) string {
	t.Helper()
	return onSockets(t, websocket.AcceptOptions{Subprotocols: protocols}, func(ws *websocket.Conn, r *http.Request) {
		p := newPeer(t, h, &socketSender{ws: ws, conn: r.Context().Value(carrier{}).(*net.TCPConn)})
		defer p.end()
		defer ws.CloseNow()
		for {
			_, text, err := ws.Read(context.Background())
			if err != nil {
				return
			}
			p.take(text)
		}
	})
}

// A socketSender is a server's end of a socket.
type socketSender struct {
	ws   *websocket.Conn
	conn *net.TCPConn   // below it
	mu   sync.Mutex     // guards w
	w    io.WriteCloser // of a message in parts
}

// Send writes one text message. A write that fails is the engine's leaving, which the handler sees as Canceled.
func (s *socketSender) Send(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w != nil {
		_, _ = io.WriteString(s.w, message)
		_ = s.w.Close()
		s.w = nil
		return
	}
	_ = s.ws.Write(context.Background(), websocket.MessageText, []byte(message))
}

// Part writes a fragment. The ping after it takes it out of the buffer.
func (s *socketSender) Part(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w == nil {
		w, err := s.ws.Writer(context.Background(), websocket.MessageText)
		if err != nil {
			return // as of Send
		}
		s.w = w
	}
	_, _ = io.WriteString(s.w, text)
	_ = s.ws.Ping(context.Background())
}

// Die cuts the connection.
func (s *socketSender) Die() { _ = s.ws.CloseNow() }

// HalfClose ends the server's direction of the connection.
func (s *socketSender) HalfClose() { _ = s.conn.CloseWrite() }
