package observe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const header = adminHeader + ": x"

func key(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer right" }

func TestAccess(t *testing.T) {
	const right, wrong = "Authorization: Bearer right", "Authorization: Bearer wrong"
	loopback, anywhere, keyed := Access{Loopback: true, Pprof: true}, Access{Pprof: true}, Access{Key: key, Pprof: true}
	open := []string{"GET /healthz", "GET /readyz", "GET /metrics"}
	guarded := []string{"GET /status", "GET /debug/pprof/", "GET /debug/pprof/heap", "GET /debug/pprof/symbol", "POST /-/reload", "POST /-/upstreams/files/restart"}
	for _, test := range []struct {
		name    string
		access  Access
		paths   []string
		headers []string
		status  int
		says    string
	}{
		{"on loopback", loopback, slices.Concat(open, guarded), []string{header}, 200, ""},
		{"on loopback by name", loopback, slices.Concat(open, guarded), []string{header, "Host: LocalHost.:9090"}, 200, ""},
		{"on loopback by IPv6", loopback, slices.Concat(open, guarded), []string{header, "Host: [::1]:9090"}, 200, ""},
		{"on loopback by IPv6 without a port", loopback, open, []string{"Host: [::1]"}, 200, ""},
		{"a page whose name leads to loopback", loopback, slices.Concat(open, guarded), []string{header, "Host: evil.example"}, 403, "name it in hosts"},
		{"a page whose name begins as loopback", loopback, guarded, []string{header, "Host: 127.0.0.1.evil.example"}, 403, "name it in hosts"},
		{"a name in hosts", Access{Loopback: true, Pprof: true, Hosts: []string{"Gateway.example"}}, guarded, []string{header, "Host: gateway.example:9090"}, 200, ""},
		{"a name in hosts with its port", Access{Loopback: true, Pprof: true, Hosts: []string{"gateway.example:9090"}}, guarded, []string{header, "Host: gateway.example:9090"}, 200, ""},
		{"a name in hosts with another port", Access{Loopback: true, Hosts: []string{"gateway.example:9090"}}, open, []string{"Host: gateway.example:9091"}, 403, ""},
		{"loopback beside hosts", Access{Loopback: true, Hosts: []string{"gateway.example"}}, open, nil, 200, ""},

		{"elsewhere, what anyone may ask", anywhere, open, []string{"Host: 10.0.0.7:9090"}, 200, ""},
		{"elsewhere, what anyone may ask, beside hosts", Access{Hosts: []string{"gateway.example"}}, open, []string{"Host: 10.0.0.7:9090"}, 200, ""},
		{"elsewhere without a key", anywhere, guarded, []string{header, right}, 403, "set admin_key"},
		{"elsewhere without showing it", keyed, guarded, []string{header}, 401, "admin_key"},
		{"elsewhere with another", keyed, guarded, []string{header, wrong}, 401, "admin_key"},
		{"elsewhere with the key", keyed, guarded, []string{header, right, "Host: 10.0.0.7:9090"}, 200, ""},
		{"elsewhere with the key by a wrong name", Access{Key: key, Hosts: []string{"gateway.example"}}, []string{"GET /status", "POST /-/reload"}, []string{header, right, "Host: evil.example"}, 403, "name it in hosts"},
		{"elsewhere with the key by a loopback name", Access{Key: key, Hosts: []string{"gateway.example"}}, []string{"GET /status"}, []string{right, "Host: localhost"}, 403, "name it in hosts"},

		{"without the header", loopback, []string{"POST /-/reload", "POST /-/upstreams/files/restart"}, nil, 403, adminHeader},
		{"with the key and without the header", keyed, []string{"POST /-/reload"}, []string{right}, 403, adminHeader},
		{"by GET", loopback, []string{"GET /-/reload", "GET /-/upstreams/files/restart"}, []string{header}, 405, ""},
		{"by POST", loopback, []string{"POST /status", "POST /debug/pprof/symbol"}, []string{header}, 405, ""},
		{"what is not there", loopback, []string{"GET /", "GET /debug/pprof/cmdline", "POST /-/upstreams/restart"}, []string{header}, 404, ""},
		{"profiles that nobody asked for", Access{Loopback: true}, []string{"GET /debug/pprof/", "GET /debug/pprof/heap"}, nil, 404, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, g := newObserver(t)
			address := serve(t, o.Handler(test.access))
			for _, path := range test.paths {
				g.asked = nil
				method, path, _ := strings.Cut(path, " ")
				status, headers, body := ask(t, address, method, path, test.headers...)
				if status != test.status || !strings.Contains(body, test.says) {
					t.Errorf("%s %s: %d %s", method, path, status, body)
				}
				if did := len(g.asked) > 0; did != (method == "POST" && status == 200) {
					t.Errorf("%s %s: %d, and it did %q", method, path, status, g.asked)
				}
				if (headers.Get("WWW-Authenticate") == "Bearer") != (status == 401) {
					t.Errorf("%s %s: %d with the challenge %q", method, path, status, headers.Get("WWW-Authenticate"))
				}
				if headers.Get("Cache-Control") != "no-store" || headers.Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("%s %s: %v", method, path, headers)
				}
			}
		})
	}
}

func TestReloadAnswers(t *testing.T) {
	o, g := newObserver(t)
	address := serve(t, o.Handler(Access{Loopback: true}))
	if status, headers, body := ask(t, address, "POST", "/-/reload", header); status != 200 || body != "{\n  \"changed\": [\n    \"files\"\n  ]\n}\n" ||
		headers.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", status, body)
	}
	g.reloadErr = errors.New("upstreams.files: it needs <command> or url")
	if status, _, body := ask(t, address, "POST", "/-/reload", header); status != 422 || !strings.Contains(body, `"error": "upstreams.files: it needs <command> or url"`) {
		t.Errorf("%d %s", status, body)
	}
}

func TestRestartAnswers(t *testing.T) {
	o, g := newObserver(t)
	address := serve(t, o.Handler(Access{Loopback: true}))
	for _, test := range []struct {
		id     string
		status int
		says   string
	}{
		{"files", 200, `"restarted": "files"`},
		{"held", 409, `"error": "the process 42 could not be ended"`},
		{"nobody", 404, "/status names"},
		{"%2e%2e%2fx", 404, "/status names"},
	} {
		status, _, body := ask(t, address, "POST", "/-/upstreams/"+test.id+"/restart", header)
		if status != test.status || !strings.Contains(body, test.says) {
			t.Errorf("%s: %d %s", test.id, status, body)
		}
	}
	want := []string{"restart files", "restart held", "restart nobody", "restart ../x"}
	if !slices.Equal(g.asked, want) {
		t.Errorf("%q was asked for, want %q", g.asked, want)
	}
}

// A reload knows that nobody waits for it any more.
func TestReloadSeesItsClientLeave(t *testing.T) {
	o, _ := newObserver(t)
	running, left := make(chan struct{}), make(chan struct{})
	o.cfg.Reload = func(ctx context.Context) ([]byte, error) {
		close(running)
		<-ctx.Done()
		close(left)
		return nil, ctx.Err()
	}
	conn, err := net.Dial("tcp", serve(t, o.Handler(Access{Loopback: true})))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /-/reload HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", header)
	<-running
	conn.Close()
	<-left
}

func TestHealth(t *testing.T) {
	o, g := newObserver(t)
	g.unready = errors.New("the end has begun")
	if status, _, body := ask(t, serve(t, o.Handler(Access{})), "GET", "/healthz"); status != 200 || !strings.Contains(body, `"alive": true`) {
		t.Errorf("%d %s", status, body)
	}
}

// A body is refused, and one that never comes is waited for by nobody.
func TestBodyIsNotWaitedFor(t *testing.T) {
	o, g := newObserver(t)
	address := serve(t, o.Handler(Access{Loopback: true}))
	for _, length := range []string{"Content-Length: 100000", "Transfer-Encoding: chunked"} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /-/reload HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s\r\n\r\n", header, length)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != 413 || !resp.Close || err != nil || !strings.Contains(string(body), "without one") {
			t.Errorf("%s: %d %s %v", length, resp.StatusCode, body, err)
		}
		if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 { // it ends
			t.Errorf("%s: then %q, %v", length, rest, err)
		}
		conn.Close()
	}
	if len(g.asked) > 0 {
		t.Errorf("it did %q", g.asked)
	}
}

// once is a listener with one connection.
type once struct {
	conn   chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func (l *once) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *once) Close() error   { l.close.Do(func() { close(l.closed) }); return nil }
func (l *once) Addr() net.Addr { return &net.TCPAddr{} }

// Whoever asks and does not read is given up, and not only when it leaves.
func TestReaderThatTakesNothingIsGivenUp(t *testing.T) {
	for _, path := range []string{"/status", "/metrics", "/readyz"} {
		synctest.Test(t, func(t *testing.T) {
			o, _ := newObserver(t)
			l := &once{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
			client, conn := net.Pipe()
			l.conn <- conn
			ended := make(chan struct{})
			handler := o.Handler(Access{Loopback: true})
			server := &http.Server{Handler: handler, ConnState: func(_ net.Conn, s http.ConnState) {
				if s == http.StateClosed {
					close(ended)
				}
			}}
			served := make(chan struct{})
			go func() { defer close(served); _ = server.Serve(l) }()
			fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
			start := time.Now()
			<-ended
			if waited := time.Since(start); waited > 2*writeTimeout {
				t.Errorf("%s: given up after %v", path, waited)
			}
			_ = server.Close()
			<-served
			client.Close()
		})
	}
}
