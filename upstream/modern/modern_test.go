package modern

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"mcp-gateway/internal/leakcheck"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

func TestMain(m *testing.M) {
	upstreamtest.Child()
	if play := os.Getenv(played); play != "" {
		os.Exit(plays[play]())
	}
	leakcheck.Main(m)
}

func TestContract(t *testing.T) {
	t.Run("http", func(t *testing.T) {
		upstreamtest.Run(t, upstreamtest.Transport{
			Revision: mcp.Modern, Alone: true,
			Start: func(t *testing.T, h upstreamtest.Handler) upstream.Upstream {
				return started(t, upstreamtest.HTTP(t, h).URL, func(cfg *Config) { cfg.Credential = new(upstreamtest.Credential) })
			},
			Mute: func(t *testing.T) (upstream.Upstream, <-chan struct{}) {
				address, taken := upstreamtest.Mute(t)
				return started(t, "http://"+address), taken
			},
		})
	})
	t.Run("stdio", func(t *testing.T) {
		upstreamtest.Run(t, upstreamtest.Transport{
			Revision: mcp.Modern, Costly: true,
			Start: func(t *testing.T, h upstreamtest.Handler) upstream.Upstream {
				u, _ := scriptedChild(t, h)
				return u
			},
			Mute: func(t *testing.T) (upstream.Upstream, <-chan struct{}) {
				command, env, taken := upstreamtest.MuteStdio(t)
				u, _ := startedChild(t, command, env)
				return u, taken
			},
		})
	})
}

// started is an upstream at address that has begun to connect, and is closed when the test ends.
func started(t testing.TB, address string, change ...func(*Config)) *Upstream {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		ID: "u", URL: at, Header: http.Header{}, Version: "1.2.3",
		StartTimeout: time.Minute, ReconnectMin: time.Millisecond, ReconnectMax: time.Millisecond,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	u := New(cfg)
	u.Start()
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return u
}
