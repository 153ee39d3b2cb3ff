package legacy

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

// A stream that ends before the response is resumed where it was, however often, and the call hears of nothing.
func TestABrokenStreamIsResumed(t *testing.T) {
	var mu sync.Mutex
	var resumed []string
	var id string
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		mu.Lock()
		defer mu.Unlock()
		last := r.Header.Get("Last-Event-Id")
		switch {
		case r.what == mcp.MethodToolsCall:
			id = r.id
			r.events(w, "id: a\nretry: 100\ndata:\n\n")
			return true
		case r.what != http.MethodGet || last == "":
			return false
		}
		resumed = append(resumed, last+" "+r.session+" "+r.Header.Get(mcp.HeaderVersion))
		r.id = id
		switch len(resumed) {
		case 1:
			r.events(w, "id: b\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":1}}\n\n")
		case 2:
			w.WriteHeader(503)
		case 3:
			r.events(w, ": nothing yet\n\n")
		default:
			r.events(w, "id: c\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"late\":1}}\n\n")
		}
		return true
	})
	u, _ := overHTTP(t, s.URL)
	var told []string
	got, err := askWith(t, u, &upstream.Request{Notify: func(n upstream.Notification) { told = append(told, string(n.Params.Raw())) }})
	if got != `{"late":1}` || strings.Join(told, " ") != `{"data":1}` {
		t.Errorf("the call gave %s (%v) and told %s", got, err, told)
	}
	const want = "a s-1 2025-11-25, b s-1 2025-11-25, b s-1 2025-11-25, b s-1 2025-11-25"
	if got := strings.Join(resumed, ", "); got != want {
		t.Errorf("resumed %s, want %s", got, want)
	}
}

func TestAStreamThatCannotBeResumedIsLost(t *testing.T) {
	for name, event := range map[string]string{
		"no id":           "data:\n\n",
		"an id taken off": "id: a\ndata:\n\nid:\ndata:\n\n",
		"no GET":          "id: a\nretry: 100\ndata:\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
				if r.what == mcp.MethodToolsCall {
					r.events(w, event)
					return true
				}
				return false
			})
			u, _ := overHTTP(t, s.URL)
			_, err := ask(t, u)
			wantError(t, err, upstream.NoResponse, upstream.ConnectionLost)
		})
	}
}

func TestACallEndsWhileItsStreamIsResumed(t *testing.T) {
	began := make(chan struct{})
	canceled := make(chan string, 1)
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		switch {
		case r.what == mcp.MethodToolsCall:
			r.events(w, "id: a\nretry: 86400000\ndata:\n\n")
			close(began)
			return true
		case r.what == mcp.NotificationCancelled:
			canceled <- r.body
		}
		return false
	})
	u, _ := overHTTP(t, s.URL)
	upstreamtest.Await(t, u, upstream.Live)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := call(ctx, u, "any")
	<-began
	cancel(context.DeadlineExceeded)
	wantError(t, <-done, upstream.NoResponse, upstream.Deadline)
	if got := <-canceled; !strings.Contains(got, `"requestId":2,"reason":"its deadline passed"`) {
		t.Errorf("the server was told %s", got)
	}
}

// The server hears of a cancel before the stream ends, and the caller waits for neither.
func TestACancelGoesBeforeTheEndOfTheStream(t *testing.T) {
	arrived, heardOf, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	var open atomic.Bool
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		switch r.what {
		case mcp.MethodToolsCall:
			open.Store(true)
			close(arrived)
			<-r.Context().Done()
			open.Store(false)
			close(ended)
			return true
		case mcp.NotificationCancelled:
			if r.session != "s-1" || r.Header.Get(mcp.HeaderVersion) != mcp.Revision20251125 {
				t.Errorf("the cancel came in session %q", r.session)
			}
			close(heardOf)
			<-release
			if !open.Load() {
				t.Error("the stream ended before the cancel was taken")
			}
		}
		return false
	})
	u, _ := overHTTP(t, s.URL)
	ctx, cancel := context.WithCancel(t.Context())
	done := call(ctx, u, "any")
	<-arrived
	cancel()
	wantError(t, <-done, upstream.NoResponse, upstream.Canceled)
	<-heardOf
	close(release)
	<-ended
}

// The server's own stream tells of changed lists, asks, and reports the progress of a call that has another stream.
func TestTheServersOwnStream(t *testing.T) {
	say := make(chan string)
	var mu sync.Mutex
	var answers []string
	answered := make(chan struct{}, 2)
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		switch r.what {
		case http.MethodGet:
			if last := r.Header.Get("Last-Event-Id"); last != "" {
				mu.Lock()
				answers = append(answers, "again after "+last)
				mu.Unlock()
				answered <- struct{}{}
			}
			r.events(w, "id: x\nretry: 100\ndata:\n\n")
			for text := range say {
				if text == "" {
					return true
				}
				r.events(w, "data: "+text+"\n\n")
			}
			return true
		case "answer":
			mu.Lock()
			answers = append(answers, r.session+" "+r.body)
			mu.Unlock()
			answered <- struct{}{}
		case mcp.MethodToolsCall:
			say <- `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}`
			say <- `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":99,"progress":1}}`
			say <- `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}`
			say <- `no JSON`
			say <- `{"jsonrpc":"2.0","id":"p","method":"ping"}`
			<-answered
		}
		return false
	})
	u, _ := overHTTP(t, s.URL)
	defer close(say)
	var told []string
	got, err := askWith(t, u, &upstream.Request{
		Params: object(t, `{"name":"any","_meta":{"progressToken":"é"}}`),
		Notify: func(n upstream.Notification) { told = append(told, string(n.Params.Raw())) },
	})
	if got != `{"by":"s-1"}` || strings.Join(told, " ") != `{"progressToken":"é","progress":1}` {
		t.Errorf("the call gave %s (%v) and told %s", got, err, told)
	}
	status, changed := u.Status()
	say <- `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	<-changed
	if now, _ := u.Status(); now.Changes.Tools != status.Changes.Tools+1 {
		t.Errorf("%d lists have changed", now.Changes.Tools-status.Changes.Tools)
	}
	say <- "" // the stream ends, which is no fault
	<-answered
	if now, _ := u.Status(); now.State != upstream.Live || now.Session != 1 {
		t.Errorf("status after the end of the stream is %+v", now)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := `s-1 {"jsonrpc":"2.0","id":"p","result":{}}, again after x`; strings.Join(answers, ", ") != want {
		t.Errorf("the server got %s, want %s", answers, want)
	}
}

// A stream that is refused where it was open before tells of the session, before a call has to find out.
func TestAStreamThatFindsItsSessionGone(t *testing.T) {
	for status, heard := range map[int]string{404: "notifications/initialized s-2", 400: "ping s-1"} {
		u, s := refusesSecondStream(t, status)
		for !strings.Contains(s.told(), heard) {
			if _, err := ask(t, u); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func refusesSecondStream(t *testing.T, status int) (*Upstream, *stage) {
	var opened atomic.Int64
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		switch {
		case r.what != http.MethodGet || r.session != "s-1":
			return false
		case opened.Add(1) == 1:
			r.events(w, "retry: 100\n\n")
		default:
			w.WriteHeader(status)
		}
		return true
	})
	u, _ := overHTTP(t, s.URL)
	return u, s
}

// Servers of 2025-03-26 may put their messages into arrays.
func TestBatches(t *testing.T) {
	const batch = `[{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}},{"jsonrpc":"2.0","id":"r","method":"roots/list"},{"jsonrpc":"2.0","id":77,"result":{}},{"jsonrpc":"2.0","id":ID,"result":{"batched":1}}]`
	for name, send := range map[string]func(w http.ResponseWriter, r *heard){
		"body":  func(w http.ResponseWriter, r *heard) { r.json(w, 200, batch) },
		"event": func(w http.ResponseWriter, r *heard) { r.events(w, "data: "+batch+"\n\n") },
	} {
		t.Run(name, func(t *testing.T) {
			for _, revision := range []string{mcp.Revision20250326, mcp.Revision20250618} {
				refused := make(chan string, 1)
				s := newStage(t, revision, func(w http.ResponseWriter, r *heard) bool {
					switch r.what {
					case mcp.MethodToolsCall:
						send(w, r)
						return true
					case "answer":
						refused <- r.body
					}
					return false
				})
				u, _ := overHTTP(t, s.URL)
				told := 0
				got, err := askWith(t, u, &upstream.Request{Notify: func(upstream.Notification) { told++ }})
				if revision != mcp.Revision20250326 {
					wantError(t, err, upstream.NoResponse, upstream.Unusable)
					continue
				}
				if got != `{"batched":1}` || told != 1 {
					t.Errorf("the call gave %s (%v) and told %d", got, err, told)
				}
				if got := <-refused; !strings.Contains(got, `"id":"r","error":{"code":-32601`) {
					t.Errorf("the server's request was answered with %s", got)
				}
			}
		})
	}
}

// A server that asks without end and takes no answers gets some, and its call is answered all the same.
func TestAServerThatAsksWithoutEnd(t *testing.T) {
	var answers atomic.Int64
	release := make(chan struct{})
	s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
		switch r.what {
		case mcp.MethodToolsCall:
			r.events(w, strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n", 10*maxAnswers))
			r.events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"ok\":1}}\n\n")
			return true
		case "answer":
			answers.Add(1)
			<-release
		}
		return false
	})
	u, out := overHTTP(t, s.URL)
	if got, err := ask(t, u); got != `{"ok":1}` {
		t.Errorf("the call gave %s (%v)", got, err)
	}
	close(release)
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if n := answers.Load(); n > maxAnswers {
		t.Errorf("%d answers were on their way, want at most %d", n, maxAnswers)
	}
	if got := strings.Count(out.String(), "asks faster than it takes answers"); got != 1 {
		t.Errorf("that was logged %d times, want once", got)
	}
}
