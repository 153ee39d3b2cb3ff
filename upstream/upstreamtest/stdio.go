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
	for text := make([]byte, 64<<10); err == nil; {
		var n int
		n, err = conn.Read(text)
		out, half := bytes.CutSuffix(text[:n], []byte(halfClosed))
		_, _ = os.Stdout.Write(out)
		if half {
			_ = os.Stdout.Close()
			select {} // until stdin ends
		}
	}
	os.Exit(crashed)
}

// halfClosed makes the child close its stdout, and go on to read.
const halfClosed = "\x04"

// Stdio is a server over stdio until the test ends: a command with the variables it needs in its environment. The command is
// the test binary itself, which carries the lines to and from h. It is legacy or modern as the engine begins: its handshake takes
// any revision, and it answers server/discover and takes listens for changes of its lists.
func Stdio(t *testing.T, h Handler) (command string, env []string) {
	t.Helper()
	return carried(t, accept(t, func(conn net.Conn) { serveLines(t, conn, h) }))
}

// carried is the command that carries its lines to and from the address.
func carried(t *testing.T, address string) (command string, env []string) {
	t.Helper()
	command, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return command, []string{stdioAddress + "=" + address, FastExit}
}

// accept serves connections until the test ends, and gives the address for them.
func accept(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
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
			running.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return listener.Addr().String()
}

// Mute runs a server that takes connections, the first of which closes taken, and never says a word. Its address is that of a
// socket.
func Mute(t *testing.T) (address string, taken <-chan struct{}) {
	t.Helper()
	heard := make(chan struct{})
	var once sync.Once
	return accept(t, func(conn net.Conn) {
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 1)) // what there is to take is the first message
		once.Do(func() { close(heard) })
		_, _ = io.Copy(io.Discard, conn)
	}), heard
}

// MuteStdio is Mute as a command.
func MuteStdio(t *testing.T) (command string, env []string, taken <-chan struct{}) {
	t.Helper()
	address, taken := Mute(t)
	command, env = carried(t, address)
	return command, env, taken
}

// A lines is one child's connection.
type lines struct {
	conn net.Conn
	open listens
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

// HalfClose closes the child's stdout.
func (l *lines) HalfClose() {
	l.Part(halfClosed)
	_ = l.conn.(*net.TCPConn).CloseWrite() // it fails where the child has gone
}

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
			out.Send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + announcing + `}`)
			continue
		case mcp.MethodListen:
			out.open.add(t, m, out.Send)
			continue
		case mcp.NotificationCancelled:
			id, _ := m.Params.Value("requestId")
			out.open.end(id)
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
			sender := Sender(out)
			if revision == mcp.Modern {
				sender = announcer{out, &out.open}
			}
			h(&Request{Message: m, Revision: revision, Canceled: canceled, Sender: sender})
		})
	}
}
