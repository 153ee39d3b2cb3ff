package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"mcp-gateway/gateway/config"
	"mcp-gateway/internal/wire"
)

func direct(t *testing.T, cfg *config.Config, tool string) *Client {
	t.Helper()
	c, err := Direct(t.Context(), cfg, tool, DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func names(l *Listing) (names []string) {
	for _, tool := range l.Tools {
		names = append(names, tool.Upstream+" "+tool.Name)
	}
	return names
}

func TestDirectListsAndCalls(t *testing.T) {
	t.Parallel()
	cfg := parsed(t, `{old: {`+child(t, "legacy")+`}, new: {url: `+modernHTTP(t)+`}, gone: {command: no-such-program-at-all}}`)
	c := direct(t, cfg, "")
	list, err := c.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := names(list); !slices.Equal(got, []string{"old old__echo", "old old__fail", "new new__region"}) {
		t.Errorf("%q", got)
	}
	if got := c.Unreached(); len(got) != 1 || got[0].ID != "gone" || ways(got[0]) != "find!" || !slices.Equal(list.AbsentIDs(), []string{"gone"}) {
		t.Errorf("%+v, absent %v", got, list.Absent)
	}
	if tool := list.Tools[0]; tool.Title != "Echo" || !strings.Contains(string(tool.Definition), `"old__echo"`) || !list.Has("old__echo") || list.Has("old__ech") {
		t.Errorf("%+v", tool)
	}
	var told []string
	answer, err := c.Call(t.Context(), "old__echo", []byte(`{"a":12345678901234567890}`), func(line string) { told = append(told, line) })
	if err != nil || answer.IsError || answer.Failed || !strings.Contains(string(answer.Result), `{\"a\":12345678901234567890}`) {
		t.Errorf("%s (%v)", answer.Result, err)
	}
	answer, err = c.Call(t.Context(), "new__region", []byte(`{"r":"eu"}`), nil)
	if err != nil || answer.IsError {
		t.Errorf("%s (%v)", answer.Result, err)
	}
	if answer, err = c.Call(t.Context(), "old__fail", []byte(`{}`), nil); err != nil || !answer.IsError || answer.Failed {
		t.Errorf("%+v (%v)", answer, err)
	}
	if answer, err = c.Call(t.Context(), "gone__x", []byte(`{}`), nil); err != nil || !answer.IsError || !answer.Failed {
		t.Errorf("%+v (%v)", answer, err)
	}
	_, err = c.Call(t.Context(), "old__ecko", []byte(`{}`), nil)
	if refused, ok := errors.AsType[*wire.Error](err); !ok || refused.Code != wire.CodeInvalidParams || !slices.Equal(list.Similar("old__ecko"), []string{"old__echo"}) {
		t.Errorf("%v, similar %q", err, list.Similar("old__ecko"))
	}
	if text := string(ErrorJSON(err)); text != `{"error":{"code":-32602,"message":"unknown tool \"old__ecko\""}}` || ErrorJSON(io.EOF) != nil {
		t.Error(text)
	}
	if files, err := os.ReadDir(cfg.StateDir); err != nil || len(files) > 0 {
		t.Errorf("it has left %v (%v)", files, err)
	}
}

// A call starts the server of its tool and no other.
func TestDirectStartsWhatACallNeeds(t *testing.T) {
	t.Parallel()
	var a, b atomic.Int64
	cfg := parsed(t, fmt.Sprintf(`{a: {url: %q}, b: {url: %q}}`, modernHTTP(t, counts(&a)), modernHTTP(t, counts(&b))))
	c := direct(t, cfg, "b__region")
	if answer, err := c.Call(t.Context(), "b__region", []byte(`{"r":"eu"}`), nil); err != nil || answer.IsError {
		t.Errorf("%v", err)
	}
	if a.Load() != 0 || b.Load() == 0 {
		t.Errorf("a was asked %d times, b %d", a.Load(), b.Load())
	}
	if _, err := Direct(t.Context(), cfg, "region", DialOptions{}); !errors.Is(err, ErrNoUpstream) || !strings.Contains(err.Error(), "a__…, b__…") {
		t.Errorf("%v", err)
	}
}

func TestDirectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Direct(ctx, parsed(t, `{it: {`+child(t, "silent")+`}}`), "", DialOptions{Waiting: func([]string) { cancel() }})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Unreached(); len(got) != 1 || !strings.Contains(got[0].Failed().Error, "canceled") {
		t.Errorf("%+v", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// running serves the configuration at the url that it gives.
func running(t *testing.T, upstreams string) string {
	t.Helper()
	cfg, _, err := config.Parse("test", []byte("state_dir: "+t.TempDir()+"\ncallers: {keys: {me: 'sha256:"+keyHash+"'}}\nupstreams: "+upstreams))
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(cfg, Options{Log: io.Discard, Status: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	at := serveTest(t, http.HandlerFunc(g.serveHTTP))
	t.Cleanup(func() {
		if err := g.leave(); err != nil {
			t.Error(err)
		}
	})
	snap := g.snapshot.Load()
	for _, m := range snap.members {
		m.Start()
	}
	snap.catalog.Start()
	snap.catalog.Settled(t.Context())
	return at + "/mcp"
}

const (
	key     = "mcpgw_1c4qR0UlJhI2i-mPyViyhE2TlQ5R5ATQtyXomapnNjA"
	keyHash = "ed79f751a5d99899ab40b20a74e444f948a43779a246f1e614991c89a6cf5089"
)

func TestRemoteListsAndCalls(t *testing.T) {
	t.Setenv("TEST_KEY", key)
	t.Setenv("TEST_KEY_WRONG", "mcpgw_0c4qR0UlJhI2i-mPyViyhE2TlQ5R5ATQtyXomapnNjA")
	// The one tool mirrors an argument in a header, which the gateway wants to see.
	at := running(t, `{new: {url: `+modernHTTP(t)+`}, gone: {command: no-such-program-at-all}}`)
	c, warnings, err := Remote(t.Context(), at, "TEST_KEY", DialOptions{})
	if err != nil || warnings != nil {
		t.Fatal(err, warnings)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	list, err := c.Tools(t.Context())
	if err != nil || !slices.Equal(names(list), []string{" new__region"}) || !slices.Equal(list.AbsentIDs(), []string{"gone"}) || c.Unreached() != nil {
		t.Errorf("%+v (%v)", list, err)
	}
	answer, err := c.Call(t.Context(), "new__region", []byte(`{"r":"eu"}`), nil)
	if err != nil || answer.IsError || !strings.Contains(string(answer.Result), `"done"`) {
		t.Errorf("%+v (%v)", answer, err)
	}
	if answer, err = c.Call(t.Context(), "gone__x", []byte(`{}`), nil); err != nil || !answer.Failed {
		t.Errorf("%+v (%v)", answer, err)
	}
	_, err = c.Call(t.Context(), "new__"+key, []byte(`{}`), nil)
	if refused, ok := errors.AsType[*wire.Error](err); !ok || strings.Contains(err.Error()+string(ErrorJSON(err)), key) {
		t.Errorf("%v, %v", refused, err)
	}
	for _, wrong := range []struct{ url, keyEnv, says, fix string }{
		{at, "", "credential: it answers with HTTP 401", "--key-env NAME"},
		{at, "TEST_KEY_WRONG", "credential: it answers with HTTP 401", "the key in TEST_KEY_WRONG"},
		{at + "/x", "TEST_KEY", "nothing is served at this path", "prints the whole url"},
		{"http://127.0.0.1:9/mcp", "", "connection refused", "start it (mcp-gateway serve"},
	} {
		_, _, err := Remote(t.Context(), wrong.url, wrong.keyEnv, DialOptions{})
		if e, ok := errors.AsType[*RemoteError](err); !ok || !strings.Contains(err.Error(), wrong.says) || !strings.Contains(e.Phase.Fix, wrong.fix) {
			t.Errorf("%v, want %q and %q", err, wrong.says, wrong.fix)
		}
	}
	for _, wrong := range []struct{ url, keyEnv, says string }{
		{"localhost:8080/mcp", "", "the url: must begin with"},
		{at, "NO_SUCH_VARIABLE", "--key-env: environment variable NO_SUCH_VARIABLE is not set"},
		{at + "/${env:HOME}", "TEST_KEY", "nothing is served"},
	} {
		if _, _, err := Remote(t.Context(), wrong.url, wrong.keyEnv, DialOptions{}); err == nil || !strings.Contains(err.Error(), wrong.says) {
			t.Errorf("%v, want %q", err, wrong.says)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "args.json")
	if err := os.WriteFile(file, []byte("\n{\"a\": 1.0}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ given, stdin, want, says string }{
		{"", "", `{}`, ""},
		{`{"a": 12345678901234567890}`, "", `{"a": 12345678901234567890}`, ""},
		{"-", `{"b":null} `, `{"b":null}`, ""},
		{"@" + file, "", `{"a": 1.0}`, ""},
		{"@" + file + ".not", "", "", "no such file"},
		{`[1]`, "", "", "--args is no JSON object"},
		{`{"a:1}`, "", "", "(at byte"},
		{`{"a":1,"a":2}`, "", "", "--args cannot be sent"},
		{`{"a":{"b":1,"b":2}}`, "", "", "--args cannot be sent"},
		{"-", `{"a":"` + strings.Repeat("x", maxArguments) + `"}`, "", "over 4 MiB"},
	} {
		got, err := Arguments(c.given, strings.NewReader(c.stdin))
		if string(got) != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.40q: %s (%v), want %s, %q", c.given, got, err, c.want, c.says)
		}
	}
}
