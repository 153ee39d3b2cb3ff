package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// act writes the effect where it is due and reports how the call is to fail; "" is not at all.
func (e *effects) act(c effectCall) string {
	a := c.Params.Arguments
	if c.Method != "tools/call" {
		return ""
	}
	if a.Fault == "none" || a.When == "after" {
		note(e.file, a.ID)
	}
	if a.Fault == "none" {
		return ""
	}
	return a.Fault
}

// post answers one message over Streamable HTTP, of either era.
func (e *effects) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c, answer := answerEffects(body, e.modern)
	if answer == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if c.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", "one")
	}
	w.Header().Set("Content-Type", "application/json")
	switch e.act(c) {
	case "":
		fmt.Fprint(w, answer)
	case "die":
		e.server.die()
		panic(http.ErrAbortHandler)
	case "close":
		panic(http.ErrAbortHandler)
	case "hang":
		<-r.Context().Done()
	case "truncated":
		fmt.Fprint(w, answer[:len(answer)-2])
	case "status":
		w.WriteHeader(http.StatusInternalServerError)
	case "not-json":
		fmt.Fprint(w, "Internal error")
	case "half":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: message\ndata: "+answer[:len(answer)/2])
	}
}

// events opens a stream of HTTP+SSE.
func (e *effects) events(w http.ResponseWriter, r *http.Request) {
	out := make(chan string, 64)
	e.mu.Lock()
	id := fmt.Sprint(len(e.streams))
	e.streams[id] = out
	e.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: endpoint\ndata: /messages?id=%s\n\n", id)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case event, ok := <-out:
			if !ok {
				return
			}
			fmt.Fprint(w, event)
		case <-r.Context().Done():
			return
		}
	}
}

// message takes one message of HTTP+SSE, whose answer goes into the stream.
func (e *effects) message(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	e.mu.Lock()
	out := e.streams[r.URL.Query().Get("id")]
	e.mu.Unlock()
	c, answer := answerEffects(body, false)
	send := func(text string) {
		if text != "" {
			out <- text
		}
	}
	switch e.act(c) {
	case "":
		if answer != "" {
			send("event: message\ndata: " + answer + "\n\n")
		}
	case "die":
		e.server.die()
		panic(http.ErrAbortHandler)
	case "close":
		panic(http.ErrAbortHandler)
	case "truncated":
		send("event: message\ndata: " + answer[:len(answer)-2] + "\n\n")
	case "status":
		w.WriteHeader(http.StatusInternalServerError)
		return
	case "not-json":
		send("event: message\ndata: Internal error\n\n")
	case "half":
		send("event: message\ndata: " + answer[:len(answer)/2])
	}
	w.WriteHeader(http.StatusAccepted)
}

// webSocket serves one connection.
func (e *effects) webSocket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	ctx, cancel := context.WithCancel(e.life)
	defer cancel()
	for {
		_, frame, err := conn.Read(ctx)
		if err != nil {
			return
		}
		c, answer := answerEffects(frame, false)
		switch e.act(c) {
		case "":
		case "die":
			e.server.die()
			return
		case "close":
			return
		case "hang":
			continue
		case "truncated", "half":
			answer = answer[:len(answer)-2]
		case "status":
			_ = conn.Close(websocket.StatusInternalError, "Internal error")
			return
		case "not-json":
			answer = "Internal error"
		}
		if answer != "" && conn.Write(ctx, websocket.MessageText, []byte(answer)) != nil {
			return
		}
	}
}

// A flaky server can die and be back at the same address.
type flaky struct {
	URL     string
	ln      *net.TCPListener // kept through every death, so that nobody else gets the address
	handler http.Handler
	deaths  sync.Mutex // one at a time

	mu     sync.Mutex // guards all below
	server *http.Server
	conns  map[net.Conn]struct{}
	closed bool
	served sync.WaitGroup
}

// A lifetime is the listener of one server on an address that outlives it.
type lifetime struct {
	*net.TCPListener
	over atomic.Bool
}

func (l *lifetime) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	if err != nil && l.over.Load() {
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close lets an Accept that waits return, and keeps the address.
func (l *lifetime) Close() error {
	l.over.Store(true)
	return l.SetDeadline(time.Unix(1, 0))
}

func newFlaky(t *testing.T, handler http.Handler) *flaky {
	t.Helper()
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	f := &flaky{URL: "http://" + ln.Addr().String(), ln: ln, handler: handler, conns: map[net.Conn]struct{}{}}
	f.mu.Lock()
	f.serve()
	f.mu.Unlock()
	t.Cleanup(func() {
		f.deaths.Lock()
		defer f.deaths.Unlock()
		_ = f.server.Close()
		f.mu.Lock()
		f.closed = true
		f.drop()
		f.mu.Unlock()
		f.served.Wait()
		ln.Close()
	})
	return f
}

// serve must be called with mu held.
func (f *flaky) serve() {
	_ = f.ln.SetDeadline(time.Time{}) // it fails only where Accept does too
	f.server = &http.Server{Handler: f.handler, ConnState: func(conn net.Conn, state http.ConnState) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch state {
		case http.StateNew:
			f.conns[conn] = struct{}{}
		case http.StateClosed:
			delete(f.conns, conn)
		}
	}}
	server := f.server
	f.served.Go(func() { _ = server.Serve(&lifetime{TCPListener: f.ln}) })
}

// drop resets every connection, those that were hijacked as well. mu is held.
func (f *flaky) drop() {
	for conn := range f.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
	clear(f.conns)
}

// die ends all that the server does, as the death of its process would, and starts another at the same address.
func (f *flaky) die() {
	f.deaths.Lock()
	defer f.deaths.Unlock()
	f.mu.Lock()
	server, closed := f.server, f.closed
	f.mu.Unlock()
	if closed {
		return
	}
	_ = server.Close() // which waits for those who tell of new connections
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop()
	if !f.closed {
		f.serve()
	}
}
