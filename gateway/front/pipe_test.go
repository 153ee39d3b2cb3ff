package front

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
)

// onPipe serves f on one end of an in-memory connection and gives the other. It must run in a synctest bubble; end waits
// until nothing runs any more.
func onPipe(t *testing.T, cfg Config) (client net.Conn, f *Front, end func()) {
	cfg.Ring, cfg.ServerInfo = testRing(t), []byte(testInfo)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	f = New(cfg)
	client, server := net.Pipe()
	srv := &http.Server{Handler: f, BaseContext: f.BaseContext}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(&oneConn{conn: server, closed: make(chan struct{})}) }()
	return client, f, func() {
		f.Close(ErrShutdown)
		srv.Close()
		client.Close()
		<-served
	}
}

func rawPost(length int, body string) string {
	return "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\n" +
		"Mcp-Method: tools/call\r\nMcp-Name: x\r\nContent-Length: " + itoa(length) + "\r\n\r\n" + body
}

// oneConn is a listener with a single connection.
type oneConn struct {
	mu     sync.Mutex
	conn   net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	l.mu.Lock()
	conn := l.conn
	l.conn = nil
	l.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
