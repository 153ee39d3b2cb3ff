package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// maxRequest bounds what a backend reads of one request.
const maxRequest = 8 << 20

// A server is the backend over Streamable HTTP: revision 2026-07-28 on connections that it reads itself, since net/http
// would cost more than what is measured.
type server struct {
	answers atomic.Pointer[answers]
	tools   atomic.Int64 // beside those that can be called

	mu        sync.Mutex          // guards the rest
	listeners map[net.Conn]string // what each stream's subscription is called
}

// backend is a role: it serves at any path, on the address of -listen, until ctx ends.
func backend(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("backend", flag.ContinueOnError)
	address := flags.String("listen", "127.0.0.1:0", "the address")
	tools := flags.Int64("tools", 0, "how many tools it has beside those that can be called; a SIGUSR1 adds one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	s := &server{listeners: map[net.Conn]string{}}
	s.tools.Store(*tools)
	s.answers.Store(newAnswers(true, int(*tools)))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
			s.change()
		}
	}()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	ready(ln.Addr().String())
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		go s.serve(conn)
	}
}

// serve answers one connection until it ends.
func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 64<<10)
	var body, out, head []byte
	for {
		post, length, err := readHead(in)
		if err != nil {
			return
		}
		if length < 0 || length > maxRequest {
			fmt.Fprint(conn, "HTTP/1.1 411 Length Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			return
		}
		if cap(body) < length {
			body = make([]byte, length)
		}
		body = body[:length]
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		if !post {
			if _, err := io.WriteString(conn, "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"); err != nil {
				return
			}
			continue
		}
		m := readMessage(body)
		switch {
		case m.id == nil:
			_, err = io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
		case string(m.name) == "notify":
			out, err = s.notify(conn, out, &m)
		case string(m.method) == "subscriptions/listen":
			s.listen(conn, in, &m)
			return
		case string(m.name) == "hang":
			_, _ = in.Peek(1) // until the client gives up
			return
		default:
			var rest []byte
			head, rest = s.answers.Load().reply(head[:0], &m)
			out = append(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
			out = append(strconv.AppendInt(out, int64(len(head)+len(rest)), 10), "\r\n\r\n"...)
			err = write(conn, append(out, head...), rest)
		}
		if err != nil {
			return
		}
	}
}

func write(conn net.Conn, head, rest []byte) error {
	if rest == nil {
		_, err := conn.Write(head)
		return err
	}
	both := net.Buffers{head, rest}
	_, err := both.WriteTo(conn)
	return err
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"

// notify sends each event as it would happen, in a write of its own.
func (s *server) notify(conn net.Conn, out []byte, m *message) ([]byte, error) {
	var event []byte
	for i := 1; i <= notifications; i++ {
		out = out[:0]
		if i == 1 {
			out = append(out, streamHead...)
		}
		event = progress(event[:0], m, i)
		if m.token == nil {
			event = append(event[:0], `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"still at it"}}`...)
		}
		out = appendEvent(out, event)
		if _, err := conn.Write(out); err != nil {
			return out, err
		}
	}
	event, _ = s.answers.Load().reply(event[:0], m)
	out = append(appendEvent(out[:0], event), "0\r\n\r\n"...)
	_, err := conn.Write(out)
	return out, err
}

// appendEvent appends one event as a chunk.
func appendEvent(out, data []byte) []byte {
	const before, after = "event: message\ndata: ", "\n\n"
	out = strconv.AppendInt(out, int64(len(before)+len(data)+len(after)), 16)
	out = append(append(append(out, "\r\n"...), before...), data...)
	return append(append(out, after...), "\r\n"...)
}

// listen acknowledges a subscription and holds its stream until the connection ends.
func (s *server) listen(conn net.Conn, in *bufio.Reader, m *message) {
	first := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},`+
		`"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, m.id)
	s.mu.Lock()
	_, err := conn.Write(appendEvent([]byte(streamHead), first))
	s.listeners[conn] = string(m.id)
	s.mu.Unlock()
	if err == nil {
		_, _ = in.Peek(1)
	}
	s.mu.Lock()
	delete(s.listeners, conn)
	s.mu.Unlock()
}

// change adds a tool and says so on every stream.
func (s *server) change() {
	s.answers.Store(newAnswers(true, int(s.tools.Add(1))))
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn, id := range s.listeners {
		event := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, id)
		_, _ = conn.Write(appendEvent(nil, event)) // who has gone is not told
	}
}

var errLongHead = errors.New("a header line is too long")

// readHead reads the head of a request, and whether that is a POST. The length is -1 where the body is chunked, and 0 without a body.
func readHead(in *bufio.Reader) (post bool, length int, err error) {
	line, err := headLine(in)
	if err != nil {
		return false, 0, err
	}
	post = bytes.HasPrefix(line, []byte("POST "))
	for {
		line, err := headLine(in)
		if err != nil {
			return false, 0, err
		}
		if len(line) == 0 {
			return post, length, nil
		}
		if value, is := header(line, "content-length"); is {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return false, 0, err
			}
		} else if _, is := header(line, "transfer-encoding"); is {
			length = -1
		}
	}
}

// headLine is one line without its end, valid until the next read.
func headLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errLongHead
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// header is the value of a header line if it has that name, given in lower case.
func header(line []byte, name string) ([]byte, bool) {
	if len(line) <= len(name) || line[len(name)] != ':' || !bytes.EqualFold(line[:len(name)], []byte(name)) {
		return nil, false
	}
	return bytes.TrimSpace(line[len(name)+1:]), true
}

// stdioBackend is a role: the same tools over stdio, for a client that shakes hands, until its input ends.
func stdioBackend(context.Context, []string) error {
	a := newAnswers(false, 0)
	in, out := bufio.NewReaderSize(os.Stdin, maxRequest), bufio.NewWriterSize(os.Stdout, 64<<10)
	var head, rest []byte
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		m := readMessage(line)
		if m.id == nil || m.method == nil {
			continue
		}
		if string(m.name) == "notify" && m.token != nil {
			for i := 1; i <= notifications; i++ {
				head = append(progress(head[:0], &m, i), '\n')
				_, _ = out.Write(head)
			}
		}
		head, rest = a.reply(head[:0], &m)
		_, _ = out.Write(head)
		_, _ = out.Write(rest)
		_ = out.WriteByte('\n')
		// A writer keeps its first error.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}
