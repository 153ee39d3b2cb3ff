package modern

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/process"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/child"
	"mcp-gateway/upstream/internal/link"
	"mcp-gateway/upstream/upstreamtest"
)

// logged is a log that a test may read while it is written.
type logged struct {
	mu   sync.Mutex
	text []byte
	more chan struct{} // closed when there is more; nil while nobody waits
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return len(p), nil
}

// await returns when the log holds text.
func (l *logged) await(t *testing.T, text string) {
	t.Helper()
	for {
		l.mu.Lock()
		if bytes.Contains(l.text, []byte(text)) {
			l.mu.Unlock()
			return
		}
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatalf("the log does not say %q:\n%s", text, l)
		}
	}
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// startedChild is an upstream on a child with this environment that has begun to connect, with a log to look into.
func startedChild(t *testing.T, command string, env []string, change ...func(*Config)) (*Upstream, *logged) {
	t.Helper()
	out := new(logged)
	return started(t, "", append([]func(*Config){func(cfg *Config) {
		cfg.URL = nil
		cfg.Stdio = &Stdio{Command: command, Env: env}
		cfg.Log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}}, change...)...), out
}

func scriptedChild(t *testing.T, h upstreamtest.Handler) (*Upstream, *logged) {
	t.Helper()
	command, env := upstreamtest.Stdio(t, h)
	return startedChild(t, command, env)
}

// play starts an upstream whose server is one of the plays.
func play(t *testing.T, name string, env []string, change ...func(*Config)) (*Upstream, *logged) {
	t.Helper()
	command, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startedChild(t, command, append(env, played+"="+name, upstreamtest.FastExit), change...)
}

func TestFirstMessagesOverStdio(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heard")
	u, _ := play(t, "recorder", []string{"FILE=" + file})
	status := upstreamtest.Await(t, u, upstream.Live)
	if status.Revision != mcp.Modern || string(status.Discover.Raw()) != upstreamtest.Discovered {
		t.Errorf("status %+v with %s", status, status.Discover.Raw())
	}
	for _, req := range []*upstream.Request{
		{Method: mcp.MethodToolsList},
		{
			Method: mcp.MethodToolsCall, Target: "größe", Header: map[string][]string{"Mcp-Param-Region": {"eu"}},
			Client: upstream.Client{Capabilities: []byte(`{"roots":{}}`)}, Notify: func(upstream.Notification) {},
			Params: parse(t, "{\"name\":\"größe\",\n\"arguments\":{\"region\":\"eu\",\"n\":12345678901234567890},\"_meta\":{\"traceparent\":\"00\",\"progressToken\":\"p\"}}"),
		},
	} {
		if _, err := u.Call(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	heard, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/first.jsonl"
	if *update {
		if err := os.WriteFile(golden, heard, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(heard)); diff != "" {
		t.Errorf("the first messages differ (-want +got):\n%s", diff)
	}
}

func answer(text string) []string { return []string{"ANSWER=" + strings.ReplaceAll(text, "ID", "1")} }

func TestVerdictsOverStdio(t *testing.T) {
	const speaks = "the gateway speaks 2026-07-28 to this server, but it "
	for _, test := range []struct{ name, answer, want string }{
		{"method unknown", failure(`{"code":-32601,"message":"no"}`),
			speaks + "does not know server/discover; a server with an initialize handshake needs `protocol: legacy`"},
		{"version refused", failure(`{"code":-32022,"message":"no","data":{"supported":["2025-11-25"],"requested":"x"}}`),
			speaks + "supports 2025-11-25; set `protocol: legacy`"},
		{"another revision", result(`{"resultType":"complete","supportedVersions":["2099-01-01"]}`),
			speaks + "supports 2099-01-01; no setting of this gateway speaks one of those"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u, _ := play(t, "answer", answer(test.answer))
			status := upstreamtest.Await(t, u, upstream.Verdict)
			if got := status.Err.Error(); got != test.want {
				t.Errorf("verdict %q\nwant    %q", got, test.want)
			}
			_, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList})
			wantError(t, err, upstream.NotSent, upstream.GivenUp, 0)
		})
	}
}

func TestAFailedStartOverStdioSaysWhyAndIsTriedAgain(t *testing.T) {
	const secret, hint = "hunter2hunter2", "; a server with an initialize handshake needs `protocol: legacy`"
	scrub := func(cfg *Config) {
		cfg.Scrub = func(s string) string { return strings.ReplaceAll(s, secret, "[redacted]") }
	}
	for _, test := range []struct {
		name, play string
		env        []string
		change     func(*Config)
		want       string
	}{
		{"it ends", "fails", []string{"SECRET=" + secret}, scrub, "the server ended before it answered server/discover (exit status 7)" + hint +
			"; its stderr ends with: expected initialize; my key is [redacted] | giving up"},
		{"another error", "answer", answer(failure(`{"code":-32602,"message":"Invalid request parameters"}`)), scrub,
			"needs `protocol: legacy`: JSON-RPC error -32602: Invalid request parameters"},
		{"junk", "answer", answer("Listening on stdio"), func(cfg *Config) { cfg.StartTimeout = 300 * time.Millisecond },
			"not connected within start_timeout (300ms): the server did not answer server/discover" + hint},
		{"a legacy answer", "answer", answer(result(`{"protocolVersion":"2025-11-25"}`)), scrub, "no resultType"},
		{"it is not there", "", nil, func(cfg *Config) { cfg.Stdio.Command = filepath.Join(t.TempDir(), "missing") }, "missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u, out := play(t, test.play, test.env, test.change)
			status := upstreamtest.Await(t, u, upstream.Backoff)
			if got := status.Err.Error(); !strings.Contains(got, test.want) {
				t.Errorf("error %q, want %q", got, test.want)
			}
			for strings.Count(out.String(), "upstream not connected") < 2 {
				_, changed := u.Status()
				<-changed
			}
			if _, verdict := errors.AsType[*link.VerdictError](status.Err); verdict || strings.Contains(out.String(), secret) {
				t.Errorf("a verdict: %v; the log:\n%s", verdict, out)
			}
		})
	}
}

// A server that is silent gets nothing but the one request, not even a cancel.
func TestNothingIsSentBesideTheFirstRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heard")
	u, _ := play(t, "recorder", []string{"FILE=" + file, "SILENT=1"}, func(cfg *Config) {
		cfg.StartTimeout = time.Second
		cfg.ReconnectMin, cfg.ReconnectMax = time.Hour, time.Hour
	})
	upstreamtest.Await(t, u, upstream.Backoff)
	heard, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(heard); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"method":"server/discover"`) {
		t.Errorf("the server heard %q", got)
	}
}

func TestErrorsOfTheHopOverStdio(t *testing.T) {
	const version = `{"code":-32022,"message":"m","data":{"supported":["2099-01-01"],"requested":"2026-07-28"}}`
	for _, text := range []string{`{"code":-32020,"message":"m"}`, version} {
		u, _ := scriptedChild(t, func(r *upstreamtest.Request) { r.Error(text) })
		_, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsCall, Target: "x", Params: parse(t, `{"name":"x"}`)})
		wantError(t, err, upstream.ErrorResponse, upstream.HopError, 0)
		if errors.Is(err, upstream.ErrHeaderMismatch) {
			t.Errorf("%v counts as proof, without headers", err)
		}
		stated, ok := errors.AsType[*wire.Error](err)
		if !ok || string(stated.AppendJSON(nil)) != text {
			t.Errorf("error %v has lost what the server said", err)
		}
	}
}

func TestAResultOverStdioNeedsItsType(t *testing.T) {
	u, _ := scriptedChild(t, func(r *upstreamtest.Request) {
		r.Send(`{"jsonrpc":"2.0","id":` + string(r.Message.ID) + `,"result":{"content":[]}}`)
	})
	_, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsCall, Target: "x", Params: parse(t, `{"name":"x"}`)})
	wantError(t, err, upstream.NoResponse, upstream.Unusable, 0)
}

// Servers of this revision may not ask; a response to what one asks all the same would be no valid message.
func TestAServersRequestIsLoggedAndNotAnswered(t *testing.T) {
	u, out := scriptedChild(t, func(r *upstreamtest.Request) {
		r.Send(`{"jsonrpc":"2.0","id":"s1","method":"ping"}`)
		r.Send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		r.Result("")
	})
	for range 2 { // the peer fails the test if it gets a response before the second
		if _, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList}); err != nil {
			t.Fatal(err)
		}
	}
	for _, words := range []string{"does not have: dropped", "belongs to no call"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("the log does not say %q:\n%s", words, out)
		}
	}
}

// Held is known before the call that was pending fails, so that its words do not promise a reconnect.
func TestAChildThatCannotBeEndedIsHeld(t *testing.T) {
	released := make(chan struct{})
	u, _ := play(t, "hangs up", answer(result(upstreamtest.Discovered)), func(cfg *Config) {
		cfg.Stdio.Grace = child.Grace{Stdin: time.Millisecond, Term: time.Millisecond, Kill: time.Millisecond}
		cfg.Stdio.Kill = func(group int, signal syscall.Signal) error {
			select {
			case <-released:
				return killGroup(group, signal)
			default:
				return nil
			}
		}
	})
	for _, want := range []upstream.Outcome{upstream.NoResponse, upstream.NotSent} {
		_, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList})
		wantError(t, err, want, upstream.HeldProcess, 0)
	}
	if _, held := errors.AsType[*process.HeldError](u.Close()); !held {
		t.Error("Close does not say what is held")
	}
	close(released)
	for u.Close() != nil { // the kill takes a moment
	}
	upstreamtest.Await(t, u, upstream.Closed)
}
