package gateway

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"

	"mcp-gateway/upstream"
)

// The phases of the way to a server, in the order in which they are told.
const (
	phaseFind       = "find" // of a command
	phaseStart      = "start"
	phaseProxy      = "proxy" // of a url, as all that follow
	phaseResolve    = "resolve"
	phaseConnect    = "connect"
	phaseTLS        = "tls"
	phaseCredential = "credential"
	phaseUpgrade    = "upgrade"   // over WebSocket
	phaseEndpoint   = "endpoint"  // over HTTP+SSE
	phaseHandshake  = "handshake" // of all
	phaseList       = "list"
)

// A trace watches how one upstream's engine gets to its server. It sends as the engine would by itself. It is safe for
// concurrent use.
type trace struct {
	transport *http.Transport
	began     time.Time

	mu    sync.Mutex // guards the rest
	steps map[string]*step
	proxy *url.URL // of the last request; nil is none
	pid   int      // of the last process; 0 is none
}

// A step is what was seen of one phase. One that has succeeded stays so: what a later connection meets says nothing of the
// way to the server.
type step struct {
	began, ended time.Time // ended is zero until it has succeeded
	err          error     // why it has not
}

// done reports whether the phase was seen to succeed.
func (s step) done() bool { return !s.ended.IsZero() }

// newTrace watches an engine that proxy picks the proxies for, as http.Transport.Proxy does.
func newTrace(proxy func(*http.Request) (*url.URL, error)) *trace {
	t := &trace{began: time.Now(), steps: map[string]*step{}}
	t.transport = &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			u, err := proxy(r)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.proxy = u
			if u != nil || err != nil {
				t.begin(phaseProxy)
				t.end(phaseProxy, err)
			}
			return u, err
		},
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        4 * time.Second,
		MaxResponseHeaderBytes: 32 << 10,
		DisableCompression:     true,
	}
	return t
}

// parts are with, watched.
func (t *trace) parts(with parts) parts {
	with.transport, with.started = t, t.started
	return with
}

// RoundTrip sends r. A request has got its credential by then.
func (t *trace) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	if t.steps[phaseCredential] == nil {
		t.steps[phaseCredential] = &step{began: t.began}
	}
	t.end(phaseCredential, nil)
	if r.Method == http.MethodPost && t.steps[phaseEndpoint] != nil {
		t.end(phaseEndpoint, nil) // the stream has named where to post
	}
	t.mu.Unlock()
	resp, err := t.transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), t.hooks())))
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && t.unproxied(r):
		t.steps[phaseProxy] = &step{began: t.began, err: err}
	case err == nil && resp.StatusCode == http.StatusSwitchingProtocols:
		t.end(phaseUpgrade, nil)
	}
	return resp, err
}

// unproxied reports whether a proxy was reached and did not open the way. mu is held.
func (t *trace) unproxied(r *http.Request) bool {
	connect := t.steps[phaseConnect]
	return t.proxy != nil && r.URL.Scheme == "https" && connect != nil && connect.done() && t.steps[phaseTLS] == nil
}

// Close closes the connections that nobody uses; the engine has ended its requests.
func (t *trace) Close() error {
	t.transport.CloseIdleConnections()
	return nil
}

func (t *trace) hooks() *httptrace.ClientTrace {
	locked := func(f func()) {
		t.mu.Lock()
		defer t.mu.Unlock()
		f()
	}
	return &httptrace.ClientTrace{
		DNSStart:          func(httptrace.DNSStartInfo) { locked(func() { t.begin(phaseResolve) }) },
		DNSDone:           func(info httptrace.DNSDoneInfo) { locked(func() { t.end(phaseResolve, info.Err) }) },
		ConnectStart:      func(string, string) { locked(func() { t.begin(phaseConnect) }) },
		ConnectDone:       func(_, _ string, err error) { locked(func() { t.end(phaseConnect, err) }) },
		TLSHandshakeStart: func() { locked(func() { t.begin(phaseTLS) }) },
		TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { locked(func() { t.end(phaseTLS, err) }) },
		GotConn: func(httptrace.GotConnInfo) {
			locked(func() {
				t.begin(phaseUpgrade)
				t.begin(phaseEndpoint)
			})
		},
	}
}

// begin and end are called with mu held.
func (t *trace) begin(phase string) {
	if t.steps[phase] == nil {
		t.steps[phase] = &step{began: time.Now()}
	}
}

func (t *trace) end(phase string, err error) {
	s := t.steps[phase]
	switch {
	case s == nil || s.done():
	case err != nil:
		s.err = err
	default:
		s.ended, s.err = time.Now(), nil
	}
}

func (t *trace) started(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pid = pid
	t.begin(phaseStart)
	t.end(phaseStart, nil)
}

// look gives what was seen so far of a phase, which is nothing where it has not begun.
func (t *trace) look(phase string) step {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.steps[phase]; s != nil {
		return *s
	}
	return step{}
}

// settled waits until an engine has connected or failed once, and gives how it stands; or how it does when ctx ends.
func settled(ctx context.Context, e engine) upstream.Status {
	for {
		status, changed := e.Status()
		// A second attempt, which begins soon after the first, says why that failed.
		if status.State != upstream.Connecting || status.Err != nil {
			return status
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return status
		}
	}
}
