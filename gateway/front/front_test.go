package front

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/mcp"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A recorder is a log that can be searched.
type recorder struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recorder) WithGroup(string) slog.Handler            { return r }
func (r *recorder) Handle(ctx context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slog.NewTextHandler(&r.out, &slog.HandlerOptions{Level: slog.LevelDebug}).Handle(ctx, record)
}

func (r *recorder) lines() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

func (r *recorder) has(part string) bool { return strings.Contains(r.lines(), part) }

func TestRequestReachesDispatch(t *testing.T) {
	var got *Request
	_, server := start(t, Config{
		Authenticate: func(*http.Request) (Caller, error) { return Caller{Name: "alice"}, nil },
		Dispatch: func(_ context.Context, req *Request) *Reply {
			got = req
			return done
		},
	})
	url := server.URL + "/mcp"
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é", "arguments":{},` + testMeta + `}}`
	send(t, http.MethodPost, url, modernHeader(mcp.MethodToolsCall, "=?base64?w6k=?=", "Mcp-Param-Region", "eu", "mcp-param-empty", ""), body).want(t, http.StatusOK)
	if got.Caller != "alice" || got.ID == "" || got.Method != mcp.MethodToolsCall || got.Name != "é" || time.Since(got.Received) < 0 {
		t.Errorf("the request is %+v", got)
	}
	if want := body[strings.Index(body, `{"name"`) : len(body)-1]; string(got.Params.Raw()) != want {
		t.Errorf("params are %s, want %s", got.Params.Raw(), want)
	}
	if len(got.Header) != 2 || got.Header["Mcp-Param-Region"][0] != "eu" || got.Header["Mcp-Param-Empty"][0] != "" {
		t.Errorf("headers are %v, want the two Mcp-Param", got.Header)
	}
	first := got.ID
	send(t, http.MethodPost, url, modernHeader(mcp.MethodToolsList, ""), `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+testMeta+`}}`)
	if got.Header == nil || len(got.Header) != 0 || got.ID == first || got.Name != "" {
		t.Errorf("the list is %+v, want headers that are empty and not nil, and an id of its own", got)
	}
	send(t, http.MethodPost, url, header("Mcp-Param-Region", "eu"), legacyCall("1", "x"))
	if got.Header != nil {
		t.Errorf("a legacy client's headers are %v, want nil: it owes none", got.Header)
	}
}

func TestHostileBodies(t *testing.T) {
	called := false
	_, server := start(t, Config{Dispatch: func(_ context.Context, req *Request) *Reply {
		called = true
		return done
	}})
	url := server.URL + "/mcp"
	nested := func(depth int) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}}}`
	}
	tests := []struct {
		name   string
		body   io.Reader
		status int
		code   string
	}{
		{"deep", strings.NewReader(nested(5000)), 400, "-32700"},
		{"bytes that are not UTF-8", strings.NewReader("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\xff\"}}"), 400, "-32700"},
		{"zero byte in a name", strings.NewReader(legacyCall("1", `x\u0000`)), 200, "-32602"},
		{"too large, and says so", strings.NewReader(legacyCall("1", strings.Repeat("x", maxBody))), 413, "-32600"},
		{"too large, and does not", io.MultiReader(strings.NewReader(legacyCall("1", strings.Repeat("x", maxBody)))), 413, "-32600"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := sendReader(t, http.MethodPost, url, header(), tt.body)
			got.want(t, tt.status, `"code":`+tt.code)
			if called {
				t.Error("it reached the gateway")
			}
		})
	}
	for name, body := range map[string]io.Reader{
		"not that deep":          strings.NewReader(nested(500)),
		"a lone surrogate":       strings.NewReader(legacyCall("1", `\ud83d`)),
		"as large as it may be":  strings.NewReader(legacyCall("1", strings.Repeat("x", maxBody-len(legacyCall("1", ""))))),
		"of an untold length":    io.MultiReader(strings.NewReader(legacyCall("1", "x"))),
		"large, untold a length": io.MultiReader(strings.NewReader(legacyCall("1", strings.Repeat("x", 90_000)))),
	} {
		called = false
		if sendReader(t, http.MethodPost, url, header(), body).want(t, http.StatusOK); !called {
			t.Errorf("%s: it did not reach the gateway", name)
		}
	}
}

func TestOtherPaths(t *testing.T) {
	_, server := start(t, Config{Path: "/x/y"})
	send(t, http.MethodPost, server.URL+"/mcp", header(), `{}`).want(t, http.StatusNotFound, "/x/y")
	send(t, http.MethodPost, server.URL+"/x/y", header(), `{"jsonrpc":"2.0","id":1,"method":"ping"}`).want(t, http.StatusOK)
}

func TestPanics(t *testing.T) {
	log := new(recorder)
	_, server := start(t, Config{Log: slog.New(log), Authenticate: func(r *http.Request) (Caller, error) {
		if r.Header.Get("X-Panic") != "" {
			panic("a bug")
		}
		return Caller{}, nil
	}})
	url := server.URL + "/mcp"
	send(t, http.MethodPost, url, header("X-Panic", "1"), legacyCall("1", "legacy")).want(t, http.StatusInternalServerError, "-32603")
	send(t, http.MethodPost, url, header(), legacyCall("1", "legacy")).want(t, http.StatusOK, "content")
	if !log.has("panicked") || !log.has("recover.go") {
		t.Errorf("the log has %q, want the panic and where it came from", log.lines())
	}
}

func TestAccessLogHoldsNothingOfTheRequest(t *testing.T) {
	log := new(recorder)
	_, server := start(t, Config{Log: slog.New(log), Authenticate: func(*http.Request) (Caller, error) { return Caller{Name: "alice"}, nil }})
	send(t, http.MethodPost, server.URL+"/mcp?key=hunter2", header("Authorization", "hunter2", "Mcp-Session-Id", "hunter2"), legacyCall(`"hunter2"`, "hunter2"))
	send(t, http.MethodPost, server.URL+"/mcp", header(), `{"jsonrpc":"2.0","id":1,"method":"hunter2"}`)
	send(t, http.MethodPost, server.URL+"/mcp", header(), legacyCall("1", "legacy"))
	server.Close()
	if log.has("hunter2") {
		t.Errorf("the log quotes a request: %s", log.lines())
	}
	for _, part := range []string{"status=404", "status=200", "method=tools/call", "caller=alice", "http=POST"} {
		if !log.has(part) {
			t.Errorf("the log has %q, want %s in it", log.lines(), part)
		}
	}
}

func TestClose(t *testing.T) {
	g := newGate()
	f, server := start(t, Config{Dispatch: g.dispatch})
	url := server.URL + "/mcp"
	answers := make(chan answer, 2)
	go func() {
		answers <- send(t, http.MethodPost, url, modernHeader(mcp.MethodToolsCall, "x"), callBody("1", "x"))
	}()
	go func() { answers <- send(t, http.MethodPost, url, header(), legacyCall("1", "x")) }()
	<-g.began
	<-g.began
	f.Close(ErrShutdown)
	f.Close(io.EOF)
	if len(g.ended) != 2 {
		t.Error("Close returned while calls ran")
	}
	for range 2 {
		if cause := <-g.ended; cause != ErrShutdown {
			t.Errorf("a call ended with %v, want ErrShutdown", cause)
		}
		// Whoever waits is told what became of the call.
		got := <-answers
		got.want(t, http.StatusOK, `"ended"`)
	}
	got := send(t, http.MethodPost, url, header(), legacyCall("1", "x"))
	got.want(t, http.StatusServiceUnavailable, "shutting down")
	if got.header.Get("Retry-After") == "" {
		t.Error("the refusal does not say when to try again")
	}
}

// A request that was let in just before Close must not begin a call that nobody ends.
func TestCallBeginsWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlights()
		f.enter()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			f.cut(ErrShutdown)
			<-f.idle
		}()
		synctest.Wait()
		ctx, call := f.begin(t.Context(), flightKey{})
		if context.Cause(ctx) != ErrShutdown {
			t.Errorf("the call's context ended with %v, want ErrShutdown", context.Cause(ctx))
		}
		f.end(call)
		f.leave()
		<-closed
	})
}

func FuzzPost(f *testing.F) {
	front := New(Config{Dispatch: canned, Ring: testRing(f), ServerInfo: []byte(testInfo), Log: slog.New(slog.DiscardHandler)})
	f.Add(callBody("1", "legacy"), true)
	f.Add(legacyCall(`"1"`, "modern"), false)
	f.Add(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, false)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"x"}}`, true)
	f.Fuzz(func(t *testing.T, body string, modern bool) {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
		r.Header = header()
		if modern {
			r.Header = modernHeader(mcp.MethodToolsCall, "legacy")
		}
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		switch w.Code {
		case 200, 202, 400, 404:
		default:
			t.Errorf("status %d", w.Code)
		}
		if w.Code == http.StatusAccepted != (w.Body.Len() == 0) {
			t.Errorf("status %d with the body %q", w.Code, w.Body)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	reply := &Reply{Revision: mcp.Modern, Result: object(`{"resultType":"complete","content":[{"type":"text","text":"hello"}]}`)}
	front := New(Config{Dispatch: func(context.Context, *Request) *Reply { return reply }, Ring: testRing(b),
		ServerInfo: []byte(testInfo), Log: slog.New(slog.DiscardHandler), StreamAfter: 10 * time.Second, Loopback: true})
	body := callBody("1", "a__x")
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", nil)
	r.Header = modernHeader(mcp.MethodToolsCall, "a__x")
	r.ContentLength = int64(len(body))
	text := strings.NewReader(body)
	r.Body = io.NopCloser(text)
	w := &sink{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		text.Reset(body)
		clear(w.header)
		front.ServeHTTP(w, r)
	}
	if w.status != http.StatusOK {
		b.Fatalf("status %d", w.status)
	}
}

// A sink takes an answer and keeps nothing of it.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }

// What a reply holds is given back when it has been written, and also when nobody comes to write it.
func TestHoldsAreReleased(t *testing.T) {
	kept := make(chan *bool, 1)
	back := make(chan struct{}, 1)
	_, server := start(t, Config{Dispatch: func(_ context.Context, req *Request) *Reply {
		written := new(bool)
		kept <- written
		req.Hold.Keep(func() { *written = true; back <- struct{}{} })
		if req.Name == "panic" {
			panic("in dispatch")
		}
		if *written {
			t.Error("given back before the reply was written")
		}
		return &Reply{Revision: mcp.Modern, Result: object(`{"content":[]}`)}
	}})
	url := server.URL + "/mcp"
	for _, name := range []string{"x", "panic"} {
		send(t, http.MethodPost, url, modernHeader(mcp.MethodToolsCall, name), callBody("1", name))
		<-kept
		<-back
		send(t, http.MethodPost, url, header(), legacyCall("1", name))
		<-kept
		<-back
		send(t, http.MethodPost, url, header(), "["+legacyCall("1", name)+"]")
		<-kept
		<-back
	}
}

func TestBatchIsNoLargerThanOneAnswer(t *testing.T) {
	large := object(`{"content":[],"x":"` + strings.Repeat("x", maxBatchAnswer*2/3) + `"}`)
	_, server := start(t, Config{Dispatch: func(context.Context, *Request) *Reply { return &Reply{Revision: mcp.LegacyLatest, Result: large} }})
	got := send(t, http.MethodPost, server.URL+"/mcp", header(), "["+legacyCall("1", "x")+","+legacyCall("2", "x")+"]")
	if got.status != http.StatusOK || len(got.body) > maxBatchAnswer || strings.Count(got.body, tooMuchForBatch) != 1 {
		t.Errorf("status %d, %d bytes", got.status, len(got.body))
	}
}

// What a reply wants done is done once, however the request ends.
func TestAfterTheAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		body  string
		times int
	}{
		"modern": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, 1},
		"legacy": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`, 1},
		"array":  {`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}]`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var written *httptest.ResponseRecorder
			var mu sync.Mutex
			var log bytes.Buffer
			times := 0
			f := New(Config{
				Ring: testRing(t), ServerInfo: []byte(testInfo), Loopback: true,
				Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
				Dispatch: func(context.Context, *Request) *Reply {
					return &Reply{Error: fault(1, "no"), After: func(sent Answer) {
						mu.Lock()
						defer mu.Unlock()
						times++
						if want := (Answer{Status: written.Code, Bytes: int64(written.Body.Len())}); sent != want || sent.Bytes == 0 {
							t.Errorf("told of %+v when %+v was written", sent, want)
						}
					}}
				},
			})
			defer f.Close(ErrShutdown)
			written = httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(tt.body))
			r.Header.Set("Content-Type", "application/json")
			if name == "modern" {
				r.Header.Set(mcp.HeaderVersion, mcp.Modern)
				r.Header.Set(mcp.HeaderMethod, mcp.MethodToolsCall)
				r.Header.Set(mcp.HeaderName, "t")
			}
			f.ServeHTTP(written, r)
			if times != tt.times {
				t.Errorf("done %d times, want %d: %s", times, tt.times, written.Body)
			}
			if log.Len() > 0 {
				t.Errorf("logged a second time: %s", &log)
			}
		})
	}
}
