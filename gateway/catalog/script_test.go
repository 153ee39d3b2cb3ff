package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

// A script is an upstream that a test writes: its state, and what it answers to tools/list by cursor.
type script struct {
	mu      sync.Mutex
	status  upstream.Status
	changed chan struct{}
	pages   map[string]string // by cursor, "" is the first; a missing one is an error
	hold    chan struct{}     // a page waits for it; nil does not
	fails   error             // in the place of each page; nil does not
	deaf    bool              // a page that waits outlasts its ctx
	delay   time.Duration     // before each page
	onPage  func()            // before a page is answered, without mu
	onState func()            // before the state is told, without mu
	asked   int
	inside  int // calls at the same moment
	most    int // of inside
}

func newScript(pages map[string]string) *script {
	return &script{changed: make(chan struct{}), pages: pages, status: upstream.Status{State: upstream.Live, Session: 1, Revision: mcp.LegacyLatest}}
}

func (s *script) set(change func(*upstream.Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *script) Status() (upstream.Status, <-chan struct{}) {
	s.mu.Lock()
	onState := s.onState
	s.mu.Unlock()
	if onState != nil {
		onState()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, s.changed
}

func (s *script) Call(ctx context.Context, req *upstream.Request) (*upstream.Response, error) {
	s.mu.Lock()
	s.asked++
	s.inside++
	s.most = max(s.most, s.inside)
	hold, delay, onPage, fails := s.hold, s.delay, s.onPage, s.fails
	cursor, _ := req.Params.String("cursor")
	page, ok := s.pages[cursor]
	done := ctx.Done()
	if s.deaf {
		done = nil
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.inside--
		s.mu.Unlock()
	}()
	if onPage != nil {
		onPage()
	}
	if fails != nil {
		return nil, fails
	}
	if hold != nil {
		select {
		case <-hold:
		case <-done:
			return nil, context.Cause(ctx)
		}
	}
	select {
	case <-time.After(delay):
	case <-done:
		return nil, context.Cause(ctx)
	}
	if !ok {
		return nil, errors.New("no such page")
	}
	if code, isError := strings.CutPrefix(page, "error "); isError {
		n, _ := wire.Int([]byte(code))
		return nil, &wire.Error{Code: n, Message: "scripted"}
	}
	o, err := wire.ParseObject([]byte(page))
	return &upstream.Response{Result: o, Type: mcp.ResultComplete, Revision: mcp.LegacyLatest}, err
}

func (s *script) Close() error { return nil }

// count is how often a page was asked for.
func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// change writes the script anew.
func (s *script) change(f func(*script)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// lists makes these all the tools from now on.
func (s *script) lists(names ...string) {
	s.change(func(s *script) { s.pages = map[string]string{"": pageOf(names...)} })
}

// holds makes each page wait for release, which also ends that.
func (s *script) holds() (release func()) {
	hold := make(chan struct{})
	s.change(func(s *script) { s.hold = hold })
	return func() {
		s.change(func(s *script) { s.hold = nil })
		close(hold)
	}
}

func newScriptOf(names ...string) *script { return newScript(map[string]string{"": pageOf(names...)}) }

// notice is the server's word that its tools have changed.
func notice(st *upstream.Status) { st.Changes.Tools++ }

// reconnected is another session of the same server.
func reconnected(st *upstream.Status) { st.State, st.Session = upstream.Live, st.Session+1 }

func told(c *Catalog) uint64 {
	synctest.Wait()
	n, _ := c.Changes("me")
	return n
}

func wantTold(t *testing.T, c *Catalog, want uint64, after string) {
	t.Helper()
	if got := told(c); got != want {
		t.Errorf("%d notices after %s, want %d", got, after, want)
	}
}

func one(s *script) Source { return Source{ID: "s", Prefix: "s__", Upstream: s} }

func tools(names ...string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"name":%q,"inputSchema":{"type":"object"}}`, n)
	}
	return b.String()
}

func pageOf(names ...string) string { return `{"tools":[` + tools(names...) + `]}` }

func start(t *testing.T, rules map[string]policy.Tools, sources ...Source) *Catalog {
	t.Helper()
	if rules == nil {
		rules = map[string]policy.Tools{}
	}
	for i := range sources {
		if sources[i].Timeout == 0 {
			sources[i].Timeout = time.Minute
		}
		if _, ok := rules[sources[i].ID]; !ok {
			rules[sources[i].ID] = policy.Tools{}
		}
	}
	c := New(Config{Sources: sources, Policy: policy.New(rules), ServerInfo: []byte(`{"name":"g"}`), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	c.Start()
	t.Cleanup(c.Close)
	return c
}

// names are the public names on all pages, in order.
func names(t *testing.T, v *View) []string {
	t.Helper()
	var out []string
	for i := range v.Pages() {
		raw, _ := v.Page(i).Value("tools")
		elements, ok := wire.Elements(raw, 1<<20)
		if !ok {
			t.Fatalf("page %d is no list: %s", i, v.Page(i).Raw())
		}
		for _, e := range elements {
			o, err := wire.ParseObject(e)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := o.String("name")
			out = append(out, name)
		}
	}
	return out
}

func wantNames(t *testing.T, c *Catalog, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := names(t, c.View()); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("listed %q, want %q", got, want)
	}
}

func absent(c *Catalog) string {
	meta, _ := c.View().Page(0).Object("_meta")
	raw, _ := meta.Value(mcp.MetaAbsent)
	return string(raw)
}
