package exchange

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/upstream"
)

// A request on a connection that the server has closed, or spoken on, would be lost without a proof that it did not run.
func TestOnlyQuietConnectionsAreUsedAgain(t *testing.T) {
	for _, test := range []struct {
		name        string
		between     func(c *net.TCPConn)
		connections int64
	}{
		{"open", func(*net.TCPConn) {}, 1},
		{"closed", func(c *net.TCPConn) { _ = c.Close() }, 2},
		{"half closed", func(c *net.TCPConn) { _ = c.CloseWrite() }, 2},
		{"reset", func(c *net.TCPConn) {
			_ = c.SetLinger(0)
			_ = c.Close()
		}, 2},
		{"spoken on", func(c *net.TCPConn) {
			_, _ = io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
		}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			proceed, done := make(chan struct{}), make(chan struct{})
			requests := make(chan int64, 4)
			s := serveRaw(t, func(n int64, c *net.TCPConn) {
				r := bufio.NewReader(c)
				for readRequest(t, r) {
					requests <- n
					_, _ = io.WriteString(c, okReply)
					if len(requests) == 1 {
						<-proceed
						test.between(c)
						close(done)
					}
				}
			})
			c := newClient(t, s.url())
			if _, err := c.Do(t.Context(), request()); err != nil {
				t.Fatal(err)
			}
			close(proceed)
			<-done
			if _, err := c.Do(t.Context(), request()); err != nil {
				t.Fatal(err)
			}
			if n := s.accepted.Load(); n != test.connections || len(requests) != 2 {
				t.Errorf("%d requests on %d connections, want 2 on %d", len(requests), n, test.connections)
			}
		})
	}
}

func TestResponsesAsServersWriteThem(t *testing.T) {
	const hint = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
	for _, test := range []struct {
		name, reply string
		ok          bool
		connections int64 // for two requests
	}{
		{"plain", okReply, true, 1},
		{"more than was announced", okReply + "{}", true, 2},
		{"to be closed", strings.Replace(okReply, "\r\n", "\r\nConnection: close\r\n", 1), true, 2},
		{"HTTP/1.0 with a length", strings.Replace(okReply, "1.1", "1.0", 1), true, 2},
		{"HTTP/1.0 to its end", "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + ours, true, 2},
		{"chunked with a trailer", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(ours) + "0\r\nX-Sum: 1\r\n\r\n", true, 1},
		{"early hints", hint + hint + okReply, true, 1},
		{"nothing but hints", strings.Repeat(hint, maxInformational+1) + okReply, false, 2},
		{"another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", false, 2},
		{"a header near its bound", strings.Replace(okReply, "\r\n", "\r\nX-Long: "+strings.Repeat("x", maxHeader-200)+"\r\n", 1), true, 1},
		{"a header over its bound", strings.Replace(okReply, "\r\n", "\r\nX-Long: "+strings.Repeat("x", 2*maxHeader)+"\r\n", 1), false, 2},
		{"a header without end", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", maxHeader), false, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serveRaw(t, func(_ int64, c *net.TCPConn) {
				r := bufio.NewReader(c)
				for readRequest(t, r) {
					if _, err := io.WriteString(c, test.reply); err != nil {
						return
					}
					if strings.HasPrefix(test.reply, "HTTP/1.0") {
						return
					}
				}
			})
			c := newClient(t, s.url())
			for range 2 {
				reply, err := c.Do(t.Context(), request())
				if !test.ok {
					want(t, err, upstream.NoResponse, upstream.ConnectionLost, 0)
				} else if err != nil || string(reply.Result.Raw()) != `{"ok":true}` {
					t.Fatalf("%v, %v", reply, err)
				}
			}
			if n := s.accepted.Load(); n != test.connections {
				t.Errorf("%d connections, want %d", n, test.connections)
			}
		})
	}
}

// A server may answer a large request before it has read it, and read nothing more.
func TestAnswerBeforeTheRequestIsRead(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	answered := make(chan struct{})
	s := serveRaw(t, func(_ int64, c *net.TCPConn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
		<-answered
	})
	defer close(answered)
	defer cancel()
	for _, size := range []int{maxDirect / 2, 8 << 20} {
		req := request()
		req.Body = append(req.Body, bytes.Repeat([]byte(" "), size)...)
		_, err := newClient(t, s.url()).Do(ctx, req)
		want(t, err, upstream.NoResponse, upstream.HTTPError, 413)
	}
}

func TestNoHeaderThatCannotBeSentIsSent(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
	for _, value := range []string{"a\x01", "a\r\nX: y", "a\n", "\x7f"} {
		req := request()
		req.Header["X-Odd"] = []string{value}
		_, err := newClient(t, s.URL).Do(t.Context(), req)
		if e := want(t, err, upstream.NotSent, upstream.Unreachable, 0); !strings.Contains(e.Error(), "X-Odd") || strings.Contains(e.Error(), value) {
			t.Errorf("the error for %q is %v", value, e)
		}
	}
	for _, name := range []string{"", "A:B", "A B", "A\r\nB", "\u00fc"} {
		req := request()
		req.Header[name] = []string{"x"}
		_, err := newClient(t, s.URL).Do(t.Context(), req)
		want(t, err, upstream.NotSent, upstream.Unreachable, 0)
	}
}

func TestKeptConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://server")
		arrived, proceed := make(chan struct{}), make(chan struct{})
		end := pipes(c, func(_ int64, r *bufio.Reader, far net.Conn) {
			for readRequest(t, r) {
				arrived <- struct{}{}
				<-proceed
				_, _ = io.WriteString(far, okReply)
			}
		})
		defer end()
		done := make(chan error)
		for range maxKept + 3 {
			go func() {
				_, err := c.Do(t.Context(), request())
				done <- err
			}()
		}
		for range maxKept + 3 {
			<-arrived
		}
		close(proceed)
		for range maxKept + 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := connections(c); n != maxKept {
			t.Errorf("%d connections are kept, want %d", n, maxKept)
		}
	})
}

func TestWhatGoesOverOwnConnections(t *testing.T) {
	t.Setenv("HTTP_PROXY", "")
	for address, want := range map[string]string{
		"http://server/mcp":           "server:80",
		"http://server:8080/mcp":      "server:8080",
		"http://[::1]/mcp":            "[::1]:80",
		"http://[::1]:8080/mcp":       "[::1]:8080",
		"https://server/mcp":          "",
		"http://[fe80::1%25eth0]/":    "",
		"http://b\u00fccher.example/": "",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := newClient(t, address).address; got != want {
			t.Errorf("%s: %q, want %q", u, got, want)
		}
	}
}

// What is read of a body after its end, or after its Close, is not the next response's.
func TestBodyEnds(t *testing.T) {
	c := newClient(t, serve(t, answer(200, jsonType, ours)).URL)
	get := func() *http.Response {
		req := request()
		resp, err := c.accepted(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	whole, cut := get(), get()
	if text, err := io.ReadAll(whole.Body); string(text) != ours || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	if n, err := whole.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d, %v", n, err)
	}
	for range 2 {
		if err := cut.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if n, err := cut.Body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose {
		t.Errorf("after Close: %d, %v", n, err)
	}
	if n := connections(c); n != 1 {
		t.Errorf("%d connections are kept, want the one whose body has been read", n)
	}
}
