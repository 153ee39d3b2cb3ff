package legacy

import (
	"log/slog"
	"os"
	"sync"
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

// played names the environment variable that makes the test binary one of the plays.
const played = "LEGACY_TEST_PLAY"

// config is that of a child which is the test binary, with a log to look into.
func config(t *testing.T, env ...string) (Config, *logged) {
	t.Helper()
	command, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := new(logged)
	return Config{
		ID: "u", Stdio: &Stdio{Command: command, Env: env}, Version: "v0", StartTimeout: time.Minute,
		ReconnectMin: time.Millisecond, ReconnectMax: time.Millisecond,
		Log: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, out
}

// scripted starts an upstream whose server h answers.
func scripted(t *testing.T, h upstreamtest.Handler) (*Upstream, *logged) {
	t.Helper()
	command, env := upstreamtest.Stdio(t, h)
	cfg, out := config(t, env...)
	cfg.Stdio.Command = command
	return begin(t, cfg), out
}

// play starts an upstream whose server is one of the plays.
func play(t *testing.T, name string, change func(*Config)) (*Upstream, *logged) {
	t.Helper()
	cfg, out := config(t, played+"="+name, upstreamtest.FastExit)
	if change != nil {
		change(&cfg)
	}
	return begin(t, cfg), out
}

func begin(t *testing.T, cfg Config) *Upstream {
	t.Helper()
	u := New(cfg)
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	u.Start()
	return u
}

// logged is a log that a test may read while it is written.
type logged struct {
	mu   sync.Mutex
	text []byte
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

func TestContract(t *testing.T) {
	upstreamtest.Run(t, upstreamtest.Transport{
		Revision: mcp.LegacyLatest, Costly: true,
		Start: func(t *testing.T, h upstreamtest.Handler) upstream.Upstream {
			u, _ := scripted(t, h)
			return u
		},
		Mute: func(t *testing.T) (upstream.Upstream, <-chan struct{}) {
			command, env, taken := upstreamtest.MuteStdio(t)
			cfg, _ := config(t, env...)
			cfg.Stdio.Command = command
			return begin(t, cfg), taken
		},
	})
}
