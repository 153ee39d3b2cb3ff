package legacy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

// During each of these failures another call is in flight, which then succeeds.
func TestAPOSTThatFailsIsItsCallsAlone(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer elsewhere.Close()
	for _, test := range []struct {
		status  int
		outcome upstream.Outcome
		cause   upstream.Cause
		sent    int
	}{
		{302, upstream.NoResponse, upstream.HTTPError, 1},
		{400, upstream.NoResponse, upstream.HTTPError, 1},
		{401, upstream.ErrorResponse, upstream.Refused, 2},
		{403, upstream.ErrorResponse, upstream.Refused, 1},
		{404, upstream.NoResponse, upstream.HTTPError, 1},
		{429, upstream.NoResponse, upstream.HTTPError, 1},
		{500, upstream.NoResponse, upstream.HTTPError, 1},
	} {
		t.Run(fmt.Sprint(test.status), func(t *testing.T) {
			arrived, release := make(chan struct{}), make(chan struct{})
			sent := make(chan struct{}, 10)
			s := &streamServer{
				h: func(r *upstreamtest.Request) {
					close(arrived)
					r.Wait(release)
					r.Result("")
				},
				post: func(w http.ResponseWriter, _ *http.Request, body string) bool {
					if !strings.Contains(body, `"refused"`) {
						return false
					}
					sent <- struct{}{}
					w.Header().Set("Location", elsewhere.URL)
					w.WriteHeader(test.status)
					return true
				},
			}
			u, _ := streamUpstream(t, streams(t, s), func(c *Config) { c.SSE.Credential = new(counted) })
			other := call(t.Context(), u, "other")
			<-arrived
			wantError(t, <-call(t.Context(), u, "refused"), test.outcome, test.cause)
			if len(sent) != test.sent {
				t.Errorf("sent %d times, want %d", len(sent), test.sent)
			}
			close(release)
			if err := <-other; err != nil {
				t.Error(err)
			}
			if status, _ := u.Status(); status.Session != 1 {
				t.Errorf("session %d", status.Session)
			}
		})
	}
}

// The reply may come before the POST is answered, and a POST that hangs keeps neither other calls nor its own cancel.
func TestAPOSTThatHangsHoldsNobodyUp(t *testing.T) {
	arrived, canceled := make(chan struct{}), make(chan string, 1)
	s := new(streamServer)
	s.h = func(r *upstreamtest.Request) { r.Result("") }
	s.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
		switch {
		case strings.Contains(body, `"hangs"`):
			close(arrived)
			<-r.Context().Done()
			return true
		case strings.Contains(body, "notifications/cancelled"):
			canceled <- body
			return false
		case strings.Contains(body, `"early"`):
			s.mu.Lock()
			out := s.streams[0]
			s.mu.Unlock()
			out.Send(`{"jsonrpc":"2.0","id":3,"result":{}}`)
			<-r.Context().Done() // the engine leaves once it has waited a while
			return true
		}
		return false
	}
	u, _ := streamUpstream(t, streams(t, s))
	ctx, cancel := context.WithCancelCause(t.Context())
	hangs := call(ctx, u, "hangs")
	<-arrived
	for _, tool := range []string{"early", "other", "other"} {
		if err := <-call(t.Context(), u, tool); err != nil {
			t.Fatal(err)
		}
	}
	cancel(context.DeadlineExceeded)
	wantError(t, <-hangs, upstream.NoResponse, upstream.Deadline)
	if text := <-canceled; !strings.Contains(text, `"requestId":2`) {
		t.Errorf("cancel %s", text)
	}
}

func TestAPOSTThatWasNotSentSaysSo(t *testing.T) {
	u, _ := streamUpstream(t, streams(t, &streamServer{h: func(r *upstreamtest.Request) { r.Result("") }}),
		func(c *Config) { c.SSE.Transport = stuck{new(http.Transport)} })
	upstreamtest.Await(t, u, upstream.Live)
	wantError(t, <-call(t.Context(), u, "unreachable"), upstream.NotSent, upstream.Unreachable)
	ctx, cancel := context.WithCancelCause(t.Context())
	waits := call(ctx, u, "stuck")
	cancel(context.DeadlineExceeded)
	wantError(t, <-waits, upstream.NotSent, upstream.DeadlineUnsent)
	if err := <-call(t.Context(), u, "other"); err != nil {
		t.Error(err)
	}
	waits = call(t.Context(), u, "stuck")
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	wantError(t, <-waits, upstream.NotSent, upstream.ClosedByGateway)
}

func TestAStreamThatEndsTakesItsCallsWithIt(t *testing.T) {
	for name, end := range map[string]func(*stream){
		"cut":           (*stream).Die,
		"half an event": func(s *stream) { s.Part(`{"jsonrpc":"2.0","id":2,"result":{`); s.Die() },
		"event without its end": func(s *stream) {
			s.Part(`{"jsonrpc":"2.0","id":2,"result":{}}` + "\n")
			s.Die()
		},
	} {
		t.Run(name, func(t *testing.T) {
			u, _ := streamUpstream(t, streams(t, &streamServer{h: func(r *upstreamtest.Request) {
				if r.Name() == "fatal" {
					end(r.Sender.(*stream))
					return
				}
				r.Result("")
			}}))
			upstreamtest.Await(t, u, upstream.Live)
			wantError(t, <-call(t.Context(), u, "fatal"), upstream.NoResponse, upstream.ConnectionLost)
			for {
				status, changed := u.Status()
				if status.State == upstream.Live && status.Session == 2 {
					break
				}
				<-changed
			}
			if err := <-call(t.Context(), u, "other"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOtherEventsHarmNothing(t *testing.T) {
	s := new(streamServer)
	s.h = func(r *upstreamtest.Request) {
		out := r.Sender.(*stream)
		out.mu.Lock()
		_, _ = io.WriteString(out.w, "event: ping\ndata: {broken\n\nevent: endpoint\ndata: http://elsewhere/\n\nid: 7\n\nevent: error\ndata: {}\n\n")
		out.mu.Unlock()
		r.Send("{broken")
		r.Send("{\n\"jsonrpc\":\"2.0\",\r\n\"id\":" + string(r.Message.ID) + ",\"result\":{}}\n")
	}
	u, _ := streamUpstream(t, streams(t, s))
	for range 2 {
		if err := <-call(t.Context(), u, "any"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnEventThatIsTooLargeEndsOnlyItsCall(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	u, _ := streamUpstream(t, streams(t, &streamServer{h: func(r *upstreamtest.Request) {
		if r.Name() == "large" {
			r.Result(`"long":"` + strings.Repeat("0123456789abcdef", maxMessage/16) + `"`)
			return
		}
		close(arrived)
		r.Wait(release)
		r.Result("")
	}}))
	other := call(t.Context(), u, "other")
	<-arrived
	wantError(t, <-call(t.Context(), u, "large"), upstream.NoResponse, upstream.TooLarge)
	close(release)
	if err := <-other; err != nil {
		t.Error(err)
	}
}
