package modern

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

// A stage is a transport in memory: discover is answered, and then each request as the test says.
type stage struct {
	discovered  bool
	then        func(*http.Request) (*http.Response, error)
	unreachable bool
	closed      chan struct{} // nil needs no closing
	once        sync.Once
}

// Close ends what is in flight, as closing all connections does.
func (s *stage) Close() error {
	s.once.Do(func() {
		if s.closed != nil {
			close(s.closed)
		}
	})
	return nil
}

func (s *stage) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.unreachable {
		return nil, io.ErrClosedPipe
	}
	if s.discovered {
		return s.then(r)
	}
	s.discovered = true
	return respond(strings.NewReader(strings.ReplaceAll(discovered.text, "ID", "1"))), nil
}

func respond(body io.Reader) *http.Response {
	return &http.Response{StatusCode: 200, Header: cannedHeader, ContentLength: -1, Body: io.NopCloser(body)}
}

// An upstream that is being closed says so until its last call has returned.
func TestClosingLastsUntilCallsHaveReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, release := io.Pipe()
		u := started(t, "http://server", func(cfg *Config) {
			cfg.Transport = &stage{then: func(*http.Request) (*http.Response, error) { return respond(body), nil }}
		})
		upstreamtest.Await(t, u, upstream.Live)
		failed := make(chan error, 1)
		go func() {
			_, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList})
			failed <- err
		}()
		synctest.Wait()
		go func() { _ = u.Close() }()
		synctest.Wait()
		if status, _ := u.Status(); status.State != upstream.Closing {
			t.Errorf("the state is %s while a call is in flight, want closing", status.State)
		}
		_ = release.CloseWithError(io.ErrUnexpectedEOF)
		wantError(t, <-failed, upstream.NoResponse, upstream.ClosedByGateway, 0)
		upstreamtest.Await(t, u, upstream.Closed)
	})
}

// A lost session leaves the calls in flight alone; Close finds them without it.
func TestCallsOutliveASessionButNotTheUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{closed: make(chan struct{})}
		s.then = func(r *http.Request) (*http.Response, error) {
			<-s.closed
			return nil, net.ErrClosed
		}
		u := started(t, "http://server", func(cfg *Config) { cfg.Transport = s })
		upstreamtest.Await(t, u, upstream.Live)
		failed := make(chan error, 1)
		go func() {
			_, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList})
			failed <- err
		}()
		synctest.Wait()
		s.unreachable = true
		_, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList})
		wantError(t, err, upstream.NotSent, upstream.Unreachable, 0)
		synctest.Wait()
		if len(failed) != 0 {
			t.Fatalf("the call in flight ended with the session: %v", <-failed)
		}
		if err := u.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the call has returned to the goroutine that made it
		if len(failed) == 0 {
			t.Error("Close left a call in flight")
		}
		<-failed
	})
}
