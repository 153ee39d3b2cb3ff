package front

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// wishing is a call that asks for progress and, of a modern client, for every log message.
func wishing(modern bool, id string) (http.Header, string) {
	if !modern {
		return header(), `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":` + id + `}}}`
	}
	meta := strings.TrimSuffix(testMeta, "}") + `,"progressToken":` + id + `,"io.modelcontextprotocol/logLevel":"debug"}`
	return modernHeader(mcp.MethodToolsCall, "x"), `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"x",` + meta + `}}`
}

func progress(token string, n int) upstream.Notification {
	return upstream.Notification{Method: mcp.NotificationProgress, Params: object(`{"progressToken":` + token + `,"progress":` + strconv.Itoa(n) + `}`)}
}

func progressEvent(token string, n int) string {
	return `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":` + strconv.Itoa(n) + "}}\n\n"
}

func message(n int) upstream.Notification {
	return upstream.Notification{Method: mcp.NotificationMessage, Params: object(`{"level":"info","data":` + strconv.Itoa(n) + `}`)}
}

func messageEvent(n int) string {
	return `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":` + strconv.Itoa(n) + "}}\n\n"
}

// The first notification opens the stream long before stream_after, comments keep it open, and the response ends it.
func TestNotificationsOfACall(t *testing.T) {
	for _, modern := range []bool{true, false} {
		for _, after := range []time.Duration{0, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				client, _, end := onPipe(t, Config{Dispatch: g.dispatch, StreamAfter: after, Keepalive: 10 * time.Second})
				h, body := wishing(modern, "7")
				late := make(chan func(upstream.Notification), 1)
				go func() {
					req := <-g.began
					<-time.After(time.Second)
					req.Notify(progress("7", 1))
					<-time.After(15 * time.Second)
					req.Notify(progress("7", 2))
					req.Notify(progress("7", 3))
					g.release <- done
					late <- req.Notify
				}()
				began := time.Now()
				s := openRaw(t, client, http.MethodPost, h, body)
				if passed := time.Since(began); passed != time.Second {
					t.Errorf("the stream opened after %v", passed)
				}
				s.want(progressEvent("7", 1), comment)
				if passed := time.Since(began); passed != 11*time.Second {
					t.Errorf("the first comment came after %v", passed)
				}
				s.want(progressEvent("7", 2), progressEvent("7", 3))
				if got := s.event(); !strings.HasPrefix(got, `data: {"jsonrpc":"2.0","id":7,"result":`) {
					t.Errorf("the stream has %q, want the response", got)
				}
				s.want("end")
				(<-late)(progress("7", 4)) // there is nobody to take it any more
				end()
			})
		}
	}
}

// A client that reads slowly holds up nobody: the oldest progress goes, then the oldest of all, and the order stays.
func TestSlowReaderLosesTheOldestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, log := newGate(), new(recorder)
		client, _, end := onPipe(t, Config{Dispatch: g.dispatch, Log: slog.New(log), Keepalive: time.Second})
		h, body := wishing(true, `"t"`)
		if _, err := io.WriteString(client, raw(http.MethodPost, h, body)); err != nil {
			t.Fatal(err)
		}
		req := <-g.began
		before := time.Now()
		req.Notify(message(0))
		synctest.Wait() // it is being written
		req.Notify(message(1))
		for n := range maxQueue + 10 {
			req.Notify(progress(`"t"`, n))
		}
		req.Notify(message(2))
		req.Notify(upstream.Notification{Method: mcp.NotificationProgress, Params: object(`{"progressToken":"t","x":"` + strings.Repeat("x", maxQueueBytes) + `"}`)})
		if waited := time.Since(before); waited != 0 {
			t.Errorf("Notify waited for %v", waited)
		}
		// A stream that has something to write needs no comments.
		<-time.After(clientPatience / 2)
		g.release <- done
		synctest.Wait() // nothing follows the answer, which waits for what stands before it
		s := readRaw(t, client)
		s.want(messageEvent(0), messageEvent(1))
		for n := 12; n < maxQueue+10; n++ {
			s.want(progressEvent(`"t"`, n))
		}
		s.want(messageEvent(2))
		if got := s.event(); !strings.Contains(got, `"id":"t","result":`) {
			t.Errorf("the stream has %q, want the response", got)
		}
		s.want("end")
		end()
		if strings.Count(log.lines(), "dropped=13") != 1 {
			t.Errorf("the log has %q, want it to say once that 13 were dropped", log.lines())
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	p := &post{writing: make(chan struct{})} // the one that writes is busy
	half := make([]byte, maxQueueBytes/2)
	for _, q := range []queued{{text: half[:1]}, {text: half, progress: true}, {text: half[1:]}, {text: half[:1]}, {text: half[:1]}} {
		p.push(q)
	}
	if len(p.queue) != 4 || p.size != maxQueueBytes/2+2 || p.dropped != 1 {
		t.Errorf("%d wait with %d bytes, %d dropped; want the progress gone", len(p.queue), p.size, p.dropped)
	}
	p.push(queued{text: half})
	p.push(queued{text: half})
	if p.size > maxQueueBytes || len(p.queue) != 2 || len(p.queue[1].text) != len(half) {
		t.Errorf("%d wait with %d bytes", len(p.queue), p.size)
	}
	for range maxQueue {
		p.push(queued{})
	}
	if len(p.queue) != maxQueue || p.size != 0 {
		t.Errorf("%d wait with %d bytes, want %d", len(p.queue), p.size, maxQueue)
	}
}

// What comes too late, or for nobody, is not even queued.
func TestNothingIsQueuedAfterTheEnd(t *testing.T) {
	for _, p := range []*post{{done: true}, {lost: io.ErrClosedPipe}} {
		p.f = new(Front)
		p.tick()
		p.notify(mcp.NotificationProgress, object(`{}`))
		if len(p.queue) != 0 || p.writing != nil {
			t.Errorf("done %v, lost %v: something is queued", p.done, p.lost)
		}
	}
}

// A client that takes nothing is dropped, and its call ends as at any disconnect, where it is modern.
func TestNotifiedClientThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		client, _, end := onPipe(t, Config{Dispatch: g.dispatch})
		h, body := wishing(true, "1")
		if _, err := io.WriteString(client, raw(http.MethodPost, h, body)); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		(<-g.began).Notify(progress("1", 1))
		<-g.ended
		if waited := time.Since(before); waited != clientPatience {
			t.Errorf("the client was dropped after %v, want %v", waited, clientPatience)
		}
		end()
	})
}

func TestDisconnectFromAnOpenStream(t *testing.T) {
	g := newGate()
	f, server := start(t, Config{Dispatch: g.dispatch})
	h, body := wishing(true, "1")
	conn := dial(t, server.Listener.Addr().String())
	late := make(chan func(upstream.Notification), 1)
	go func() {
		req := <-g.began
		req.Notify(progress("1", 1))
		late <- req.Notify
	}()
	s := openRaw(t, conn, http.MethodPost, h, body)
	s.want(progressEvent("1", 1))
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-g.ended
	server.Close() // it waits for the handler
	(<-late)(progress("1", 2))
	if got, err := io.ReadAll(s.conn); len(got) > 0 || err != nil {
		t.Errorf("the client is sent %q, %v after it has closed, want nothing", got, err)
	}
	if n := served(f); n != 0 {
		t.Errorf("%d requests are served", n)
	}
}

// A stream that has been silent for long ends as well as any other.
func TestLegacyCancelOfASilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		client, f, end := onPipe(t, Config{Dispatch: g.dispatch})
		h, body := wishing(false, "1")
		go func() { (<-g.began).Notify(progress("1", 1)) }()
		s := openRaw(t, client, http.MethodPost, h, body)
		s.want(progressEvent("1", 1))
		<-time.After(2 * clientPatience)
		cancelAll(f)
		s.want("end")
		end()
	})
}

// cancelAll does what the clients' cancels would.
func cancelAll(f *Front) {
	f.flights.mu.Lock()
	defer f.flights.mu.Unlock()
	for call := range f.flights.all {
		call.cancel(ErrCanceled)
	}
}

// A cancelled call's stream ends without what still waits.
func TestLegacyCancelOfANotifiedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		var f *Front
		client, served, end := onPipe(t, Config{Dispatch: func(ctx context.Context, req *Request) *Reply {
			req.Notify(progress("1", 1))
			synctest.Wait()
			req.Notify(progress("1", 2))
			<-time.After(10 * time.Second)
			cancelAll(f)
			close(ended)
			return &Reply{Error: &wire.Error{Code: wire.CodeInternal, Message: "ended"}}
		}})
		f = served
		h, body := wishing(false, "1")
		if _, err := io.WriteString(client, raw(http.MethodPost, h, body)); err != nil {
			t.Fatal(err)
		}
		<-ended
		synctest.Wait()
		s := readRaw(t, client)
		s.want(progressEvent("1", 1), "end")
		end()
	})
}
