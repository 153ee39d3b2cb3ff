package observe

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcp-gateway/redact"
)

func TestStatus(t *testing.T) {
	o, _ := busy(t)
	o.started = began
	status, headers, body := ask(t, serve(t, o.Handler(Access{Loopback: true})), "GET", "/status")
	if status != 200 || headers.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", status, headers)
	}
	golden(t, "status.golden", regexp.MustCompile(`"time": "20[^"]*Z?"`).ReplaceAllString(body, `"time": "NOW"`))
}

// Before anything has happened a page finds what it looks for all the same.
func TestEmptyStatus(t *testing.T) {
	o, g := newObserver(t)
	g.set()
	g.effective = ""
	_, _, body := ask(t, serve(t, o.Handler(Access{Loopback: true})), "GET", "/status")
	for _, want := range []string{`"upstreams": []`, `"failures": []`, `"config": null`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if strings.Contains(body, `"reload"`) {
		t.Errorf("a reload before the first: %s", body)
	}
}

func TestStatusOfReload(t *testing.T) {
	o, _ := newObserver(t)
	o.Reloaded(began, "abc", errors.New("no upstreams"))
	if got := o.status().Reload; got == nil || got.OK || got.Error != "no upstreams" || !got.At.Equal(began) {
		t.Errorf("%+v", got)
	}
	o.Reloaded(began.Add(time.Hour), "abc", nil)
	if got := o.status().Reload; got == nil || !got.OK || got.Error != "" || !got.At.Equal(began.Add(time.Hour)) {
		t.Errorf("%+v", got)
	}
}

func TestRestartsAreTheSessionsAfterTheFirst(t *testing.T) {
	o, g := newObserver(t)
	for sessions, want := range []uint64{0, 0, 1, 2} {
		g.set(Upstream{ID: "files", Sessions: uint64(sessions)})
		if got := o.status().Upstreams[0].Restarts; got != want {
			t.Errorf("%d sessions are %d restarts, want %d", sessions, got, want)
		}
	}
}

func TestReady(t *testing.T) {
	o, g := newObserver(t)
	address := serve(t, o.Handler(Access{}))
	up := Upstream{ID: "files", State: "live", Required: true, WasLive: true}
	down := Upstream{ID: "jira", State: "connecting", Reason: "connecting", LastError: "dial tcp 10.0.0.7:80: refused"}
	required, lost := down, down
	required.Required = true
	lost.Required, lost.WasLive, lost.State, lost.Reason = true, true, "held", "held"
	for _, test := range []struct {
		name    string
		unready error
		list    []Upstream
		status  int
		says    []string
	}{
		{"all live", nil, []Upstream{up}, 200, []string{`"ready": true`, `"state": "live"`, `"required": true`}},
		{"one that nobody requires is down", nil, []Upstream{up, down}, 200, []string{`"id": "jira"`, `"state": "connecting"`, `"reason": "connecting"`, `"required": false`}},
		{"a required one was never live", nil, []Upstream{up, required}, 503, []string{`"ready": false`, `upstream \"jira\" is required`}},
		{"a required one was live", nil, []Upstream{up, lost}, 200, []string{`"state": "held"`}},
		{"before the start and after the end", errors.New("the end has begun"), []Upstream{up}, 503, []string{`"reason": "the end has begun"`, `"id": "files"`}},
	} {
		g.unready = test.unready
		g.set(test.list...)
		status, _, body := ask(t, address, "GET", "/readyz")
		if status != test.status {
			t.Errorf("%s: %d %s", test.name, status, body)
		}
		for _, want := range test.says {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %s in %s", test.name, want, body)
			}
		}
		if strings.Contains(body, "10.0.0.7") {
			t.Errorf("%s: an error's text for everyone: %s", test.name, body)
		}
		ready := map[int]string{200: "mcp_gateway_ready 1\n", 503: "mcp_gateway_ready 0\n"}[status]
		if text := scraped(t, o); !strings.Contains(text, ready) {
			t.Errorf("%s: no %q in the metrics", test.name, ready)
		}
	}
}

// Nothing that the handler shows holds a secret, wherever it came from and whenever it became one.
func TestSecretsAreShownNowhere(t *testing.T) {
	const early, late = "s3cr3t-t0ken", "an0ther-s3cr3t"
	o, g := newObserver(t)
	g.scrubber.Add(redact.NewSecret(early))
	planted := early + " and " + late
	g.set(Upstream{ID: "files", LastError: planted})
	g.effective = `{"listen":"` + planted + `"}`
	g.diff = g.effective
	o.Record(Record{Outcome: "not-sent", Name: planted, Words: planted, Upstream: "files"})
	// It would be cut in the middle, were it cut before it is redacted.
	o.Record(Record{Outcome: "not-sent", Name: strings.Repeat("x", maxText-5) + early, Upstream: "files"})
	o.Reloaded(began, "abc", errors.New(planted))
	g.scrubber.Add(redact.NewSecret(late))
	o.cfg.Restart = func(context.Context, string) error { return errors.New(planted) }

	address := serve(t, o.Handler(Access{Loopback: true}))
	for _, path := range []string{"GET /status", "GET /readyz", "POST /-/reload", "POST /-/upstreams/files/restart", "GET /metrics"} {
		method, path, _ := strings.Cut(path, " ")
		if _, _, body := ask(t, address, method, path, header); strings.Contains(body, "s3cr3t") || strings.Contains(body, "s3cr") {
			t.Errorf("%s: %s", path, body)
		}
	}
	g.reloadErr = errors.New(planted)
	if _, _, body := ask(t, address, "POST", "/-/reload", header); strings.Contains(body, "s3cr") || !strings.Contains(body, redact.Mask) {
		t.Errorf("a failed reload: %s", body)
	}
}

// A status that cannot be redacted says so, and nothing else.
func TestStatusIsWithheld(t *testing.T) {
	o, _ := newObserver(t)
	o.cfg.Scrubber = &redact.Scrubber{}
	page := httptest.NewRecorder()
	o.serveStatus(page, httptest.NewRequest(http.MethodGet, "/status", nil))
	var got statusPage
	if err := json.Unmarshal(page.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if string(got.Config) != "null" || got.Upstreams[1].LastError != redact.Withheld {
		t.Errorf("%s", page.Body)
	}
}
