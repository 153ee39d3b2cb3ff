package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// freeAddress is one that nobody listens on at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// asked is the answer of the admin listener.
func asked(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("X-Mcp-Gateway-Admin", "1")
	}
	resp, err := direct.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestWhoRunsTheGatewayIsTold asks all that the admin listener answers.
func TestWhoRunsTheGatewayIsTold(t *testing.T) {
	t.Parallel()
	const secret = "planted-Xk29fQ-7-secret"
	good, away := newCannedStdio(t, "canned"), "127.0.0.1:1"
	admin := "http://" + freeAddress(t)
	config := "admin: " + strings.TrimPrefix(admin, "http://") + "\nupstreams:\n  good:\n" + good.command() +
		"  away: {url: http://" + away + "/mcp, required: true, credential: {bearer: " + secret + "}}\n"
	g := serve(t, config)
	if r := call(t, g, "good__odd"); r.result == nil {
		t.Fatalf("the upstream does not work: %v", r)
	}
	call(t, g, "away__tool")
	call(t, g, "good__error")

	if status, body := asked(t, http.MethodGet, admin+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: %d %s", status, body)
	}
	if status, body := asked(t, http.MethodGet, admin+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "away") {
		t.Errorf("/readyz while a required upstream was never live: %d %s", status, body)
	}
	status, body := asked(t, http.MethodGet, admin+"/metrics")
	for _, want := range []string{
		`mcp_gateway_requests_total{method="tools/call",outcome="ok",tool="good__odd",upstream="good"} 1`,
		`mcp_gateway_requests_total{method="tools/call",outcome="not-sent"`, `mcp_gateway_reloads_total`, `mcp_gateway_upstream_tools`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics (%d) has no %s", status, want)
		}
	}
	var page struct {
		Upstreams []struct{ ID, State string }
		Failures  []struct{ Name, Words string }
		Config    json.RawMessage
	}
	status, body = asked(t, http.MethodGet, admin+"/status")
	if err := json.Unmarshal([]byte(body), &page); err != nil || status != http.StatusOK {
		t.Fatalf("/status: %d %v %s", status, err, body)
	}
	if len(page.Upstreams) != 2 || page.Upstreams[0].ID != "good" || page.Upstreams[0].State != "live" || len(page.Failures) < 2 || page.Failures[0].Words == "" {
		t.Errorf("/status: %s", body)
	}
	if strings.Contains(body, secret) {
		t.Errorf("/status shows the credential: %s", body)
	}

	before := good.pids()
	if status, body := asked(t, http.MethodPost, admin+"/-/upstreams/good/restart"); status != http.StatusOK {
		t.Errorf("restart: %d %s", status, body)
	}
	if !eventually(patience, func() bool { now := good.pids(); return len(now) == 1 && now[0] != before[0] }) {
		t.Errorf("after a restart it runs as %d, was %d", good.pids(), before)
	}
	if status, _ := asked(t, http.MethodPost, admin+"/-/upstreams/nobody/restart"); status != http.StatusNotFound {
		t.Errorf("the restart of nobody: %d", status)
	}
	if status, body := asked(t, http.MethodPost, admin+"/-/reload"); status != http.StatusOK || !strings.Contains(body, `"kept"`) {
		t.Errorf("reload: %d %s", status, body)
	}
	g.reload(t, "upstreams: {}")
	if status, body := asked(t, http.MethodPost, admin+"/-/reload"); status != http.StatusUnprocessableEntity || !strings.Contains(body, "upstreams") {
		t.Errorf("the reload of a broken file: %d %s", status, body)
	}
}

// TestAWatchedFileReloads has no signal: only the file changes.
func TestAWatchedFileReloads(t *testing.T) {
	t.Parallel()
	pipe := newCannedStdio(t, "canned")
	g := serve(t, "watch: true\nupstreams:\n  pipe:\n"+pipe.command())
	g.write(t, "watch: true\nupstreams:\n  pipe:\n"+pipe.command()+"    prefix: other__\n")
	g.await(t, "that it has reloaded", func(output string) bool { return strings.Contains(output, `"msg":"reloaded"`) })
	if r := call(t, g, "other__odd"); r.result == nil {
		t.Errorf("under the new prefix: %v", r)
	}
}

// TestAMissingFileIsTakenUpOnceItIsThere has a configuration refer to a file that comes after it.
func TestAMissingFileIsTakenUpOnceItIsThere(t *testing.T) {
	t.Parallel()
	pipe := newCannedStdio(t, "canned")
	g := serve(t, "watch: true\nupstreams:\n  pipe:\n"+pipe.command())
	g.write(t, "watch: true\nupstreams:\n  pipe:\n"+pipe.command()+"    prefix: ${file:prefix}\n")
	g.await(t, "that it has not reloaded", func(output string) bool { return strings.Contains(output, `"msg":"not reloaded`) })
	if err := os.WriteFile(filepath.Join(filepath.Dir(g.file), "prefix"), []byte("other__\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.await(t, "that it has reloaded", func(output string) bool { return strings.Contains(output, `"msg":"reloaded"`) })
	if r := call(t, g, "other__odd"); r.result == nil {
		t.Errorf("under the new prefix: %v", r)
	}
}

// TestManyReplicas has two gateways with the same keys behind an ingress that asks them in turn, and one after the
// other restart under load.
func TestManyReplicas(t *testing.T) {
	t.Parallel()
	const keys = "seal: {keys: [AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=]}\n"
	web := newCannedHTTP(t)
	config := keys + "hosts: [127.0.0.1]\nshutdown_delay: 2s\nupstreams:\n  web: {url: " + quoted(web.URL) + "}\n"
	first, second := serve(t, config), serve(t, config)
	first.allListed(t)
	second.allListed(t)
	in := newIngress(t, "", first.host(), second.host())
	legacy := handshake(t, in.URL, "2025-11-25")
	load := func(i int) (string, reply, error) {
		if i%2 == 0 {
			r, err := tryPost(t.Context(), in.URL, modernHeader("tools/call", "web__odd"), modernRequest(`1`, "tools/call", `"name":"web__odd"`))
			return "modern", r, err
		}
		r, err := tryPost(t.Context(), in.URL, legacyHeader(legacy.revision, legacy.session),
			fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"web__odd"}}`, i))
		return "legacy", r, err
	}
	check := func(i int) {
		if client, r, err := load(i); err != nil || r.result == nil {
			t.Errorf("call %d of a %s client: %v %v", i, client, r, err)
		}
	}
	for i := range 40 {
		check(i)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				check(i)
			}
		}
	}()
	// The signal first, as in a rolling restart: the ingress hears of it inside shutdown_delay.
	first.signal(t, syscall.SIGTERM)
	in.only(t, second.host())
	if code := first.wait(t); code != 0 {
		t.Errorf("the first ended with %d", code)
	}
	again := serve(t, config)
	again.allListed(t)
	second.signal(t, syscall.SIGTERM)
	in.only(t, again.host())
	if code := second.wait(t); code != 0 {
		t.Errorf("the second ended with %d", code)
	}
	for i := range 40 {
		check(i)
	}
	close(stop)
	<-done

	// One that is killed takes along what it was doing, and nothing else.
	third := serve(t, config)
	third.allListed(t)
	doomed := start(t, config)
	doomed.allListed(t)
	in.only(t, third.host(), doomed.host())
	doomed.signal(t, syscall.SIGKILL)
	<-doomed.exited
	for i := range 20 {
		check(i)
	}
}
