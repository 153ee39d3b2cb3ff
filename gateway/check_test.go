package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcp-gateway/gateway/config"
)

// ways are the phases of an upstream in short.
func ways(r Reached) string {
	var names []string
	for _, p := range r.Phases {
		name := p.Name
		if !p.OK {
			name += "!"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestDialTellsTheWayToEachServer(t *testing.T) {
	t.Parallel()
	cfg := parsed(t, fmt.Sprintf(`{
		child: {%s}, child-modern: {%s, protocol: modern},
		modern: {url: %q, credential: {bearer: 0123456789abcdef}, tools: {deny: ["*"]}},
		legacy: {url: %q, protocol: legacy},
		sse: {url: %q, protocol: legacy, transport: sse},
		socket: {url: %q}}`,
		child(t, "legacy"), child(t, "modern"), modernHTTP(t, wants("0123456789abcdef")), legacyHTTP(t), legacySSE(t), legacySocket(t)))
	var mu sync.Mutex
	var told [][]string
	got := Dial(t.Context(), cfg, DialOptions{Waiting: func(ids []string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, slices.Clone(ids))
	}})
	for i, want := range []struct {
		way, revision string
		tools, denied int
	}{
		{"find start handshake list", "2025-11-25", 2, 0},
		{"find start handshake list", "2026-07-28", 1, 0},
		{"connect credential handshake list", "2026-07-28", 0, 1},
		{"connect handshake list", "2025-11-25", 2, 0},
		{"connect endpoint handshake list", "2025-11-25", 2, 0},
		{"connect upgrade handshake list", "2025-11-25", 2, 0},
	} {
		r := got[i]
		if r.ID != cfg.Upstreams[i].ID || !r.OK || ways(r) != want.way || r.Revision != want.revision || r.Tools != want.tools || r.Denied != want.denied {
			t.Errorf("%+v, want %+v", r, want)
		}
		for _, p := range r.Phases {
			if p.TookMs < 0 {
				t.Errorf("%s: %s took %v ms", r.ID, p.Name, p.TookMs)
			}
		}
	}
	if len(told) != 7 || len(told[0]) != 6 || len(told[6]) != 0 {
		t.Errorf("it told that it waits for %v", told)
	}
	if self, _ := os.Executable(); got[0].Phases[0].Detail != self || got[0].Phases[2].Detail != "2025-11-25" {
		t.Errorf("%+v", got[0].Phases)
	}
}

func TestDialNamesWhatFailed(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	modern, none := modernHTTP(t), serveTest(t, http.NotFoundHandler())
	secure := httptest.NewUnstartedServer(modernHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it is told of the clients that do not trust it
	secure.StartTLS()
	t.Cleanup(secure.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	noList := modernHTTP(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Mcp-Method") == "tools/list" {
			w.WriteHeader(http.StatusInternalServerError)
			return false
		}
		return true
	})
	// It names an endpoint where nobody takes anything.
	halfSSE := serveTest(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: endpoint\ndata: /post\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	for name, c := range map[string]struct{ upstream, way, says, fix string }{
		"no program":        {`command: no-such-program-at-all`, "find!", "no such command in PATH", ""},
		"no directory":      {`command: cat, cwd: /no/such`, "find!", "does not exist", ""},
		"not executable":    {`command: ` + plain, "find start!", "permission denied", ""},
		"it ends":           {child(t, "broken"), "find start handshake!", "exit status 3); its stderr ends with: no database", "PATH, HOME, LANG"},
		"it ends, with all": {child(t, "broken") + `, inherit_env: true`, "find start handshake!", "exit status 3", "by hand to see what it needs"},
		"it is silent":      {child(t, "silent") + `, start_timeout: 2s`, "find start handshake!", "start_timeout (2s)", "wants a longer `start_timeout`"},
		"silent, as modern": {child(t, "silent") + `, start_timeout: 2s, protocol: modern`, "find start handshake!", "start_timeout (2s)", "take `protocol: modern` out"},
		"modern, not so":    {child(t, "modern"), "find start handshake!", "set `protocol: modern`", ""},

		"nobody":            {`url: ` + closed.URL, "connect!", "connection refused", "nothing listens there"},
		"no TLS":            {`url: https` + strings.TrimPrefix(modern, "http"), "connect tls!", "TLS handshake", "write http://"},
		"unknown authority": {`url: ` + secure.URL, "connect tls!", "unknown authority", "SSL_CERT_FILE"},
		"who asks":          {`url: ` + modernHTTP(t, wants("x")), "connect credential!", "401", "add `credential: {bearer"},
		"wrong header":      {`url: ` + modernHTTP(t, wants("x")) + `, headers: {Authorization: Bearer 0123456789abcdef}`, "connect credential!", "401", "correct Authorization there"},
		"wrong token":       {`url: ` + modernHTTP(t, wants("x")) + `, credential: {bearer: 0123456789abcdef}`, "connect credential!", "401", "correct `credential.bearer`"},
		"no token":          {`url: ` + modern + `, credential: {command: [false]}`, "credential!", "no-credential", "see to `credential.command`"},
		"it is legacy":      {`url: ` + legacyHTTP(t), "connect handshake!", "set `protocol: legacy`", ""},
		"it is none":        {`url: ` + none + `/x`, "connect handshake!", "needs `protocol: legacy`", "mcp-gateway inspect " + none + "/x"},
		"it is modern":      {`url: ` + modern + `, protocol: legacy`, "connect handshake!", "set `protocol: modern`", ""},
		"no WebSocket":      {`url: ws` + strings.TrimPrefix(modern, "http"), "connect upgrade!", "405", "mcp-gateway inspect ws"},
		"no stream":         {`url: ` + modern + `, protocol: legacy, transport: sse`, "connect endpoint!", "`transport: sse` taken out", "mcp-gateway inspect"},
		"half a stream":     {`url: ` + halfSSE + `, protocol: legacy, transport: sse`, "connect endpoint handshake!", "500", "mcp-gateway inspect"},
		"no list":           {`url: ` + noList, "connect handshake list!", "500", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Dial(t.Context(), parsed(t, `{it: {`+c.upstream+`}}`), DialOptions{})[0]
			failed := r.Failed()
			if r.OK || ways(r) != c.way || !strings.Contains(failed.Error, c.says) || !strings.Contains(failed.Fix, c.fix) || c.fix == "" && failed.Fix != "" {
				t.Errorf("got %s, %+v; want %s, %q, %q", ways(r), failed, c.way, c.says, c.fix)
			}
			text, err := json.Marshal(r)
			if err != nil || strings.Contains(string(text), "0123456789abcdef") {
				t.Errorf("%s (%v)", text, err)
			}
		})
	}
}

// A list that never comes ends with ctx, as it would with start_timeout.
func TestDialGivesUpAList(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	silent := modernHTTP(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Mcp-Method") == "tools/list" {
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the client has gone
			cancel()
			<-r.Context().Done()
			return false
		}
		return true
	})
	cfg := parsed(t, `{it: {url: `+silent+`}}`)
	r := Dial(ctx, cfg, DialOptions{})[0]
	if p := r.Failed(); ways(r) != "connect handshake list!" || p.Error != "no answer to tools/list: context canceled" || p.Fix != "" {
		t.Errorf("%+v", r)
	}
	w := newDialer(cfg, nil).watch(cfg.Upstreams[0])
	if p := w.failure(phaseList, errSlow); p.Error != "it took longer than start_timeout" || !strings.Contains(p.Fix, "raise start_timeout") {
		t.Errorf("%+v", p)
	}
}

// What a server says is shown without what the configuration keeps secret.
func TestDialRedacts(t *testing.T) {
	t.Parallel()
	cfg := parsed(t, `{it: {`+strings.Replace(child(t, "broken"), "env: {", "env: {DB_PASSWORD: hunter2hunter2, ", 1)+`},
		web: {url: "http://127.0.0.1:9/mcp?api_key=hunter2hunter2"}}`)
	var logged strings.Builder
	for _, r := range Dial(t.Context(), cfg, DialOptions{Log: &logged}) {
		if text, _ := json.Marshal(r); strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "[redacted]") {
			t.Errorf("%s", text)
		}
	}
	if strings.Contains(logged.String(), "hunter2") || !strings.Contains(logged.String(), "no database") {
		t.Errorf("the log has %s", logged.String())
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cfg := parsed(t, `{it: {`+child(t, "silent")+`}}`)
	r := Dial(ctx, cfg, DialOptions{Waiting: func([]string) { cancel() }})[0]
	if p := r.Failed(); r.OK || p.Fix != "" || !strings.Contains(p.Error, "canceled") {
		t.Errorf("%+v", r)
	}
}

func TestDialThroughAProxy(t *testing.T) {
	t.Parallel()
	modern := modernHTTP(t)
	forward := serveTest(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		r.RequestURI = ""
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		body := make([]byte, 4<<10)
		n, _ := resp.Body.Read(body)
		_, _ = w.Write(body[:n])
	}))
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	for name, c := range map[string]struct{ url, proxy, way, says string }{
		"it works":        {modern, forward, "proxy connect handshake list", "through " + forward},
		"it refuses":      {"https" + strings.TrimPrefix(modern, "http"), forward, "proxy!", "Forbidden"},
		"it is not there": {modern, "http://127.0.0.1:9", "proxy!", "connection refused"},
		"it has no name":  {modern, "http://proxy.invalid:1", "proxy!", "proxy.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := parsed(t, `{it: {url: `+c.url+`}}`)
			d := newDialer(cfg, nil)
			d.proxy = http.ProxyURL(mustURL(t, c.proxy))
			r := d.reach(t.Context(), cfg.Upstreams[0])
			said := r.Phases[0].Detail + r.Failed().Error
			if ways(r) != c.way || !strings.Contains(said, c.says) || !r.OK && !strings.Contains(r.Failed().Fix, "NO_PROXY") {
				t.Errorf("got %s, %+v", ways(r), r.Phases)
			}
		})
	}
}

// A name that nobody knows is told as such, and so is one that nobody answers for.
func TestResolveIsAPhase(t *testing.T) {
	t.Parallel()
	cfg := parsed(t, `{it: {url: http://mcp.example/mcp}}`)
	for _, c := range []struct {
		err error
		fix string
	}{
		{&net.DNSError{Err: "no such host", Name: "mcp.example", IsNotFound: true}, "correct the host"},
		{&net.DNSError{Err: "i/o timeout", Name: "mcp.example", IsTimeout: true}, "the name service did not answer"},
	} {
		d := newDialer(cfg, nil)
		w := d.watch(cfg.Upstreams[0])
		w.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			hooks := w.hooks()
			hooks.DNSStart(httptraceDNS)
			hooks.DNSDone(dnsDone(c.err))
			return nil, c.err
		}
		e, err := newEngine(cfg.Upstreams[0], w.parts(d.parts))
		if err != nil {
			t.Fatal(err)
		}
		e.Start()
		phases := w.phases(t.Context(), settled(t.Context(), e))
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if p := phases[0]; len(phases) != 1 || p.Name != phaseResolve || !strings.Contains(p.Fix, c.fix) {
			t.Errorf("%+v", phases)
		}
	}
}

func TestCheckedIsForPrograms(t *testing.T) {
	t.Parallel()
	warnings := []config.Problem{{File: "f", Line: 1, Col: 2, Path: "a.b", Text: "hm"}}
	for _, c := range []struct {
		err     error
		reached []Reached
		want    string
	}{
		{nil, nil, `{"file":"f","ok":true,"problems":[],"warnings":[{"file":"f","line":1,"col":2,"path":"a.b","text":"hm"}]}`},
		{config.Problems{{File: "f", Text: "no"}}, nil, `{"file":"f","ok":false,"problems":[{"file":"f","text":"no"}],"warnings":[{"file":"f","line":1,"col":2,"path":"a.b","text":"hm"}]}`},
		{nil, []Reached{{ID: "a", Engine: "e", Address: "x", Phases: []Phase{{Name: "find", TookMs: 1.5, Error: "gone"}}}},
			`{"file":"f","ok":false,"problems":[],"warnings":[{"file":"f","line":1,"col":2,"path":"a.b","text":"hm"}],"upstreams":[{"id":"a","engine":"e","address":"x","ok":false,"tools":0,"denied":0,"leftOut":0,"phases":[{"phase":"find","ok":false,"tookMs":1.5,"error":"gone"}]}]}`},
	} {
		if text, err := json.Marshal(NewChecked("f", warnings, c.err, c.reached)); err != nil || string(text) != c.want {
			t.Errorf("got %s (%v)\nwant %s", text, err, c.want)
		}
	}
}
