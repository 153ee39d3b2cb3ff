package observe

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"mcp-gateway/upstream"
)

// scraped is what a scrape shows. The Go and process collectors are left out: what they say differs from run to run.
func scraped(t *testing.T, o *Observer) string {
	t.Helper()
	status, _, text := ask(t, serve(t, o.Handler(Access{Loopback: true})), "GET", "/metrics")
	if status != 200 {
		t.Fatalf("%d: %s", status, text)
	}
	var own strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, namespace+"_") {
			own.WriteString(line)
		}
	}
	return own.String()
}

// busy has recorded one of each kind of call.
func busy(t *testing.T) (*Observer, *gateway) {
	t.Helper()
	o, g := newObserver(t)
	o.Reloaded(began, "abc", nil)
	o.Reloaded(began.Add(time.Hour), "def", fmt.Errorf("reading the configuration: no upstreams"))
	call := Record{Request: "r-1", Method: "tools/call", Name: "files__read", Listed: true, Upstream: "files", Target: "read", Outcome: "ok",
		Duration: 20 * time.Millisecond, UpstreamDuration: 15 * time.Millisecond}
	o.Record(call)
	o.Record(call)
	call.Outcome = "tool-error"
	o.Record(call)
	call.Outcome, call.Code, call.Words = "error-response", -32602, "no such file"
	o.Record(call)
	call.Outcome, call.Code, call.Cause, call.Canceled = "no-response", 0, "canceled", true
	o.Record(call)
	call.Cause, call.Canceled, call.Retry, call.Words = "deadline", false, "check", "It may or may not have taken effect."
	call.Duration, call.UpstreamDuration = 2*time.Second, 2*time.Second
	o.Record(call)
	call = Record{Request: "r-2", Method: "tools/call", Name: "jira__search", Upstream: "jira", Target: "search", Outcome: "not-sent", Cause: "queue-full",
		Retry: "safe", Words: "Nothing took effect.", HTTPStatus: 502, Duration: time.Second, UpstreamDuration: time.Second}
	o.Record(call)
	return o, g
}

func TestMetrics(t *testing.T) {
	o, _ := busy(t)
	golden(t, "metrics.golden", strings.ReplaceAll(scraped(t, o), runtime.Version(), "GO"))
}

func TestGoAndProcessAreMeasured(t *testing.T) {
	o, _ := newObserver(t)
	_, _, text := ask(t, serve(t, o.Handler(Access{})), "GET", "/metrics")
	for _, name := range []string{"go_goroutines", "process_start_time_seconds"} {
		if !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("no %s", name)
		}
	}
}

func TestMetricsAreNamedAsTheyShouldBe(t *testing.T) {
	o, _ := busy(t)
	text := scraped(t, o)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	check := exec.Command(promtool(t), "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// An upstream that a reload has taken out leaves nothing behind, and one that comes back begins anew.
func TestRemovedUpstreamLeavesNoSeries(t *testing.T) {
	o, g := busy(t)
	before := *g.upstreams.Load()
	g.set(before[1])
	if text := scraped(t, o); strings.Contains(text, `"files"`) || !strings.Contains(text, `"jira"`) {
		t.Errorf("with jira alone:\n%s", text)
	}
	g.set(before...)
	o.Record(Record{Method: "tools/call", Name: "files__read", Listed: true, Upstream: "files", Outcome: "ok"})
	if text := scraped(t, o); !strings.Contains(text, `requests_total{method="tools/call",outcome="ok",tool="files__read",upstream="files"} 1`) {
		t.Errorf("after files came back:\n%s", text)
	}
	if got := o.status().Upstreams[0]; got.Calls != 1 {
		t.Errorf("%d calls after files came back", got.Calls)
	}
}

// A status that nobody scrapes beside it forgets as well.
func TestRemovedUpstreamIsForgottenByStatus(t *testing.T) {
	o, g := busy(t)
	g.set()
	o.status()
	if len(o.tallies) != 0 || len(o.tools) != 0 {
		t.Errorf("%d tallies and %d tools are left", len(o.tallies), len(o.tools))
	}
}

func TestToolLabelsAreBounded(t *testing.T) {
	o, g := newObserver(t)
	call := func(upstream, name string, listed bool) {
		o.Record(Record{Method: "tools/call", Upstream: upstream, Name: name, Listed: listed, Outcome: "ok"})
	}
	has := func(name string) bool { return strings.Contains(scraped(t, o), `tool="`+name+`"`) }
	call("files", "unlisted", false)
	call("files", strings.Repeat("x", maxToolName+1), true)
	if text := scraped(t, o); strings.Contains(text, "unlisted") || strings.Contains(text, "xxx") || !strings.Contains(text, `tool="other",upstream="files"} 2`) {
		t.Errorf("%s", text)
	}
	call("files", strings.Repeat("y", maxToolName), true)
	for i := range maxTools {
		call("jira", fmt.Sprint("t", i), true)
	}
	call("files", strings.Repeat("y", maxToolName), false) // known by now
	if !has(strings.Repeat("y", maxToolName)) || !has("t998") || has("t999") {
		t.Error("the first thousand are not those with a label")
	}
	g.set((*g.upstreams.Load())[1])
	scraped(t, o)
	call("jira", "t999", true)
	if !has("t999") {
		t.Error("the tool of an upstream that is gone keeps its place")
	}
}

// What the metrics say of outcomes, causes and states is what the engines say.
func TestWordsAreTheEngines(t *testing.T) {
	for cause, want := range map[upstream.Cause]string{
		upstream.QueueFull: "queue", upstream.Deadline: "timeout", upstream.DeadlineUnsent: "timeout", upstream.BetweenRounds: "timeout",
		upstream.StateUsedUp: "timeout", upstream.StateExpired: "input_timeout", upstream.RoundsExhausted: "rounds", upstream.TooLarge: "result",
	} {
		if got := limitOf[string(cause)]; got != want {
			t.Errorf("%s is at the limit %q, want %q", cause, got, want)
		}
	}
	for _, s := range []upstream.State{upstream.Connecting, upstream.Live, upstream.Backoff, upstream.Verdict, upstream.Held, upstream.Closing, upstream.Closed} {
		if !slices.Contains(states, string(s)) {
			t.Errorf("no series for the state %s", s)
		}
	}
	if outcomeNotSent != string(upstream.NotSent) {
		t.Errorf("%s is not %s", outcomeNotSent, upstream.NotSent)
	}
}

func TestReloads(t *testing.T) {
	o, _ := newObserver(t)
	says := func(want ...string) {
		t.Helper()
		text := scraped(t, o)
		for _, w := range want {
			if !strings.Contains(text, "\nmcp_gateway_"+w+"\n") {
				t.Errorf("no %q in:\n%s", w, regexp.MustCompile(`(?m)^.*(reload|config_info).*$`).FindAllString(text, -1))
			}
		}
	}
	says("reload_last_successful 1", `reloads_total{result="success"} 0`, `reloads_total{result="failure"} 0`)
	o.Reloaded(began, "abc", nil)
	o.Reloaded(began.Add(time.Hour), "def", fmt.Errorf("no upstreams"))
	says("reload_last_successful 0", `reloads_total{result="success"} 1`, `reloads_total{result="failure"} 1`, `config_info{hash="abc"} 1`,
		fmt.Sprintf("reload_last_success_timestamp_seconds %v", float64(began.Unix())))
	o.Reloaded(began.Add(2*time.Hour), "ghi", nil)
	says("reload_last_successful 1", `reloads_total{result="success"} 2`, `config_info{hash="ghi"} 1`)
	if text := scraped(t, o); strings.Contains(text, "abc") {
		t.Error("the hash of an earlier configuration is still shown")
	}
}

// A scrape that cannot be made fails alone.
func TestScrapeOfNoTextFails(t *testing.T) {
	o, g := newObserver(t)
	g.set(Upstream{ID: "files", Revision: "\xff"})
	address := serve(t, o.Handler(Access{}))
	for range 2 {
		if status, _, text := ask(t, address, "GET", "/metrics"); status != 500 || !strings.Contains(text, "not valid UTF-8") {
			t.Errorf("%d %s", status, text)
		}
	}
}

func TestScrapesAtOnceAreBounded(t *testing.T) {
	o, _ := newObserver(t)
	began, release := make(chan struct{}), make(chan struct{})
	o.cfg.Upstreams = func() []Upstream { began <- struct{}{}; <-release; return nil }
	address := serve(t, o.Handler(Access{}))
	var scrapers []net.Conn
	for range maxScrapes {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
		scrapers = append(scrapers, conn)
		<-began
	}
	if status, _, _ := ask(t, address, "GET", "/metrics"); status != 503 {
		t.Errorf("one more is answered %d", status)
	}
	close(release)
	for _, conn := range scrapers {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
	}
}

// Calls are recorded while others look.
func TestEverythingAtOnce(t *testing.T) {
	o, g := newObserver(t)
	list := *g.upstreams.Load()
	address := serve(t, o.Handler(Access{Loopback: true}))
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			for i := range 300 {
				o.Record(Record{Method: "tools/call", Upstream: "files", Name: "files__read", Listed: true, Outcome: []string{"ok", "not-sent"}[i%2]})
			}
		})
	}
	for i := range 10 {
		g.set(list[i%2:]...)
		ask(t, address, "GET", "/metrics")
		ask(t, address, "GET", "/status")
		ask(t, address, "GET", "/readyz")
		o.Reloaded(began, "abc", nil)
	}
	running.Wait()
	g.set()
	if text := scraped(t, o); strings.Contains(text, `"files"`) {
		t.Errorf("series of a call that ended late stay:\n%s", text)
	}
}
