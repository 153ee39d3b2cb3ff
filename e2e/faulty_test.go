package e2e

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// A fault is one wrong answer to a call, and what the gateway makes of it.
type fault struct {
	name   string
	answer func(f *faulty, w http.ResponseWriter, r *http.Request, req cannedRequest)
	want   verdict // of a modern server; its upstream and method are those of the test
	// Of a legacy server, where it is another.
	legacy *verdict
	// Where the call succeeds after all, how long its text is.
	length int
}

// large is the length of a text that is within bounds, and huge of one that is not.
const (
	large = 5 << 20
	huge  = 33 << 20
)

func httpFailure(status int) verdict {
	return verdict{Outcome: "no-response", Cause: "http-error", Retry: "check", HTTPStatus: status}
}

func refusal(status int) verdict {
	return verdict{Outcome: "error-response", Cause: "refused", Retry: "no", HTTPStatus: status}
}

var (
	unusable  = verdict{Outcome: "no-response", Cause: "unusable", Retry: "check", HTTPStatus: http.StatusOK}
	lost      = verdict{Outcome: "no-response", Cause: "connection-lost", Retry: "check"}
	notFound  = httpFailure(http.StatusNotFound)
	elsewhere atomic.Pointer[httptest.Server] // where the fault redirect sends its callers
)

func status(code int) func(*faulty, http.ResponseWriter, *http.Request, cannedRequest) {
	return func(_ *faulty, w http.ResponseWriter, _ *http.Request, _ cannedRequest) {
		http.Error(w, http.StatusText(code), code)
	}
}

// body answers with a content type and whatever write writes.
func body(media string, write func(f *faulty, w io.Writer, req cannedRequest)) func(*faulty, http.ResponseWriter, *http.Request, cannedRequest) {
	return func(f *faulty, w http.ResponseWriter, _ *http.Request, req cannedRequest) {
		w.Header().Set("Content-Type", media)
		write(f, w, req)
	}
}

var faults []fault

func init() {
	const page = "<!doctype html><html><title>Sign in</title></html>"
	event := func(f *faulty, w io.Writer, req cannedRequest, n int) {
		fmt.Fprintf(w, "event: message\ndata: %s\n\n", message(req, f.text(strings.Repeat("x", n))))
	}
	faults = []fault{
		{name: "s401", answer: status(401), want: refusal(401)},
		{name: "s403", answer: status(403), want: refusal(403)},
		// With a session it says that the session has ended. That a new one gets it as well says that it had not.
		{name: "s404", answer: status(404), want: httpFailure(404), legacy: &notFound},
		{name: "s429", answer: status(429), want: httpFailure(429)},
		{name: "s500", answer: status(500), want: httpFailure(500)},
		{name: "s503", answer: body("text/html", func(_ *faulty, w io.Writer, _ cannedRequest) {
			w.(http.ResponseWriter).WriteHeader(503)
			fmt.Fprint(w, page)
		}), want: httpFailure(503)},
		{name: "html", answer: body("text/html; charset=utf-8", func(_ *faulty, w io.Writer, _ cannedRequest) { fmt.Fprint(w, page) }), want: unusable},
		{name: "html-as-json", answer: body("application/json", func(_ *faulty, w io.Writer, _ cannedRequest) { fmt.Fprint(w, page) }), want: unusable},
		{name: "empty", answer: body("application/json", func(*faulty, io.Writer, cannedRequest) {}), want: unusable},
		{name: "no-type", answer: func(_ *faulty, w http.ResponseWriter, _ *http.Request, _ cannedRequest) {
			w.Header()["Content-Type"] = nil
			w.WriteHeader(http.StatusOK)
		}, want: unusable},
		{name: "hung-up", answer: func(*faulty, http.ResponseWriter, *http.Request, cannedRequest) { panic(http.ErrAbortHandler) }, want: lost},
		{name: "gzip", answer: func(f *faulty, w http.ResponseWriter, _ *http.Request, req cannedRequest) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, message(req, f.text("zipped")))
			z.Close()
		}, want: unusable},
		{name: "gzip-unnamed", answer: body("application/json", func(f *faulty, w io.Writer, req cannedRequest) {
			z := gzip.NewWriter(w)
			fmt.Fprint(z, message(req, f.text("zipped")))
			z.Close()
		}), want: unusable},
		{name: "redirect", answer: func(_ *faulty, w http.ResponseWriter, r *http.Request, _ cannedRequest) {
			http.Redirect(w, r, elsewhere.Load().URL, http.StatusTemporaryRedirect)
		}, want: httpFailure(307)},
		{name: "events-as-json", answer: body("application/json", func(f *faulty, w io.Writer, req cannedRequest) { event(f, w, req, 4) }), want: unusable},
		{name: "json-as-events", answer: body("text/event-stream", func(f *faulty, w io.Writer, req cannedRequest) {
			fmt.Fprint(w, message(req, f.text("x")))
		}), want: unusable},
		{name: "large-line", length: large, answer: body("application/json", func(f *faulty, w io.Writer, req cannedRequest) {
			fmt.Fprint(w, message(req, f.text(strings.Repeat("x", large))))
		})},
		{name: "large-event", length: large, answer: body("text/event-stream", func(f *faulty, w io.Writer, req cannedRequest) { event(f, w, req, large) })},
		{name: "huge-line", answer: body("application/json", func(f *faulty, w io.Writer, req cannedRequest) {
			fmt.Fprint(w, message(req, f.text(strings.Repeat("x", huge))))
		}), want: verdict{Outcome: "no-response", Cause: "too-large", Retry: "check", HTTPStatus: 200}},
		{name: "huge-event", answer: body("text/event-stream", func(f *faulty, w io.Writer, req cannedRequest) { event(f, w, req, huge) }),
			want: verdict{Outcome: "no-response", Cause: "too-large", Retry: "check", HTTPStatus: 200}},
	}
}

// inFlight is how many other calls run while one meets a fault.
const inFlight = 8

// TestFaultyUpstreams answers calls in every wrong way, while others run on the same upstream that notice nothing.
func TestFaultyUpstreams(t *testing.T) {
	var followed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	elsewhere.Store(other)
	t.Cleanup(func() {
		other.Close()
		if n := followed.Load(); n > 0 {
			t.Errorf("%d requests followed the redirect", n)
		}
	})
	for _, era := range []struct {
		name, pin string
		modern    bool
	}{{"modern", "", true}, {"legacy", legacyPin, false}} {
		t.Run(era.name, func(t *testing.T) {
			t.Parallel()
			web := newFaulty(t, era.modern)
			g := serve(t, "upstreams:\n  web: {url: "+quoted(web.URL)+era.pin+"}\n")
			running := heldCalls(t, g, web)
			for _, c := range faults {
				t.Run(c.name, func(t *testing.T) { meets(t, g, web, c) })
			}
			web.release()
			unharmed(t, running)
			if r := call(t, g, "web__fine"); textOf(r) != "fine" {
				t.Errorf("afterwards: %v", r)
			}
		})
	}
}

// meets calls a tool that answers wrongly.
func meets(t *testing.T, g *gateway, web *faulty, c fault) {
	before := web.asked(c.name)
	r := call(t, g, "web__"+c.name)
	want, times := c.want, 1
	if c.legacy != nil && !web.modern {
		want, times = *c.legacy, 2
	}
	want.Upstream, want.Method = "web", "tools/call"
	v, text, failed := failed(r)
	switch {
	case c.length > 0 && len(textOf(r)) != c.length:
		t.Errorf("the text has %d bytes, want %d: %v", len(textOf(r)), c.length, r)
	case c.length == 0 && (!failed || v != want || text == ""):
		t.Errorf("got %+v %q, want %+v: %v", v, text, want, r)
	}
	if n := web.asked(c.name) - before; n != times {
		t.Errorf("the server was called %d times, want %d", n, times)
	}
}

// heldCalls starts calls that answer once the server is told to release them.
func heldCalls(t *testing.T, g *gateway, web *faulty) []<-chan reply {
	t.Helper()
	running := make([]<-chan reply, inFlight)
	for i := range running {
		running[i] = started(t, g.URL, "web__held")
	}
	for range running {
		<-web.entered
	}
	return running
}

func unharmed(t *testing.T, running []<-chan reply) {
	t.Helper()
	for _, done := range running {
		if r := <-done; textOf(r) != "held" {
			t.Errorf("a call that was in flight: %v", r)
		}
	}
}

// textOf is the first text of a result that is no error.
func textOf(r reply) string {
	var result struct {
		IsError bool
		Content []struct{ Text string }
	}
	if json.Unmarshal(r.result, &result) != nil || result.IsError || len(result.Content) == 0 {
		return ""
	}
	return result.Content[0].Text
}

// TestFaultyLists has servers whose list is no list, or a very long one, while calls run.
func TestFaultyLists(t *testing.T) {
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("tool-%04d", i)
	}
	for _, c := range []struct {
		name   string
		list   func(cursor *string) string
		listed []string
		says   string
	}{
		{"a page for ever", func(cursor *string) string {
			n := 1
			if cursor != nil {
				fmt.Sscan(*cursor, &n)
			}
			return toolsNamed(fmt.Sprintf("tool-%d", n)) + fmt.Sprintf(`,"nextCursor":"%d"`, n+1)
		}, nil, "pages"},
		{"the same page for ever", func(*string) string { return toolsNamed("fine") + `,"nextCursor":"again"` }, nil, "repeats a cursor"},
		{"no tools", func(*string) string { return `"items":[]` }, nil, "no tools"},
		{"5,000 tools", func(*string) string { return toolsNamed(many...) }, many, ""},
	} {
		for era, pin := range map[string]string{"modern": "", "legacy": legacyPin} {
			t.Run(c.name+"/"+era, func(t *testing.T) {
				t.Parallel()
				web := newFaulty(t, era == "modern")
				g := serve(t, "upstreams:\n  web: {url: "+quoted(web.URL)+pin+"}\n")
				g.allListed(t)
				before, _ := listed(t, modernClient{g.URL})
				running := heldCalls(t, g, web)
				web.lists(c.list)
				// A name that is not in the list makes the gateway ask for the list once more.
				call(t, g, "web__"+many[0])
				if c.listed == nil {
					g.await(t, "what is wrong with the list", func(output string) bool { return strings.Contains(output, c.says) })
					if names, _ := listed(t, modernClient{g.URL}); !slices.Equal(names, before) {
						t.Errorf("listed are %q, were %q", names, before)
					}
				} else {
					for _, client := range []rawClient{modernClient{g.URL}, handshake(t, g.URL, "2025-11-25")} {
						if names, _ := listed(t, client); !slices.Equal(names, withNames("web__", c.listed)) {
							t.Errorf("%d tools are listed, want %d", len(names), len(c.listed))
						}
					}
				}
				web.release()
				unharmed(t, running)
			})
		}
	}
}

func withNames(prefix string, names []string) []string {
	prefixed := slices.Clone(names)
	for i := range prefixed {
		prefixed[i] = prefix + prefixed[i]
	}
	return prefixed
}

func faultNames() []string {
	var names []string
	for _, fault := range faults {
		names = append(names, fault.name)
	}
	return names
}

// TestASilentCallDelaysNobody has a call that is never answered on every kind of transport, and others beside it.
func TestASilentCallDelaysNobody(t *testing.T) {
	modern, legacy := newFaulty(t, true), newFaulty(t, false)
	pipe, modernPipe := newCannedStdio(t, "faulty"), newCannedStdio(t, "faulty-modern")
	const limit = "    timeout: 3s\n"
	g := serve(t, "upstreams:\n"+
		"  web:\n    url: "+modern.URL+"\n"+limit+"  old:\n    url: "+legacy.URL+"\n    protocol: legacy\n"+limit+
		"  pipe:\n"+pipe.command()+limit+"  new:\n"+modernPipe.command()+"    protocol: modern\n"+limit)
	g.allListed(t)
	for upstream, arrived := range map[string]func() bool{
		"web":  func() bool { return modern.asked("silent") == 1 },
		"old":  func() bool { return legacy.asked("silent") == 1 },
		"pipe": func() bool { return len(pipe.calls(t)) == 1 },
		"new":  func() bool { return len(modernPipe.calls(t)) == 1 },
	} {
		t.Run(upstream, func(t *testing.T) {
			t.Parallel()
			silent := started(t, g.URL, upstream+"__silent")
			if !eventually(patience, arrived) {
				t.Fatal("the silent call never arrived")
			}
			running := make([]<-chan reply, inFlight)
			for i := range running {
				running[i] = started(t, g.URL, upstream+"__fine")
			}
			for _, done := range running {
				if r := <-done; textOf(r) != "fine" {
					t.Errorf("a call beside it: %v", r)
				}
			}
			want := verdict{"no-response", "deadline", upstream, "tools/call", "check", 0}
			if v, text, ok := failed(<-silent); !ok || v != want || text == "" {
				t.Errorf("the silent call: %+v %q, want %+v", v, text, want)
			}
		})
	}
	t.Cleanup(func() {
		// The subtests have run by now. Closing the stream is what cancels a modern call over HTTP.
		if n := modern.asked("notifications/cancelled"); n != 0 {
			t.Errorf("the modern server over HTTP was sent %d cancels", n)
		}
		if !eventually(patience, func() bool { return legacy.asked("notifications/cancelled") == 1 }) {
			t.Error("the legacy server over HTTP was sent no cancel, or several")
		}
	})
}

// TestFaultyPipes is TestFaultyUpstreams over stdio, where a fault can only be in what a line says.
func TestFaultyPipes(t *testing.T) {
	for role, pin := range map[string]string{"faulty": "legacy", "faulty-modern": "modern"} {
		t.Run(pin, func(t *testing.T) {
			t.Parallel()
			pipe := newCannedStdio(t, role)
			g := serve(t, "upstreams:\n  pipe:\n"+pipe.command()+"    protocol: "+pin+"\n")
			running := make([]<-chan reply, inFlight)
			for i := range running {
				running[i] = started(t, g.URL, "pipe__held")
			}
			if !eventually(patience, func() bool { return len(pipe.calls(t)) == inFlight }) {
				t.Fatal("the calls never arrived")
			}
			for name, length := range map[string]int{"fine": len("fine"), "noise": len("noise"), "large-line": large} {
				if r := call(t, g, "pipe__"+name); len(textOf(r)) != length {
					t.Errorf("%s: the text has %d bytes, want %d: %v", name, len(textOf(r)), length, r)
				}
			}
			want := verdict{"no-response", "too-large", "pipe", "tools/call", "check", 0}
			if v, text, ok := failed(call(t, g, "pipe__huge-line")); !ok || v != want || text == "" {
				t.Errorf("huge-line: %+v %q, want %+v", v, text, want)
			}
			if r := call(t, g, "pipe__release"); textOf(r) != "release" {
				t.Errorf("afterwards: %v", r)
			}
			unharmed(t, running)
		})
	}
}
