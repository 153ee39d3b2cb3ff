package exchange

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/upstream"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestEndedBeforeTheSend(t *testing.T) { eachTransport(t, testEndedBeforeTheSend) }

func testEndedBeforeTheSend(t *testing.T, newClient maker) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
	for _, test := range []struct {
		cause error
		want  upstream.Cause
	}{
		{context.DeadlineExceeded, upstream.DeadlineUnsent},
		{context.Canceled, upstream.CanceledUnsent},
		{errors.New("the client left"), upstream.CanceledUnsent},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(test.cause)
		_, err := newClient(t, s.URL).Do(ctx, request())
		want(t, err, upstream.NotSent, test.want, 0)
	}
}

func TestDeadlineDuringTheDial(t *testing.T) { eachTransport(t, testDeadlineDuringTheDial) }

func testDeadlineDuringTheDial(t *testing.T, newClient maker) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://server")
		c.dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Do(ctx, request())
		want(t, err, upstream.NotSent, upstream.DeadlineUnsent, 0)
	})
}

func TestSlowDripEndsAtTheDeadline(t *testing.T) { eachTransport(t, testSlowDripEndsAtTheDeadline) }

func testSlowDripEndsAtTheDeadline(t *testing.T, newClient maker) {
	for _, head := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX-Slow: ",
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, "http://server")
			gone := make(chan struct{})
			c.dialer = func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go func() {
					defer close(gone)
					defer far.Close()
					readRequest(t, bufio.NewReader(far))
					_, err := io.WriteString(far, head)
					for err == nil {
						<-time.After(time.Second) // of the bubble's clock
						_, err = io.WriteString(far, " ")
					}
				}()
				return near, nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
			defer cancel()
			_, err := c.Do(ctx, request())
			want(t, err, upstream.NoResponse, upstream.Deadline, 0)
			<-gone
		})
	}
}

func TestCancelClosesTheStream(t *testing.T) { eachTransport(t, testCancelClosesTheStream) }

func testCancelClosesTheStream(t *testing.T, newClient maker) {
	for _, test := range []struct {
		name  string
		cause error
		want  upstream.Cause
	}{
		{"cancel", context.Canceled, upstream.Canceled},
		{"deadline", context.DeadlineExceeded, upstream.Deadline},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := make(chan struct{})
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", streamType)
				_ = http.NewResponseController(w).Flush()
				cancel(test.cause)
				<-r.Context().Done()
				close(gone)
			})
			_, err := newClient(t, s.URL).Do(ctx, request())
			want(t, err, upstream.NoResponse, test.want, 0)
			<-gone
		})
	}
}

func TestCloseEndsWhatRuns(t *testing.T) { eachTransport(t, testCloseEndsWhatRuns) }

func testCloseEndsWhatRuns(t *testing.T, newClient maker) {
	started := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(started)
		<-r.Context().Done()
	})
	c := newClient(t, s.URL)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), request())
		failed <- err
	}()
	<-started
	c.Close()
	want(t, <-failed, upstream.NoResponse, upstream.ClosedByGateway, 0)
	c.Close()
	_, err := c.Do(t.Context(), request())
	want(t, err, upstream.NotSent, upstream.ClosedByGateway, 0)
	if n := connections(c); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

func TestCloseWaitsForTheExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://server")
		end := pipes(c, func(_ int64, r *bufio.Reader, far net.Conn) {
			readRequest(t, r)
			_, _ = io.WriteString(far, streamHead+chunk("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"))
			_, _ = r.ReadByte()
		})
		defer end()
		told, release := make(chan struct{}), make(chan struct{})
		req := request()
		req.Notify = func(upstream.Notification) {
			close(told)
			<-release
		}
		failed := make(chan error, 1)
		go func() {
			_, err := c.Do(t.Context(), req)
			failed <- err
		}()
		<-told
		closed := make(chan struct{})
		go func() {
			c.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close did not wait for the exchange")
		default:
		}
		close(release)
		<-closed
		want(t, <-failed, upstream.NoResponse, upstream.ClosedByGateway, 0)
	})
}

func TestCloseEndsKeptConnections(t *testing.T) { eachTransport(t, testCloseEndsKeptConnections) }

func testCloseEndsKeptConnections(t *testing.T, newClient maker) {
	gone := make(chan struct{})
	s := serveRaw(t, func(_ int64, conn *net.TCPConn) {
		r := bufio.NewReader(conn)
		readRequest(t, r)
		_, _ = io.WriteString(conn, okReply)
		_, _ = r.ReadByte()
		close(gone)
	})
	c := newClient(t, s.url())
	if _, err := c.Do(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if n := connections(c); n != 1 {
		t.Errorf("%d connections are kept, want 1", n)
	}
	c.Close()
	if n := connections(c); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	<-gone
}

func connections(c *Client) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

func TestCloseEndsADial(t *testing.T) { eachTransport(t, testCloseEndsADial) }

func testCloseEndsADial(t *testing.T, newClient maker) {
	c := newClient(t, "http://server")
	dialing := make(chan struct{})
	c.dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		close(dialing)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	failed := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), request())
		failed <- err
	}()
	<-dialing
	c.Close()
	want(t, <-failed, upstream.NotSent, upstream.ClosedByGateway, 0)
}
