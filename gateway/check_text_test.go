package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var httptraceDNS = httptrace.DNSStartInfo{Host: "mcp.example"}

func dnsDone(err error) httptrace.DNSDoneInfo { return httptrace.DNSDoneInfo{Err: err} }

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestReachedIsForPeople(t *testing.T) {
	t.Parallel()
	list := []Reached{
		{ID: "files", Engine: "legacy over stdio", Address: "npx", OK: true, Phases: []Phase{
			{Name: "find", OK: true, TookMs: 0.1, Detail: "/usr/bin/npx"},
			{Name: "start", OK: true, TookMs: 3},
			{Name: "handshake", OK: true, TookMs: 812.4, Detail: "2025-11-25"},
			{Name: "list", OK: true, TookMs: 12_300, Detail: "1 tool"},
		}},
		{ID: "web", Engine: "modern over Streamable HTTP", Address: "https://web.example/mcp", Phases: []Phase{
			{Name: "connect", TookMs: 9.96, Error: "connection refused", Fix: "start it"},
		}},
	}
	want := `files  legacy over stdio, npx
  ok      find       0.1 ms  /usr/bin/npx
  ok      start      3 ms
  ok      handshake  812 ms  2025-11-25
  ok      list       12 s    1 tool
web  modern over Streamable HTTP, https://web.example/mcp
  FAILED  connect  10 ms  connection refused
          → start it
`
	var out strings.Builder
	if err := WriteReached(&out, Style{}, list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	var colored strings.Builder
	if err := WriteReached(&colored, Style{Color: true}, list); err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer("\x1b[1m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[0m", "").Replace(colored.String())
	if diff := cmp.Diff(want, plain); diff != "" || !strings.Contains(colored.String(), "\x1b[31mFAILED\x1b[0m") {
		t.Errorf("%q: %s", colored.String(), diff)
	}
	if err := WriteReached(brokenWriter{}, Style{}, list); !errors.Is(err, errBroken) {
		t.Errorf("a writer that fails: %v", err)
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestFixesOfTheNetwork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{fixConnect(&net.OpError{Err: syscall.ECONNREFUSED}), "nothing listens"},
		{fixConnect(&net.OpError{Err: syscall.EHOSTUNREACH}), "no way to that network"},
		{fixConnect(&net.OpError{Err: syscall.ENETUNREACH}), "no way to that network"},
		{fixConnect(errors.New("i/o timeout")), "firewall"},
		{fixTLS(fmt.Errorf("tls: %w", x509.HostnameError{})), "write the host"},
		{fixTLS(fmt.Errorf("tls: %w", x509.UnknownAuthorityError{})), "SSL_CERT_FILE"},
		{fixTLS(fmt.Errorf("tls: %w", x509.CertificateInvalidError{Reason: x509.Expired})), "renew"},
		{fixTLS(fmt.Errorf("tls: %w", x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign})), "check what answers"},
		{fixTLS(tls.RecordHeaderError{}), "speaks no TLS"},
		{fixTLS(errors.New("EOF")), "check what answers"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%q has no %q", c.got, c.want)
		}
	}
}

// What a later connection meets says nothing of the way that was found.
func TestTraceKeepsTheFirstSuccess(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	w := newTrace(http.ProxyURL(nil))
	w.transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	get := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			return err
		}
		resp, err := w.RoundTrip(r)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	first := w.look(phaseConnect)
	server.CloseClientConnections()
	server.Close()
	if err := get(); err == nil {
		t.Error("a closed server answers")
	}
	for _, phase := range []string{phaseConnect, phaseTLS, phaseCredential} {
		if s := w.look(phase); !s.done() || s.err != nil {
			t.Errorf("%s: %+v", phase, s)
		}
	}
	if w.look(phaseConnect) != first || w.look(phaseResolve).done() || w.look(phaseProxy).done() {
		t.Errorf("%+v", w.steps)
	}
	_ = w.Close()
}
