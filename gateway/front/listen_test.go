package front

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/mcp"
)

const (
	toolsNotice = `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n\n"
	toolsAck    = `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":` +
		`{"io.modelcontextprotocol/subscriptionId":"\u0031"},"notifications":{"toolsListChanged":true}}}` + "\n\n"
	taggedNotice = `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":` +
		`{"io.modelcontextprotocol/subscriptionId":"\u0031"}}}` + "\n\n"
	listenResult = `data: {"jsonrpc":"2.0","id":"\u0031","result":{"_meta":` +
		`{"io.modelcontextprotocol/subscriptionId":"\u0031","io.modelcontextprotocol/serverInfo":` + testInfo + `},"resultType":"complete"}}` + "\n\n"
	comment = ":\n\n"
)

func listenBody(kinds string) string {
	return `{"jsonrpc":"2.0","id":"\u0031","method":"subscriptions/listen","params":{"notifications":{` + kinds + `},` + testMeta + `}}`
}

func TestListen(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hears bool
		open  func(t *testing.T, url, address string) *rawStream
		first string
		note  string
		last  []string
	}{
		{"modern", true, func(t *testing.T, _, address string) *rawStream {
			return openRaw(t, dial(t, address), http.MethodPost, modernHeader(mcp.MethodListen, ""), listenBody(`"toolsListChanged":true`))
		}, toolsAck, taggedNotice, []string{listenResult, "end"}},
		{"modern, of something else", false, func(t *testing.T, _, address string) *rawStream {
			return openRaw(t, dial(t, address), http.MethodPost, modernHeader(mcp.MethodListen, ""), listenBody(`"promptsListChanged":true`))
		}, strings.Replace(toolsAck, `"toolsListChanged":true`, "", 1), "", []string{listenResult, "end"}},
		{"legacy", true, func(t *testing.T, url, address string) *rawStream {
			return openRaw(t, dial(t, address), http.MethodGet, header("Mcp-Session-Id", initialize(t, url, mcp.Revision20250618)), "")
		}, comment, toolsNotice, []string{"end"}},
	} {
		for _, end := range []string{"EndStreams", "Cut"} {
			t.Run(tt.name+", "+end, func(t *testing.T) {
				c := new(changes)
				f, server := start(t, Config{Changes: c.of})
				c.add() // long ago
				s := tt.open(t, server.URL+"/mcp", server.Listener.Addr().String())
				s.want(tt.first)
				c.add()
				if tt.hears {
					s.want(tt.note)
				}
				if end == "Cut" {
					f.Cut(ErrShutdown)
				} else {
					f.EndStreams()
					send(t, http.MethodPost, server.URL+"/mcp", header(), legacyCall("1", "legacy")).want(t, http.StatusOK, "content")
				}
				s.want(tt.last...)
			})
		}
	}
}

func TestNobodyListensWhereNothingIsCounted(t *testing.T) {
	_, server := start(t, Config{})
	url := server.URL + "/mcp"
	send(t, http.MethodPost, url, modernHeader(mcp.MethodListen, ""), listenBody("")).want(t, http.StatusNotFound, "-32601")
	got := send(t, http.MethodGet, url, header("Mcp-Session-Id", initialize(t, url, mcp.LegacyLatest)), "")
	got.want(t, http.StatusMethodNotAllowed)
	if allow := got.header.Get("Allow"); allow != "POST, DELETE" {
		t.Errorf("Allow %q", allow)
	}
	send(t, http.MethodPost, url, modernHeader(mcp.MethodDiscover, ""), `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+testMeta+`}}`).
		want(t, http.StatusOK, `"tools":{}`)
}

func TestSubscriptionIDsAreBounded(t *testing.T) {
	f, server := start(t, Config{Changes: new(changes).of})
	f.EndStreams()
	for length, status := range map[int]int{maxSubscriptionID: http.StatusOK, maxSubscriptionID + 1: http.StatusBadRequest} {
		id := `"` + strings.Repeat("x", length-2) + `"`
		send(t, http.MethodPost, server.URL+"/mcp", modernHeader(mcp.MethodListen, ""), strings.Replace(listenBody(""), `"\u0031"`, id, 1)).want(t, status, id)
	}
}

// listenOnPipe listens to the changes of c in a synctest bubble.
func listenOnPipe(t *testing.T, cfg Config, h http.Header, body string) (s *rawStream, f *Front, end func()) {
	client, f, end := onPipe(t, cfg)
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	return openRaw(t, client, method, h, body), f, end
}

func TestNoticesAreHeldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(changes)
		s, f, end := listenOnPipe(t, Config{Changes: c.of, Keepalive: 10 * time.Second}, modernHeader(mcp.MethodListen, ""), listenBody(`"toolsListChanged":true`))
		began := time.Now()
		at := func(after time.Duration, text string) {
			t.Helper()
			s.want(text)
			if passed := time.Since(began); passed != after {
				t.Errorf("%q came after %v, want %v", text, passed, after)
			}
		}
		at(0, toolsAck)
		c.add()
		at(0, taggedNotice)
		for range 5 {
			c.add()
			synctest.Wait()
		}
		at(time.Second, taggedNotice)
		c.add()
		at(2*time.Second, taggedNotice)
		at(12*time.Second, comment)
		at(22*time.Second, comment)
		c.add()
		at(22*time.Second, taggedNotice)
		// What waits for its time comes before the end.
		c.add()
		synctest.Wait()
		f.EndStreams()
		at(22*time.Second, taggedNotice)
		at(22*time.Second, listenResult)
		end()
	})
}

// A channel that is closed for somebody else's sake says nothing to this listener.
func TestNoNoticeWithoutAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(changes)
		s, f, end := listenOnPipe(t, Config{Changes: func(caller string) (uint64, <-chan struct{}) {
			_, changed := c.of(caller)
			return 7, changed
		}}, modernHeader(mcp.MethodListen, ""), listenBody(`"toolsListChanged":true`))
		s.want(toolsAck)
		c.add()
		synctest.Wait()
		f.EndStreams()
		s.want(listenResult)
		end()
	})
}

func TestListenerThatGoes(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		synctest.Test(t, func(t *testing.T) {
			s, f, end := listenSomehow(t, method, Config{Changes: new(changes).of})
			s.event()
			s.conn.Close()
			synctest.Wait()
			if n := served(f); n != 0 {
				t.Errorf("%s: %d requests are served after the client has gone", method, n)
			}
			if len(f.sessions.streams) != 0 {
				t.Errorf("%s: the stream is still known", method)
			}
			end()
		})
	}
}

// A client that has closed its half of the connection has gone, and is sent nothing more.
func TestListenerThatClosesItsHalf(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		c := new(changes)
		_, server := start(t, Config{Changes: c.of})
		h, body := modernHeader(mcp.MethodListen, ""), listenBody(`"toolsListChanged":true`)
		if method == http.MethodGet {
			h, body = header("Mcp-Session-Id", initialize(t, server.URL+"/mcp", mcp.LegacyLatest)), ""
		}
		s := openRaw(t, dial(t, server.Listener.Addr().String()), method, h, body)
		s.event()
		if err := s.conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		server.Close() // it waits for the handler
		if got, err := io.ReadAll(s.conn); len(got) > 0 || err != nil {
			t.Errorf("%s: the client is sent %q, %v after it has closed, want nothing", method, got, err)
		}
	}
}

// listenSomehow listens as a modern client by POST, or as a legacy one by GET.
func listenSomehow(t *testing.T, method string, cfg Config) (*rawStream, *Front, func()) {
	if method == http.MethodPost {
		return listenOnPipe(t, cfg, modernHeader(mcp.MethodListen, ""), listenBody(`"toolsListChanged":true`))
	}
	token := newSession(mcp.LegacyLatest, 0, "", time.Now()).token(testRing(t))
	return listenOnPipe(t, cfg, header("Mcp-Session-Id", token), "")
}

// However much changes, a client that reads nothing is written one event, and is dropped when its patience is over.
func TestListenerThatTakesNothing(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		synctest.Test(t, func(t *testing.T) {
			c := new(changes)
			s, f, end := listenSomehow(t, method, Config{Changes: c.of, Keepalive: time.Second})
			s.event()
			for range 100 {
				c.add()
			}
			<-time.After(clientPatience - time.Nanosecond)
			if served(f) != 1 {
				t.Errorf("%s: dropped before its time", method)
			}
			<-time.After(time.Nanosecond)
			synctest.Wait()
			if served(f) != 0 {
				t.Errorf("%s: still served after %v", method, clientPatience)
			}
			end()
		})
	}
}

func TestStreamEndsWithItsSession(t *testing.T) {
	t.Run("by DELETE", func(t *testing.T) {
		_, server := start(t, Config{Changes: new(changes).of})
		url := server.URL + "/mcp"
		token, other := initialize(t, url, mcp.LegacyLatest), initialize(t, url, mcp.LegacyLatest)
		s := openRaw(t, dial(t, server.Listener.Addr().String()), http.MethodGet, header("Mcp-Session-Id", token), "")
		send(t, http.MethodDelete, url, header("Mcp-Session-Id", other), "").want(t, http.StatusOK)
		s.want(comment)
		send(t, http.MethodDelete, url, header("Mcp-Session-Id", token), "").want(t, http.StatusOK)
		s.want("end")
	})
	t.Run("at its expiry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			s, _, end := listenSomehow(t, http.MethodGet, Config{Changes: new(changes).of, Keepalive: sessionLife/2 + time.Second})
			s.want(comment, comment, "end")
			// The token counts in seconds.
			if lived := time.Since(began); lived > sessionLife || lived <= sessionLife-time.Second {
				t.Errorf("the stream lived for %v, want %v", lived, sessionLife)
			}
			end()
		})
	})
}

// A session that ends between its check and its stream gets none.
func TestSessionEndsWhileItsStreamOpens(t *testing.T) {
	var end func()
	_, server := start(t, Config{Changes: func(string) (uint64, <-chan struct{}) {
		end()
		return 0, nil
	}})
	url := server.URL + "/mcp"
	h := header("Mcp-Session-Id", initialize(t, url, mcp.LegacyLatest))
	end = func() { send(t, http.MethodDelete, url, h, "").want(t, http.StatusOK) }
	send(t, http.MethodGet, url, h, "").want(t, http.StatusNotFound, "initialize again")
}

// A writer that fails ends the listening, also where nobody says that the client has gone.
func TestListenerThatCannotBeWrittenTo(t *testing.T) {
	for writes := range 2 {
		c := new(changes)
		f := New(Config{Dispatch: canned, Ring: testRing(t), Log: slog.New(slog.DiscardHandler), Changes: func(caller string) (uint64, <-chan struct{}) {
			defer c.add() // something always changes
			return c.of(caller)
		}})
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(listenBody(`"toolsListChanged":true`)))
		r.Header = modernHeader(mcp.MethodListen, "")
		func() {
			defer func() {
				if v := recover(); v != http.ErrAbortHandler {
					t.Errorf("after %d writes the handler ends with %v, want ErrAbortHandler", writes, v)
				}
			}()
			f.ServeHTTP(&breaking{sink: sink{header: http.Header{}}, writes: writes}, r)
		}()
	}
}

// A breaking writer takes some writes and no more.
type breaking struct {
	sink
	writes int
}

func (b *breaking) Write(text []byte) (int, error) {
	if b.writes--; b.writes < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(text), nil
}

func (b *breaking) Flush() {}

func TestNewerStreamTakesThePlaceOfTheOlder(t *testing.T) {
	c := new(changes)
	_, server := start(t, Config{Changes: c.of})
	address := server.Listener.Addr().String()
	h := header("Mcp-Session-Id", initialize(t, server.URL+"/mcp", mcp.LegacyLatest))
	older := openRaw(t, dial(t, address), http.MethodGet, h, "")
	older.want(comment)
	other := openRaw(t, dial(t, address), http.MethodGet, header("Mcp-Session-Id", initialize(t, server.URL+"/mcp", mcp.LegacyLatest)), "")
	newer := openRaw(t, dial(t, address), http.MethodGet, h, "")
	older.want("end")
	c.add()
	newer.want(comment, toolsNotice)
	other.want(comment, toolsNotice)
}

// What listens for days must not keep what it was sent.
func TestListenersKeepNoBody(t *testing.T) {
	const listeners, large = 8, 512 << 10
	f, server := start(t, Config{Changes: new(changes).of})
	body := listenBody(`"x":"` + strings.Repeat("x", large) + `"`)
	before := heap()
	for range listeners {
		s := openRaw(t, dial(t, server.Listener.Addr().String()), http.MethodPost, modernHeader(mcp.MethodListen, ""), body)
		s.event()
	}
	if grown := heap() - before; grown > 2*large {
		t.Errorf("%d listeners keep %d bytes", listeners, grown)
	}
	f.EndStreams()
}

func heap() int64 {
	// What pools keep goes with the second collection.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// A client hears of what its caller sees, and of nothing else.
func TestListenersOfCallers(t *testing.T) {
	alice, bob := new(changes), new(changes)
	f, server := start(t, Config{
		Changes: func(caller string) (uint64, <-chan struct{}) {
			return map[string]*changes{"alice": alice, "bob": bob}[caller].of(caller)
		},
		Authenticate: func(r *http.Request) (Caller, error) { return Caller{Name: r.Header.Get("Authorization")}, nil },
	})
	listen := func(caller string) *rawStream {
		s := openRaw(t, dial(t, server.Listener.Addr().String()), http.MethodPost,
			modernHeader(mcp.MethodListen, "", "Authorization", caller), listenBody(`"toolsListChanged":true`))
		s.want(toolsAck)
		return s
	}
	a, b := listen("alice"), listen("bob")
	bob.add()
	b.want(taggedNotice)
	f.EndStreams()
	b.want(listenResult)
	a.want(listenResult)
}
