package upstreamtest

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// stdioAddress names the environment variable that makes the test binary a server over stdio.
const stdioAddress = "UPSTREAMTEST_STDIO"

// FastExit spares a test binary under the race detector the second that it waits before it ends.
const FastExit = "GORACE=atexit_sleep_ms=0"

// crashed is the exit status of a server that died.
const crashed = 3

// Child is called first by the TestMain of a package that uses Stdio. In the child process it does not return.
func Child() {
	address := os.Getenv(stdioAddress)
	if address == "" {
		return
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		os.Exit(crashed)
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		os.Exit(0) // as a server should when its stdin ends
	}()
	_, _ = io.Copy(os.Stdout, conn)
	os.Exit(crashed)
}

// Stdio is a server over stdio until the test ends: a command with the variables it needs in its environment. The command is
// the test binary itself, which carries the lines to and from h. It is legacy or modern as the engine begins: its handshake takes
// any revision, and it answers server/discover.
func Stdio(t *testing.T, h Handler) (command string, env []string) {
	t.Helper()
	command, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { serveLines(t, conn, h) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return command, []string{stdioAddress + "=" + listener.Addr().String(), FastExit}
}

// A lines is one child's connection.
type lines struct {
	conn net.Conn
	mu   sync.Mutex // guards writes
}

// Send writes one line. A write that fails is the engine's leaving, which the handler sees as Canceled.
func (l *lines) Send(message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.conn, message+"\n")
}

// Part writes what is no whole line yet.
func (l *lines) Part(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.conn, text)
}

// Die ends the child.
func (l *lines) Die() { _ = l.conn.Close() }

// serveLines answers one child's lines until it ends, and then waits for its handlers.
func serveLines(t *testing.T, conn net.Conn, h Handler) {
	out := &lines{conn: conn}
	defer conn.Close()
	var handlers sync.WaitGroup
	defer handlers.Wait()
	running := make(map[string]chan struct{})
	defer func() {
		for _, canceled := range running {
			close(canceled)
		}
	}()
	revision := ""
	for in := bufio.NewReader(conn); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		m, err := wire.ParseRequest(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Errorf("the engine sent %q: %v", line, err)
			return
		}
		switch m.Method {
		case mcp.MethodInitialize:
			revision, _ = m.Params.String("protocolVersion")
			out.Send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"protocolVersion":"` + revision + `","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"scripted","version":"1"}}}`)
			continue
		case mcp.MethodDiscover:
			revision = mcp.Modern
			out.Send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + Discovered + `}`)
			continue
		case mcp.NotificationCancelled:
			id, _ := m.Params.Value("requestId")
			if canceled := running[string(id)]; canceled != nil {
				close(canceled)
				delete(running, string(id))
			}
			continue
		}
		if m.Kind != wire.Request {
			if revision == mcp.Modern {
				t.Errorf("the engine sent %s, and a modern client sends only requests and cancels", line)
			}
			continue
		}
		canceled := make(chan struct{})
		running[string(m.ID)] = canceled
		handlers.Go(func() {
			h(&Request{Message: m, Revision: revision, Canceled: canceled, Sender: out})
		})
	}
}
