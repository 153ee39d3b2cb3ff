package exchange

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/upstream"
)

const okReply = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 45\r\n\r\n" + ours

func TestNothingIsSent(t *testing.T) { eachTransport(t, testNothingIsSent) }

func testNothingIsSent(t *testing.T, newClient maker) {
	plain := serve(t, answer(200, jsonType, ours))
	untrusted := httptest.NewTLSServer(answer(200, jsonType, ours))
	untrusted.Config.ErrorLog = quiet()
	t.Cleanup(untrusted.Close)
	gone := serveRaw(t, func(int64, *net.TCPConn) {})
	_ = gone.Close()

	for _, test := range []struct {
		name, url string
		dialer    func(context.Context, string, string) (net.Conn, error)
	}{
		{"refused", gone.url(), nil},
		{"no such host", "http://no-such-host.invalid/mcp", func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "no-such-host.invalid", IsNotFound: true}
		}},
		{"certificate of nobody we trust", untrusted.URL, nil},
		{"TLS against plain HTTP", "https" + strings.TrimPrefix(plain.URL, "http"), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newClient(t, test.url)
			if test.dialer != nil {
				c.dialer = test.dialer
			}
			_, err := c.Do(t.Context(), request())
			want(t, err, upstream.NotSent, upstream.Unreachable, 0)
		})
	}
}

func TestConnectionIsLost(t *testing.T) { eachTransport(t, testConnectionIsLost) }

func testConnectionIsLost(t *testing.T, newClient maker) {
	for _, test := range []struct {
		name   string
		script func(c *net.TCPConn, r *bufio.Reader)
		status int
	}{
		{"reset while the request comes", func(c *net.TCPConn, r *bufio.Reader) {
			_, _ = r.ReadByte()
			_ = c.SetLinger(0)
		}, 0},
		{"closed after the request", func(_ *net.TCPConn, r *bufio.Reader) { readRequest(t, r) }, 0},
		{"reset after the request", func(c *net.TCPConn, r *bufio.Reader) {
			readRequest(t, r)
			_ = c.SetLinger(0)
		}, 0},
		{"no HTTP", func(c *net.TCPConn, r *bufio.Reader) {
			readRequest(t, r)
			_, _ = c.Write([]byte("SSH-2.0-OpenSSH\r\n"))
		}, 0},
		{"half a body", func(c *net.TCPConn, r *bufio.Reader) {
			readRequest(t, r)
			_, _ = c.Write([]byte(okReply[:len(okReply)-9]))
		}, 200},
		{"half a chunked body", func(c *net.TCPConn, r *bufio.Reader) {
			readRequest(t, r)
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2d\r\n" + ours + "\r\n"))
		}, 200},
		{"half a stream", func(c *net.TCPConn, r *bufio.Reader) {
			readRequest(t, r)
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata: \r\n"))
		}, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serveRaw(t, func(_ int64, c *net.TCPConn) { test.script(c, bufio.NewReader(c)) })
			_, err := newClient(t, s.url()).Do(t.Context(), request())
			want(t, err, upstream.NoResponse, upstream.ConnectionLost, test.status)
			if n := s.accepted.Load(); n != 1 {
				t.Errorf("the server saw %d connections, want one delivery", n)
			}
		})
	}
}

// A net/http that sent a POST again by itself would be seen here: the kept connection is closed after the second request
// was read, without an answer, which is when a replayable request goes out once more.
func TestOneDeliveryPerCall(t *testing.T) { eachTransport(t, testOneDeliveryPerCall) }

func testOneDeliveryPerCall(t *testing.T, newClient maker) {
	s := serveRaw(t, func(_ int64, c *net.TCPConn) {
		r := bufio.NewReader(c)
		readRequest(t, r)
		_, _ = c.Write([]byte(okReply))
		readRequest(t, r)
	})
	c := newClient(t, s.url())
	if _, err := c.Do(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	_, err := c.Do(t.Context(), request())
	want(t, err, upstream.NoResponse, upstream.ConnectionLost, 0)
	if n := s.accepted.Load(); n != 1 {
		t.Errorf("the server saw %d connections: the request was sent again", n)
	}
}

// A stuck is a connection whose writes fail once it is told so, at byte 0.
type stuck struct {
	net.Conn
	fails chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	select {
	case <-s.fails:
		return 0, errors.New("broken pipe")
	default:
		return s.Conn.Write(p)
	}
}

func TestStaleConnectionIsDialedAgainOnce(t *testing.T) {
	eachTransport(t, testStaleConnectionIsDialedAgainOnce)
}

func testStaleConnectionIsDialedAgainOnce(t *testing.T, newClient maker) {
	s := serve(t, answer(200, jsonType, ours))
	for _, healed := range []bool{true, false} {
		t.Run(fmt.Sprintf("healed=%v", healed), func(t *testing.T) {
			c := newClient(t, s.URL)
			dialed, broken := 0, make(chan struct{})
			c.dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
				dialed++
				raw, err := new(net.Dialer).DialContext(ctx, network, address)
				if dialed > 1 && healed {
					return raw, err
				}
				return &stuck{raw, broken}, err
			}
			if _, err := c.Do(t.Context(), request()); err != nil {
				t.Fatal(err)
			}
			close(broken)
			_, err := c.Do(t.Context(), request())
			if healed && err != nil {
				t.Fatal(err)
			}
			if !healed {
				want(t, err, upstream.NotSent, upstream.WriteFailed, 0)
			}
			if dialed != 2 {
				t.Errorf("dialed %d times, want 2", dialed)
			}
		})
	}
}

// Where one kept connection is stale the others may be as well.
func TestNoOtherKeptConnectionIsTriedAfterAStaleOne(t *testing.T) {
	eachTransport(t, testNoOtherKeptConnectionIsTriedAfterAStaleOne)
}

func testNoOtherKeptConnectionIsTriedAfterAStaleOne(t *testing.T, newClient maker) {
	both := make(chan struct{})
	var arrived atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == 2 {
			close(both)
		}
		<-both
		answer(200, jsonType, ours)(w, r)
	})
	c := newClient(t, s.URL)
	var dialed atomic.Int64
	broken := make(chan struct{})
	c.dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := new(net.Dialer).DialContext(ctx, network, address)
		if dialed.Add(1) > 2 {
			return raw, err
		}
		return &stuck{raw, broken}, err
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if _, err := c.Do(t.Context(), request()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(broken)
	if _, err := c.Do(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
}

// alwaysStale gives each request a kept connection that takes nothing.
type alwaysStale struct{ attempts int }

func (s *alwaysStale) RoundTrip(r *http.Request) (*http.Response, error) {
	s.attempts++
	near, far := net.Pipe()
	_ = far.Close()
	kept := &conn{Conn: near}
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: kept, Reused: true})
	_, err := kept.Write([]byte("POST"))
	return nil, err
}

func TestStaleConnectionsAreTriedTwiceAtMost(t *testing.T) {
	stale := new(alwaysStale)
	c := newClient(t, "http://server", func(cfg *Config) { cfg.Transport = stale })
	_, err := c.Do(t.Context(), request())
	want(t, err, upstream.NotSent, upstream.WriteFailed, 0)
	if stale.attempts != 2 {
		t.Errorf("%d attempts, want 2", stale.attempts)
	}
}

func TestFreshConnectionThatTakesNothingIsNotDialedAgain(t *testing.T) {
	eachTransport(t, testFreshConnectionThatTakesNothingIsNotDialedAgain)
}

func testFreshConnectionThatTakesNothingIsNotDialedAgain(t *testing.T, newClient maker) {
	c := newClient(t, serve(t, answer(200, jsonType, ours)).URL)
	dialed, broken := 0, make(chan struct{})
	close(broken)
	c.dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed++
		raw, err := new(net.Dialer).DialContext(ctx, network, address)
		return &stuck{raw, broken}, err
	}
	_, err := c.Do(t.Context(), request())
	want(t, err, upstream.NotSent, upstream.WriteFailed, 0)
	if dialed != 1 {
		t.Errorf("dialed %d times, want 1", dialed)
	}
}

// Two writes would let a connection that closes between them turn "not sent" into "may have run".
func TestRequestIsOneWrite(t *testing.T) { eachTransport(t, testRequestIsOneWrite) }

func testRequestIsOneWrite(t *testing.T, newClient maker) {
	c := newClient(t, serve(t, answer(200, jsonType, ours)).URL)
	var writes atomic.Int64
	c.dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := new(net.Dialer).DialContext(ctx, network, address)
		return &counted{raw, &writes}, err
	}
	if _, err := c.Do(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if n := writes.Load(); n != 1 {
		t.Errorf("the request was written in %d pieces", n)
	}
}

type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func TestWithdrawnLegIsNeverWritten(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := &conn{Conn: ours, client: New(Config{URL: newClient(t, "http://h").cfg.URL})}
	l := new(leg)
	c.leg.Store(l)
	if !l.withdraw() {
		t.Fatal("a leg that wrote nothing cannot be withdrawn")
	}
	if n, err := c.Write([]byte("late")); n != 0 || !errors.Is(err, errWithdrawn) {
		t.Errorf("Write = %d, %v after the leg was withdrawn", n, err)
	}
	_ = c.Close()
}

func TestPartlyWrittenIsNotWithdrawn(t *testing.T) {
	ours, theirs := net.Pipe()
	c := &conn{Conn: ours, client: New(Config{URL: newClient(t, "http://h").cfg.URL})}
	l := new(leg)
	c.leg.Store(l)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = theirs.Read(make([]byte, 1))
		_ = theirs.Close()
	})
	if n, err := c.Write([]byte("two")); n != 1 || err == nil {
		t.Errorf("Write = %d, %v, want one byte and an error", n, err)
	}
	wg.Wait()
	if l.withdraw() {
		t.Error("a leg that wrote a byte was withdrawn")
	}
	_ = c.Close()
}

func TestHTTP2CountsAsSentFromTheStart(t *testing.T) {
	s := httptest.NewUnstartedServer(answer(200, jsonType, ours))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := newClient(t, s.URL)
	c.transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	var protocol string
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol = r.Proto
		if r.Header.Get("Fail") != "" {
			panic(http.ErrAbortHandler)
		}
		answer(200, jsonType, ours)(w, r)
	})
	if _, err := c.Do(t.Context(), request()); err != nil || protocol != "HTTP/2.0" {
		t.Fatalf("error %v over %s", err, protocol)
	}
	req := request()
	req.Header.Set("Fail", "1")
	_, err := c.Do(t.Context(), req)
	want(t, err, upstream.NoResponse, upstream.ConnectionLost, 0)

	shared, err := c.dial(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	secured := tls.Client(shared, &tls.Config{
		RootCAs: c.transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com", NextProtos: []string{"h2"},
	})
	defer secured.Close()
	if err := secured.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := new(leg)
	l.gotConn(httptrace.GotConnInfo{Conn: secured})
	if l.withdraw() {
		t.Error("a leg on a shared connection was withdrawn, which would end what others write there")
	}
}

func TestIdleConnectionsCloseBeforeServersDo(t *testing.T) {
	eachTransport(t, testIdleConnectionsCloseBeforeServersDo)
}

func testIdleConnectionsCloseBeforeServersDo(t *testing.T, newClient maker) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://server")
		closed := make(chan time.Duration, 1)
		c.dialer = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				r := bufio.NewReader(far)
				readRequest(t, r)
				_, _ = io.WriteString(far, okReply)
				idle := time.Now()
				_, _ = r.ReadByte()
				closed <- time.Since(idle)
			}()
			return near, nil
		}
		if _, err := c.Do(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		if after := <-closed; after != idleTimeout {
			t.Errorf("the idle connection was closed after %v", after)
		}
	})
}
