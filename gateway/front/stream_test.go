package front

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// A gate is a Dispatch whose calls wait until they are let go or ended.
type gate struct {
	began   chan *Request
	release chan *Reply
	ended   chan error // the cause of each call that was ended
}

func newGate() *gate {
	return &gate{began: make(chan *Request, 8), release: make(chan *Reply), ended: make(chan error, 8)}
}

func (g *gate) dispatch(ctx context.Context, req *Request) *Reply {
	g.began <- req
	select {
	case reply := <-g.release:
		return reply
	case <-ctx.Done():
		g.ended <- context.Cause(ctx)
		return &Reply{Error: &wire.Error{Code: wire.CodeInternal, Message: "ended"}}
	}
}

var done = &Reply{Revision: mcp.Modern, Result: object(`{"content":[],` + "\n" + `"resultType":"complete"}`)}

// open sends a request and gives the response as soon as its header is there.
func open(ctx context.Context, t *testing.T, url string, h http.Header, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h
	transport := &http.Transport{DisableKeepAlives: true}
	return transport.RoundTrip(req)
}

func TestStreamOpensAfterSilence(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			g := newGate()
			_, server := start(t, Config{Dispatch: g.dispatch, StreamAfter: time.Millisecond, Keepalive: time.Millisecond})
			h, body := header(), legacyCall("7", "x")
			if era == "modern" {
				h, body = modernHeader(mcp.MethodToolsCall, "x"), callBody("7", "x")
			}
			resp, err := open(t.Context(), t, server.URL+"/mcp", h, body)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got := resp.Header; got.Get("Content-Type") != "text/event-stream" || got.Get("X-Accel-Buffering") != "no" || got.Get("Cache-Control") != "no-cache" {
				t.Errorf("headers %v", got)
			}
			lines := bufio.NewReader(resp.Body)
			for range 3 {
				if line, err := lines.ReadString('\n'); line != ":\n" || err != nil {
					t.Fatalf("read %q, %v, want a comment", line, err)
				}
				if line, _ := lines.ReadString('\n'); line != "\n" {
					t.Fatalf("read %q, want the end of the comment", line)
				}
			}
			g.release <- done
			rest, err := io.ReadAll(lines)
			if err != nil {
				t.Fatal(err)
			}
			result := `{"content":[],"resultType":"complete"}`
			if era == "legacy" {
				result = `{"content":[]}`
			}
			want := `data: {"jsonrpc":"2.0","id":7,"result":` + result + "}\n\n"
			if got := strings.ReplaceAll(string(rest), ":\n\n", ""); got != want {
				t.Errorf("the stream ends with %q, want %q", got, want)
			}
		})
	}
}

func TestNoStreamWhereItIsNotWanted(t *testing.T) {
	tests := []struct {
		name, accept string
		after        time.Duration
	}{
		{"JSON only", "application/json", time.Nanosecond},
		{"never", "application/json, text/event-stream", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate()
			_, server := start(t, Config{Dispatch: g.dispatch, StreamAfter: tt.after})
			h := header()
			h["Accept"] = []string{tt.accept}
			go func() {
				<-g.began
				g.release <- done
			}()
			got := send(t, http.MethodPost, server.URL+"/mcp", h, legacyCall("1", "x"))
			got.want(t, http.StatusOK)
			if got.header.Get("Content-Type") != "application/json" {
				t.Errorf("Content-Type %q", got.header.Get("Content-Type"))
			}
		})
	}
}

func TestErrorRidesInAnOpenStream(t *testing.T) {
	g := newGate()
	_, server := start(t, Config{Dispatch: func(ctx context.Context, req *Request) *Reply {
		if reply := g.dispatch(ctx, req); reply != done {
			return reply
		}
		panic("a bug")
	}, StreamAfter: time.Nanosecond})
	for _, reply := range []*Reply{{Error: &wire.Error{Code: mcp.CodeHeaderMismatch, Message: "m"}}, done} {
		resp, err := open(t.Context(), t, server.URL+"/mcp", modernHeader(mcp.MethodToolsCall, "x"), callBody("7", "x"))
		if err != nil {
			t.Fatal(err)
		}
		g.release <- reply
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `data: {"jsonrpc":"2.0","id":7,"error":{"code":-32`) {
			t.Errorf("%d %q %v, want the error as an event", resp.StatusCode, body, err)
		}
	}
}

func TestModernDisconnectCancels(t *testing.T) {
	for _, after := range []time.Duration{0, time.Nanosecond} {
		g := newGate()
		_, server := start(t, Config{Dispatch: g.dispatch, StreamAfter: after})
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if resp, err := open(ctx, t, server.URL+"/mcp", modernHeader(mcp.MethodToolsCall, "x"), callBody("1", "x")); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}()
		<-g.began
		cancel()
		if cause := <-g.ended; !errors.Is(cause, context.Canceled) || errors.Is(cause, ErrCanceled) {
			t.Errorf("stream after %v: the call ended with %v, want the disconnect", after, cause)
		}
		<-gone
	}
}

// A client that has closed its half of the connection has cancelled, and is sent nothing more.
func TestModernHalfCloseCancels(t *testing.T) {
	g := newGate()
	_, server := start(t, Config{Dispatch: g.dispatch})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := callBody("1", "x")
	if _, err := io.WriteString(conn, rawPost(len(body), body)); err != nil {
		t.Fatal(err)
	}
	<-g.began
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-g.ended
	if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
		t.Errorf("the client is sent %q, %v, want nothing", got, err)
	}
}

func TestLegacyDisconnectDoesNotCancel(t *testing.T) {
	g, log := newGate(), new(recorder)
	asking := make(chan context.Context, 1)
	_, server := start(t, Config{Dispatch: g.dispatch, Log: slog.New(log), Authenticate: func(r *http.Request) (Caller, error) {
		asking <- r.Context()
		return Caller{}, nil
	}})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	body := legacyCall("1", "x")
	if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body); err != nil {
		t.Fatal(err)
	}
	<-g.began
	conn.Close()
	<-(<-asking).Done()
	select {
	case g.release <- done:
	case cause := <-g.ended:
		t.Fatalf("the call was ended: %v", cause)
	}
	server.Close() // it waits for the handler
	if !log.has("the client had gone before its answer") {
		t.Errorf("the log has %q, want it to say that the answer was not delivered", log.lines())
	}
}

func TestLegacyCancel(t *testing.T) {
	g := newGate()
	var running context.Context
	_, server := start(t, Config{Dispatch: func(ctx context.Context, req *Request) *Reply {
		running = ctx
		return g.dispatch(ctx, req)
	}})
	url := server.URL + "/mcp"
	token, other := initialize(t, url, mcp.Revision20251125), initialize(t, url, mcp.Revision20251125)
	answers := make(chan answer)
	go func() {
		answers <- send(t, http.MethodPost, url, header("Mcp-Session-Id", token), legacyCall(`"a"`, "x"))
	}()
	<-g.began
	cancel := func(session, id string) {
		h := header()
		if session != "" {
			h["Mcp-Session-Id"] = []string{session}
		}
		send(t, http.MethodPost, url, h, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`).want(t, http.StatusAccepted)
	}
	cancel(other, `"a"`)
	cancel("", `"a"`)
	cancel(token, `1`)
	// The modern notification says nothing of whose request it means.
	send(t, http.MethodPost, url, modernHeader("notifications/cancelled", "", "Mcp-Session-Id", token),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`).want(t, http.StatusAccepted)
	if running.Err() != nil {
		t.Fatalf("a cancel of something else ended the call: %v", context.Cause(running))
	}
	cancel(token, `"\u0061"`)
	if cause := <-g.ended; !errors.Is(cause, ErrCanceled) || !errors.Is(cause, context.Canceled) {
		t.Errorf("the call ended with %v, want ErrCanceled", cause)
	}
	got := <-answers
	got.want(t, http.StatusAccepted)
	if got.body != "" {
		t.Errorf("the cancelled POST has the body %q", got.body)
	}
}

func TestLegacyCancelEndsTheStream(t *testing.T) {
	g := newGate()
	_, server := start(t, Config{Dispatch: g.dispatch, StreamAfter: time.Nanosecond})
	url := server.URL + "/mcp"
	token := initialize(t, url, mcp.Revision20251125)
	resp, err := open(t.Context(), t, url, header("Mcp-Session-Id", token), legacyCall("1", "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-g.began
	send(t, http.MethodPost, url, header("Mcp-Session-Id", token), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if body, err := io.ReadAll(resp.Body); err != nil || strings.Contains(string(body), "data") {
		t.Errorf("the stream has %q, %v, want nothing more than comments", body, err)
	}
}

func TestCancelInABatch(t *testing.T) {
	g := newGate()
	_, server := start(t, Config{Dispatch: g.dispatch})
	url := server.URL + "/mcp"
	token := initialize(t, url, mcp.Revision20250326)
	answers := make(chan answer)
	go func() {
		answers <- send(t, http.MethodPost, url, header("Mcp-Session-Id", token), `[`+legacyCall("1", "x")+`,`+legacyCall("2", "x")+`,{"jsonrpc":"2.0","id":3,"method":"ping"}]`)
	}()
	<-g.began
	<-g.began
	send(t, http.MethodPost, url, header("Mcp-Session-Id", token), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-g.ended
	g.release <- done
	if got, want := (<-answers).body, `[{"jsonrpc":"2.0","id":2,"result":{"content":[]}},{"jsonrpc":"2.0","id":3,"result":{}}]`; got != want {
		t.Errorf("the batch is answered with %s, want %s", got, want)
	}
}

// A client that takes nothing is dropped, and with it, where it is modern, its call.
func TestClientThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		client, _, end := onPipe(t, Config{Dispatch: g.dispatch, StreamAfter: time.Second, Keepalive: time.Second})
		body := callBody("1", "x")
		if _, err := io.WriteString(client, rawPost(len(body), body)); err != nil {
			t.Fatal(err)
		}
		<-g.began
		before := time.Now()
		if cause := <-g.ended; !errors.Is(cause, context.Canceled) {
			t.Errorf("the call ended with %v", cause)
		}
		if waited := time.Since(before); waited != clientPatience+time.Second {
			t.Errorf("the client was dropped after %v, want %v", waited, clientPatience+time.Second)
		}
		end()
	})
}

// A body that does not come to its end must not hold a connection for ever, and a call must outlive the bound that sees to it.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _, end := onPipe(t, Config{Dispatch: newGate().dispatch})
		if _, err := io.WriteString(client, rawPost(1000, "{")); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		if line, err := bufio.NewReader(client).ReadString('\n'); !strings.Contains(line, "400") {
			t.Errorf("read %q, %v, want 400", line, err)
		}
		if waited := time.Since(before); waited != clientPatience {
			t.Errorf("the body was given up after %v, want %v", waited, clientPatience)
		}
		end()
	})
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		client, _, end := onPipe(t, Config{Dispatch: g.dispatch})
		body := callBody("1", "x")
		if _, err := io.WriteString(client, rawPost(len(body), body)); err != nil {
			t.Fatal(err)
		}
		<-g.began
		<-time.After(10 * clientPatience)
		go func() { g.release <- done }()
		if line, err := bufio.NewReader(client).ReadString('\n'); !strings.Contains(line, "200") {
			t.Errorf("read %q, %v, want 200", line, err)
		}
		end()
	})
}
