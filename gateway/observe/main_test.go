package observe

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcp-gateway/internal/leakcheck"
	"mcp-gateway/redact"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { leakcheck.Main(m) }

// A gateway is what a test makes the observer see.
type gateway struct {
	upstreams atomic.Pointer[[]Upstream]
	unready   error
	effective string
	diff      string
	reloadErr error
	asked     []string // of Reload and Restart
	log       logBuffer
	scrubber  *redact.Scrubber
}

// A logBuffer is written to by one goroutine at a time.
type logBuffer struct{ strings.Builder }

var began = time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)

func newObserver(t *testing.T) (*Observer, *gateway) {
	t.Helper()
	g := &gateway{effective: `{"listen":"127.0.0.1:8080"}`, diff: `{"changed":["files"]}`, scrubber: redact.NewScrubber()}
	g.set(Upstream{
		ID: "files", Prefix: "files__", Transport: "stdio", State: "live", Revision: "2025-11-25", Since: began, Required: true, WasLive: true,
		Sessions: 3, Failures: 2, Refreshes: 5, RefreshFailures: 1, Tools: 4, Denied: 3, Invalid: 2, InFlight: 6, Waiting: 7, Shed: 8,
	}, Upstream{
		ID: "jira", Prefix: "jira__", Transport: "http", State: "backoff", Since: began, Until: began.Add(time.Minute), Reason: "reconnecting",
		LastError: "connection refused", Looping: true,
	})
	o := New(Config{
		Log: NewLogger(&g.log, false, slog.LevelDebug, g.scrubber), Scrubber: g.scrubber, Version: "1.2.3",
		Upstreams: func() []Upstream { return *g.upstreams.Load() },
		Effective: func() []byte { return []byte(g.effective) },
		Ready:     func() error { return g.unready },
		Reload: func(context.Context) ([]byte, error) {
			g.asked = append(g.asked, "reload")
			return []byte(g.diff), g.reloadErr
		},
		Restart: func(_ context.Context, id string) error {
			g.asked = append(g.asked, "restart "+id)
			switch id {
			case "files":
				return nil
			case "held":
				return errors.New("the process 42 could not be ended")
			}
			return ErrUnknown
		},
		Dropped:    func() uint64 { return 11 },
		Streams:    func() int { return 12 },
		Redactions: func() uint64 { return 13 },
	})
	return o, g
}

func (g *gateway) set(list ...Upstream) { g.upstreams.Store(&list) }

// serve serves the handler on a socket until the test ends, and returns its address.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return ln.Addr().String()
}

// ask sends one request, with headers as "Name: value"; Host is one of them.
func ask(t *testing.T, address, method, path string, headers ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
