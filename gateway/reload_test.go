package gateway

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/gateway/config"
	"mcp-gateway/policy"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

// Every setting of an upstream either makes another engine necessary or is read anew for each request.
func TestEverySettingOfAnUpstreamReloads(t *testing.T) {
	secret := redact.NewSecret("x")
	engineSettings := map[string]func(*config.Upstream){
		"Engine":       func(u *config.Upstream) { u.Engine = config.ModernStdio },
		"Command":      func(u *config.Upstream) { u.Command = secret },
		"Args":         func(u *config.Upstream) { u.Args = []redact.Secret{secret} },
		"Env":          func(u *config.Upstream) { u.Env = []config.EnvVar{{Name: "x", Value: secret}} },
		"InheritEnv":   func(u *config.Upstream) { u.InheritEnv = true },
		"Cwd":          func(u *config.Upstream) { u.Cwd = "x" },
		"URL":          func(u *config.Upstream) { u.URL = secret },
		"Headers":      func(u *config.Upstream) { u.Headers = []config.Header{{Name: "x", Value: secret}} },
		"Revision":     func(u *config.Upstream) { u.Revision = "x" },
		"StartTimeout": func(u *config.Upstream) { u.StartTimeout = 1 },
		"Reconnect":    func(u *config.Upstream) { u.Reconnect.Max = 1 },
		"Concurrency":  func(u *config.Upstream) { u.Concurrency = 1 },
		"Queue":        func(u *config.Upstream) { u.Queue = 1 },
		"Credential":   func(u *config.Upstream) { u.Credential = &config.Credential{Bearer: secret} },
	}
	routeSettings := map[string]func(*config.Upstream){
		"Prefix":          func(u *config.Upstream) { u.Prefix = "x" },
		"Timeout":         func(u *config.Upstream) { u.Timeout = 1 },
		"ToolTimeouts":    func(u *config.Upstream) { u.ToolTimeouts = []config.ToolTimeout{{Pattern: "x"}} },
		"InputTimeout":    func(u *config.Upstream) { u.InputTimeout = 1 },
		"Rounds":          func(u *config.Upstream) { u.Rounds = 1 },
		"Poll":            func(u *config.Upstream) { u.Poll = 1 },
		"Tools":           func(u *config.Upstream) { u.Tools = policy.Tools{Allow: []string{}} },
		"ForwardHeaders":  func(u *config.Upstream) { u.ForwardHeaders = []config.ForwardHeader{{Name: "x"}} },
		"Required":        func(u *config.Upstream) { u.Required = true },
		"ResultsVerbatim": func(u *config.Upstream) { u.ResultsVerbatim = true },
	}
	for field := range reflect.TypeFor[config.Upstream]().Fields() {
		var changed config.Upstream
		switch {
		case field.Name == "ID":
		case engineSettings[field.Name] != nil:
			engineSettings[field.Name](&changed)
			if spec(changed) == spec(config.Upstream{}) {
				t.Errorf("with another %s the engine is kept", field.Name)
			}
		case routeSettings[field.Name] != nil:
			routeSettings[field.Name](&changed)
			if spec(changed) != spec(config.Upstream{}) {
				t.Errorf("with another %s the engine is not kept", field.Name)
			}
			a := &config.Config{Upstreams: []config.Upstream{{}}}
			b := &config.Config{Upstreams: []config.Upstream{changed}}
			if names := changedSettings(a, b); len(names) != 1 {
				t.Errorf("with another %s the changes are %q", field.Name, names)
			}
		default:
			t.Errorf("%s is in neither list: does another value need another engine?", field.Name)
		}
	}
	for _, c := range []*config.Credential{
		{BearerFile: "x"}, {Query: "x"}, {Command: []redact.Secret{secret}}, {OAuth2: &config.OAuth2{}}, {OAuth2: &config.OAuth2{Scopes: []string{"x"}}},
		{OAuth2: &config.OAuth2{TokenURL: secret}}, {OAuth2: &config.OAuth2{ClientID: "x"}}, {OAuth2: &config.OAuth2{ClientSecret: secret}},
		{OAuth2: &config.OAuth2{RefreshToken: secret}}, {OAuth2: &config.OAuth2{Resource: "x"}},
	} {
		if spec(config.Upstream{Credential: c}) == spec(config.Upstream{Credential: &config.Credential{}}) {
			t.Errorf("with the credential %+v the engine is kept", c)
		}
	}
}

// A runner is an engine that tells what becomes of it.
type runner struct {
	fake
	events *[]string
	mu     *sync.Mutex
	name   string
	close  func() error

	refused atomic.Bool
	unborn  atomic.Bool // it has not connected yet
}

func (r *runner) tell(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.events = append(*r.events, r.name+" "+what)
}

func (r *runner) Start()       { r.tell("start") }
func (r *runner) Refuse(error) { r.refused.Store(true); r.tell("refuse") }

func (r *runner) Status() (upstream.Status, <-chan struct{}) {
	status, changed := r.fake.Status()
	if r.refused.Load() {
		status.State = upstream.Held
	}
	if r.unborn.Load() {
		status.State, status.Session = upstream.Connecting, 0
	}
	return status, changed
}

func (r *runner) Close() error {
	err := error(nil)
	if r.close != nil {
		err = r.close()
	}
	if err != nil {
		r.tell("held")
	} else {
		r.tell("close")
	}
	return err
}

// reloading is a gateway whose configuration is *text, and what its engines have told. The engine number n of an id is made
// by engines, if that is not nil.
func reloading(t *testing.T, text *string, engines func(*runner)) (*Gateway, func() string) {
	t.Helper()
	var events []string
	var mu sync.Mutex
	made, dir := map[string]int{}, t.TempDir()
	load := func() (*config.Config, []config.Problem, error) {
		return config.Parse("test", []byte("state_dir: "+dir+"\nstart_grace: 10ms\n"+*text))
	}
	cfg, _, err := load()
	if err != nil {
		t.Fatal(err)
	}
	g, err := assemble(cfg, Options{Log: io.Discard, Status: io.Discard, Load: load}, func(u config.Upstream, _ parts) (engine, error) {
		mu.Lock()
		defer mu.Unlock()
		made[u.ID]++
		r := &runner{fake: fake{tools: oneTool}, events: &events, mu: &mu, name: u.ID + string(rune('0'+made[u.ID]))}
		if engines != nil {
			engines(r)
		}
		return r, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	snap := g.snapshot.Load()
	for _, m := range snap.members {
		m.Start()
	}
	snap.catalog.Start()
	t.Cleanup(func() {
		g.end()
		_ = g.teardown()
		_ = g.closeLog()
	})
	synctest.Wait()
	return g, func() string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		told := strings.Join(events, ", ")
		events = nil
		return told
	}
}

func TestReloadKeepsWhatIsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "upstreams: {a: {command: a}, b: {command: b}, c: {url: 'http://c/'}}"
		g, told := reloading(t, &text, nil)
		if got := told(); got != "a1 start, b1 start, c1 start" {
			t.Fatalf("at first %s", got)
		}
		text = "upstreams: {a: {command: a, timeout: 9s}, b: {command: other}, c: {url: 'http://c/2'}, d: {command: d}}"
		diff, err := g.Reload()
		if err != nil {
			t.Fatal(err)
		}
		if got := told(); got != "c2 start, d1 start, b1 close, b2 start, c1 close" && got != "c2 start, d1 start, c1 close, b1 close, b2 start" &&
			got != "c2 start, d1 start, b1 close, c1 close, b2 start" {
			t.Errorf("the reload made %s", got)
		}
		if got := diff.String(); got != "added: d; started anew: b, c; kept: a; settings: a.timeout" {
			t.Errorf("the diff is %s", got)
		}
		if r := g.snapshot.Load().byID["a"]; r.timeout != 9*time.Second {
			t.Errorf("the timeout is %v", r.timeout)
		}
		text = "upstreams: {a: {command: a}}"
		if diff, err = g.Reload("a"); err != nil || !slices.Equal(diff.Removed, []string{"b", "c", "d"}) || !slices.Equal(diff.Changed, []string{"a"}) {
			t.Errorf("the diff is %v, %v", diff, err)
		}
	})
}

func TestReloadThatCannotBeChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "upstreams: {a: {command: a}}"
		g, told := reloading(t, &text, nil)
		told()
		before := g.snapshot.Load()
		for _, bad := range []string{"upstreams: {}", "upstreams: {a: {command: a, timeout: 5}}", "{", "listen: localhost:8080\nupstreams: {b: {command: b}}"} {
			text = bad
			if _, err := g.Reload(); err == nil {
				t.Errorf("%s: reloaded", bad)
			}
		}
		text = "upstreams: {a: {command: a}}"
		if _, err := g.Reload("nobody"); !errors.Is(err, ErrUnknownUpstream) {
			t.Errorf("an unknown upstream: %v", err)
		}
		if got := told(); got != "" || g.snapshot.Load() != before {
			t.Errorf("something has changed: %s", got)
		}
	})
}

// Beside a process that could not be ended nothing is started, and the next reload tries again.
func TestReloadBesideAHeldProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := errors.New("it is still there")
		text := "upstreams: {a: {command: a}}"
		g, told := reloading(t, &text, func(r *runner) {
			if r.name == "a1" {
				r.close = func() error { return held }
			}
		})
		told()
		text = "upstreams: {a: {command: b}}"
		if _, err := g.Reload(); err != nil {
			t.Fatal(err)
		}
		if got := told(); got != "a1 held, a2 refuse" {
			t.Errorf("the reload made %s", got)
		}
		held = nil
		text = "upstreams: {a: {command: c}}"
		if _, err := g.Reload(); err != nil {
			t.Fatal(err)
		}
		if got := told(); got != "a1 close, a2 close, a3 start" {
			t.Errorf("the next reload made %s", got)
		}
	})
}

// One that was removed is ended before another of its id starts, also where that comes back with a later reload.
func TestOneProcessOfAnID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		text := "upstreams: {a: {command: a}, b: {command: b}}"
		g, told := reloading(t, &text, func(r *runner) {
			if r.name == "a1" {
				r.close = func() error { <-ended; return nil }
			}
		})
		told()
		for _, text = range []string{"upstreams: {b: {command: b}}", "upstreams: {b: {command: b}, a: {command: a}}", "upstreams: {b: {command: b}, a: {command: c}}"} {
			if _, err := g.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		if got := told(); got != "" {
			t.Errorf("before the first has ended: %s", got)
		}
		close(ended)
		if got := told(); got != "a1 close, a2 close, a3 start" {
			t.Errorf("once it has ended: %s", got)
		}
	})
}

// Neither a server at a url in between nor any number of other reloads lets a second process of an id start beside the first.
func TestOneProcessOfAnIDByWayOfAURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		text := "upstreams: {a: {command: a}}"
		g, told := reloading(t, &text, func(r *runner) {
			if r.name == "a1" {
				r.close = func() error { <-ended; return nil }
			}
		})
		told()
		for _, text = range []string{"upstreams: {a: {url: 'http://a/'}}", "upstreams: {a: {command: c}}"} {
			if _, err := g.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		if got := told(); got != "a2 start, a2 close" {
			t.Errorf("before the first has ended: %s", got)
		}
		close(ended)
		if got := told(); got != "a1 close, a3 start" {
			t.Errorf("once it has ended: %s", got)
		}
	})
}

func TestAHeldProcessKeepsItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := errors.New("it is still there")
		text := "upstreams: {a: {command: a}, b: {command: b}}"
		g, told := reloading(t, &text, func(r *runner) {
			if r.name == "a1" {
				r.close = func() error { return held }
			}
		})
		for _, text = range []string{"upstreams: {b: {command: b}}", "upstreams: {b: {command: b, timeout: 9s}}", "upstreams: {b: {command: b}, a: {command: a}}"} {
			synctest.Wait()
			if _, err := g.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		if got := told(); !strings.HasSuffix(got, "a1 held, a2 refuse") || strings.Contains(got, "a2 start") {
			t.Errorf("beside a held process: %s", got)
		}
		held = nil
		if _, err := g.Reload(); err != nil {
			t.Fatal(err)
		}
		if got := told(); got != "a1 close, a2 close, a3 start" {
			t.Errorf("once it is gone: %s", got)
		}
	})
}

func TestAReloadThatFailsLateLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "upstreams: {a: {command: a}}"
		g, told := reloading(t, &text, nil)
		told()
		g.doors = []*door{{}} // as if it served
		text = "listen: 192.0.2.1:1\ninsecure: true\nupstreams: {a: {command: a}, b: {command: b}}"
		if _, err := g.Reload(); err == nil {
			t.Error("reloaded to an address that is not this machine's")
		}
		if got := told(); got != "b1 close" {
			t.Errorf("it left %s", got)
		}
	})
}
