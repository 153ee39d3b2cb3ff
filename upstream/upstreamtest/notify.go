package upstreamtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
)

// A record is what a call was notified of.
type record struct {
	mu       sync.Mutex
	got      []string
	returned bool
	late     bool
}

func (r *record) notify(n upstream.Notification) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = r.late || r.returned
	r.got = append(r.got, n.Method+" "+string(n.Params.Raw()))
}

// done ends the record with its call, and checks it.
func (r *record) done(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returned = true
	if !slices.Equal(r.got, want) {
		t.Errorf("the call was notified of %q, want %q", r.got, want)
	}
}

// Callers may use the same token: on the wire each call has its own, and each caller gets its own back, as it was written.
func testProgress(t *testing.T, tr Transport) {
	const progress = `"progress":%d,"total":1.0,"message":"é"`
	tokens := map[string]string{"a": `"t\u0031"`, "b": `"t\u0031"`, "c": `12345678901234567890`, "d": `1`}
	var together sync.WaitGroup
	together.Add(len(tokens))
	seen := make(chan string, len(tokens))
	u := start(t, tr, func(r *Request) {
		token := r.progressToken()
		seen <- token
		together.Done()
		together.Wait() // so that all are in flight at once
		report := func(token string, n int) {
			r.Notification(mcp.NotificationProgress, `"progressToken":`+token+`,`+fmt.Sprintf(progress, n))
		}
		report(token, 1)
		report(`"`+token+`"`, 2) // of another type
		report(`987654321`, 3)   // nobody's
		report(`"t\u0031"`, 4)   // what a caller calls it
		report(token+`.0`, 5)    // not as it was given
		report(token, 6)
		r.Result("")
		report(token, 7) // late
	})
	calls, records := make(map[string]<-chan done), make(map[string]*record)
	for name, token := range tokens {
		records[name] = new(record)
		calls[name] = callWith(t.Context(), u, name, `"_meta":{"progressToken":`+token+`}`, records[name].notify)
	}
	for name, token := range tokens {
		(<-calls[name]).result(t, tr, "")
		var want []string
		for _, n := range []int{1, 6} {
			want = append(want, mcp.NotificationProgress+` {"progressToken":`+token+`,`+fmt.Sprintf(progress, n)+`}`)
		}
		records[name].done(t, want...)
	}
	distinct := make(map[string]bool)
	for range tokens {
		distinct[<-seen] = true
	}
	if len(distinct) != len(tokens) {
		t.Errorf("%d calls went out with the tokens %v", len(tokens), distinct)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	for name, r := range records {
		if r.late {
			t.Errorf("call %s was notified after it had returned", name)
		}
	}
}

// A token that nobody listens to goes nowhere, and progress without one comes from nowhere.
func testNoProgress(t *testing.T, tr Transport) {
	u := start(t, tr, func(r *Request) {
		if token := r.progressToken(); token != "" {
			t.Errorf("the server got the token %s", token)
		}
		for _, token := range []string{`"t"`, "1", "2", "3", "4", string(r.Message.ID)} {
			r.Notification(mcp.NotificationProgress, `"progressToken":`+token+`,"progress":1`)
		}
		r.Result("")
	})
	(<-callWith(t.Context(), u, "deaf", `"_meta":{"progressToken":"t"}`, nil)).result(t, tr, "")
	for _, meta := range []string{`{}`, `{"progressToken":null}`, `{"progressToken":{}}`} {
		var r record
		(<-callWith(t.Context(), u, "none", `"_meta":`+meta, r.notify)).result(t, tr, "")
		r.done(t)
	}
}

// A caller that takes its notifications slowly, however many there are, is waited for by nobody else.
func testSlowCaller(t *testing.T, tr Transport) {
	const flood = 500
	sent := make(chan struct{})
	u := start(t, tr, func(r *Request) {
		if r.Name() == "slow" {
			for n := range flood {
				r.Notification(mcp.NotificationProgress, fmt.Sprintf(`"progressToken":%s,"progress":%d`, r.progressToken(), n))
			}
			close(sent)
		}
		r.Result("")
	})
	taken, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	slow := callWith(t.Context(), u, "slow", `"_meta":{"progressToken":"t"}`, func(upstream.Notification) {
		once.Do(func() { close(taken) })
		<-release
	})
	<-taken
	<-sent
	(<-call(t.Context(), u, "other", "{}")).result(t, tr, "")
	close(release)
	(<-slow).result(t, tr, "")
}

// A log message belongs to a call where it comes in that call's own response, and to nobody where it does not.
func testLogMessages(t *testing.T, tr Transport) {
	const message = `"level":"info","logger":"l","data":{"n":1.0}`
	u := start(t, tr, func(r *Request) {
		r.Notification(mcp.NotificationMessage, message)
		r.Result("")
	})
	var r record
	(<-callWith(t.Context(), u, "any", `"_meta":{}`, r.notify)).result(t, tr, "")
	if tr.Alone {
		r.done(t, mcp.NotificationMessage+" {"+message+"}")
	} else {
		r.done(t)
	}
}

// A server that takes a call and never says a word is left at the deadline, and told so.
func testSilence(t *testing.T, tr Transport) {
	told := make(chan struct{})
	u := start(t, tr, func(r *Request) {
		if r.Name() != "silent" {
			r.Result("")
			return
		}
		<-r.Canceled
		close(told)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	(<-call(ctx, u, "silent", "{}")).failed(t, upstream.NoResponse, upstream.Deadline)
	<-told
	(<-call(t.Context(), u, "next", "{}")).result(t, tr, "")
}
