package legacy

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// call calls a tool in the background.
func call(ctx context.Context, u *Upstream, tool string) <-chan error {
	done := make(chan error, 1)
	go func() {
		params, err := wire.ParseObject([]byte(`{"name":"` + tool + `"}`))
		if err == nil {
			_, err = u.Call(ctx, &upstream.Request{Method: mcp.MethodToolsCall, Params: params})
		}
		done <- err
	}()
	return done
}

func wantError(t *testing.T, err error, outcome upstream.Outcome, cause upstream.Cause) {
	t.Helper()
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok || e.Outcome != outcome || e.Cause != cause {
		t.Fatalf("error %v, want %s (%s)", err, outcome, cause)
	}
}

func TestTheFirstMessagesOnTheWire(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heard")
	u, _ := play(t, "recorder", func(c *Config) { c.Stdio.Env = append(c.Stdio.Env, "FILE="+file) })
	status := upstreamtest.Await(t, u, upstream.Live)
	discover, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodDiscover})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"supportedVersions":["2025-06-18"],"capabilities":{"tools":{}},"instructions":"be kind","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"r","version":"1"}}}`
	if got := string(discover.Result.Raw()); got != want || string(status.Discover.Raw()) != want {
		t.Errorf("server/discover gives %s\nwant %s", got, want)
	}
	if discover.Type != mcp.ResultComplete || discover.Revision != mcp.Revision20250618 {
		t.Errorf("server/discover is %q of %s", discover.Type, discover.Revision)
	}
	if _, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList}); err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	heard, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "first-messages.jsonl", string(heard))
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the server heard (-want +got):\n%s", diff)
	}
}

func TestAVerdictNamesBothSidesAndTheSetting(t *testing.T) {
	result := func(members string) string { return `{"jsonrpc":"2.0","id":1,"result":{` + members + `}}` }
	for _, test := range []struct{ name, revision, answer, want string }{
		{"modern", "", result(`"protocolVersion":"2026-07-28"`),
			"the gateway offered 2025-11-25, but the server answered with 2026-07-28, which has no handshake; set `protocol: modern`"},
		{"unknown", "", result(`"protocolVersion":"1999-01-01"`),
			"the gateway offered 2025-11-25, but the server answered with 1999-01-01; no setting of this gateway speaks that"},
		{"white space", "", result(`"protocolVersion":"2025-11-25 "`),
			"the gateway offered 2025-11-25, but the server answered with a revision that cannot be shown; no setting of this gateway speaks that"},
		{"none", "", result(`"capabilities":{}`),
			"the gateway offered 2025-11-25, but the server's answer to initialize names no protocolVersion, so it cannot be used"},
		{"no string", "", result(`"protocolVersion":20251125`),
			"the gateway offered 2025-11-25, but the server's answer to initialize names no protocolVersion, so it cannot be used"},
		{"two", "", result(`"protocolVersion":"2025-11-25","protocolVersion":"2026-07-28"`),
			"the gateway offered 2025-11-25, but the server's answer to initialize names no protocolVersion, so it cannot be used"},
		{"pinned", "2024-11-05", result(`"protocolVersion":"2025-11-25"`),
			"the configuration pins revision 2024-11-05, but the server answered with 2025-11-25; set `revision: 2025-11-25`, or take `revision` out"},
		{"modern only", "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}`,
			"the gateway offered 2025-11-25, but the server says that it supports only [\"2026-07-28\"]; set `protocol: modern`"},
		{"modern only, unnamed", "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no"}}`,
			"the gateway offered 2025-11-25, but the server says that it does not support it; set `protocol: modern`"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u, _ := play(t, "answer", func(c *Config) {
				c.Stdio.Env = append(c.Stdio.Env, "ANSWER="+test.answer)
				c.Revision = test.revision
			})
			status := upstreamtest.Await(t, u, upstream.Verdict)
			if got := status.Err.Error(); got != test.want {
				t.Errorf("verdict %q\nwant    %q", got, test.want)
			}
			wantError(t, <-call(t.Context(), u, "any"), upstream.NotSent, upstream.GivenUp)
		})
	}
}

func TestEveryRevisionWithAHandshakeIsTaken(t *testing.T) {
	for _, revision := range []string{mcp.Revision20241105, mcp.Revision20250326, mcp.Revision20250618, mcp.Revision20251125} {
		for _, pin := range []string{"", revision} {
			u, _ := play(t, "answer", func(c *Config) {
				c.Stdio.Env = append(c.Stdio.Env, `ANSWER={"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"`+revision+`"}}`)
				c.Revision = pin
			})
			if got := upstreamtest.Await(t, u, upstream.Live).Revision; got != revision {
				t.Errorf("pinned to %q: revision %q, want %q", pin, got, revision)
			}
		}
	}
}

func TestAFailedStartSaysWhyAndIsTriedAgain(t *testing.T) {
	for _, test := range []struct {
		name   string
		play   string
		change func(*Config)
		want   string
	}{
		{"it ends", "fails", func(c *Config) {
			c.Stdio.Env = append(c.Stdio.Env, "SECRET=hunter2hunter2")
			c.Scrub = func(s string) string { return strings.ReplaceAll(s, "hunter2hunter2", "[redacted]") }
		}, "the server ended before it answered initialize (exit status 7); its stderr ends with: cannot open the database at [redacted] | giving up"},
		{"it refuses", "answer", func(c *Config) {
			c.Stdio.Env = append(c.Stdio.Env, `ANSWER={"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`)
		}, "the server refused initialize; if it speaks only 2026-07-28, set `protocol: modern`: JSON-RPC error -32601: method not found"},
		{"it is silent", "silent", func(c *Config) { c.StartTimeout = 100 * time.Millisecond },
			"not connected within start_timeout (100ms): initialize: "},
		{"it is not there", "", func(c *Config) { c.Stdio.Command = filepath.Join(t.TempDir(), "missing") }, "missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u, out := play(t, test.play, test.change)
			status := upstreamtest.Await(t, u, upstream.Backoff)
			if got := status.Err.Error(); !strings.Contains(got, test.want) {
				t.Errorf("error %q, want %q", got, test.want)
			}
			for strings.Count(out.String(), "upstream not connected") < 2 {
				_, changed := u.Status()
				<-changed
			}
			if strings.Contains(out.String(), "hunter2hunter2") {
				t.Errorf("the log holds a secret:\n%s", out)
			}
		})
	}
}

func TestCloseEndsAHandshakeThatHangs(t *testing.T) {
	u, _ := play(t, "silent", nil)
	failed := call(t.Context(), u, "any")
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	wantError(t, <-failed, upstream.NotSent, upstream.ClosedByGateway)
}

func TestOtherLinesHarmNothing(t *testing.T) {
	u, out := scripted(t, func(r *upstreamtest.Request) {
		for _, line := range []string{
			"", "Server started on stdio", "{broken", "[1,2", `{"jsonrpc":"2.0"}`, "\xff\xfe",
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"unknown notification"}}`,
			`{"jsonrpc":"2.0","id":"s1","method":"ping"}`,
			`{"jsonrpc":"2.0","id":"s2","method":"roots/list"}`,
		} {
			r.Send(line)
		}
		r.Result(`"first":true`)
		r.Result(`"second":true`)
	})
	for range 2 {
		resp, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(resp.Result.Raw()); got != `{"first":true}` {
			t.Errorf("result %s", got)
		}
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Server started on stdio") {
		t.Errorf("the log lacks the server's line:\n%s", out)
	}
}

func TestAChangedListIsCounted(t *testing.T) {
	u, _ := scripted(t, func(r *upstreamtest.Request) {
		r.Send(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
		r.Send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		r.Result("")
	})
	if err := <-call(t.Context(), u, "any"); err != nil {
		t.Fatal(err)
	}
	for {
		status, changed := u.Status()
		if status.Changes.Tools == 1 {
			break
		}
		<-changed
	}
}

func TestAResultsOwnTypeStays(t *testing.T) {
	u, _ := scripted(t, func(r *upstreamtest.Request) { r.Result(`"resultType":"input_required"`) })
	resp, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsCall})
	if err != nil || resp.Type != mcp.ResultInputRequired {
		t.Errorf("%+v, %v", resp, err)
	}
}
