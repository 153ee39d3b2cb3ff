package modern

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

// announces is what a server says that tells changes of tools and prompts.
const announces = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{}}}`

// A broadcaster is a server in memory that is listened to. It plays one step of its scripts at each discover and each listen,
// the last one for ever, and answers all else.
type broadcaster struct {
	discovers []func(id string) (*http.Response, error)
	listens   []func(s *subscription) (*http.Response, error)

	mu    sync.Mutex // guards the rest
	began time.Time
	seen  []string // method and time of each
	asked string   // the last listen
	open  int      // streams
}

// A subscription is one listen.
type subscription struct {
	id  string
	out *io.PipeWriter
	in  *http.Response
}

func (b *broadcaster) RoundTrip(r *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m, err := wire.ParseRequest(data)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	n := 0
	for _, what := range b.seen {
		if strings.HasPrefix(what, m.Method) {
			n++
		}
	}
	b.seen = append(b.seen, fmt.Sprint(m.Method, " ", time.Since(b.began).Round(time.Millisecond)))
	if m.Method == mcp.MethodListen {
		b.asked = string(data)
	}
	b.mu.Unlock()
	switch m.Method {
	case mcp.MethodDiscover:
		return b.discovers[min(n, len(b.discovers)-1)](string(m.ID))
	case mcp.MethodListen:
		return b.listens[min(n, len(b.listens)-1)](b.subscribe(r.Context(), string(m.ID)))
	}
	return respond(strings.NewReader(strings.ReplaceAll(result(`{"resultType":"complete"}`), "ID", string(m.ID)))), nil
}

func (b *broadcaster) subscribe(ctx context.Context, id string) *subscription {
	in, out := io.Pipe()
	b.mu.Lock()
	b.open++
	b.mu.Unlock()
	context.AfterFunc(ctx, func() { // as net/http ends it
		_ = out.CloseWithError(ctx.Err())
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open--
	})
	return &subscription{id: id, out: out, in: &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: in,
	}}
}

func (b *broadcaster) told() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

func (s *subscription) event(text string) {
	_, _ = io.WriteString(s.out, "data: "+strings.ReplaceAll(text, "ID", s.id)+"\n\n")
}

// acknowledge takes what is named, and then what the server tells.
func (s *subscription) acknowledge(members string) {
	s.event(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{` + members +
		`},"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}`)
}

func (s *subscription) tell(method, id string) {
	s.event(`{"jsonrpc":"2.0","method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`)
}

const all = `"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true`

// stays acknowledges and stays open.
func stays(s *subscription) (*http.Response, error) {
	go s.acknowledge(all)
	return s.in, nil
}

// ends acknowledges, and ends after a while with the last words.
func ends(after time.Duration, words string) func(s *subscription) (*http.Response, error) {
	return func(s *subscription) (*http.Response, error) {
		go func() {
			s.acknowledge(all)
			<-time.After(after) // of the bubble's clock
			if words != "" {
				s.event(words)
			}
			_ = s.out.Close()
		}()
		return s.in, nil
	}
}

// answers answers in JSON.
func answers(status int, text string) func(s *subscription) (*http.Response, error) {
	return func(s *subscription) (*http.Response, error) {
		resp := respond(strings.NewReader(strings.ReplaceAll(text, "ID", s.id)))
		resp.StatusCode = status
		return resp, nil
	}
}

func discovers(text string) func(id string) (*http.Response, error) {
	return func(id string) (*http.Response, error) {
		return respond(strings.NewReader(strings.ReplaceAll(result(text), "ID", id))), nil
	}
}

func unreachable(string) (*http.Response, error) { return nil, io.ErrClosedPipe }

// listening runs test in a bubble, on an upstream in front of b that is live.
func listening(t *testing.T, b *broadcaster, test func(t *testing.T, u *Upstream, out *logged)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if b.discovers == nil {
			b.discovers = []func(string) (*http.Response, error){discovers(announces)}
		}
		b.began = time.Now()
		out := new(logged)
		u := started(t, "http://server", func(cfg *Config) {
			cfg.Transport = b
			cfg.ReconnectMin, cfg.ReconnectMax = 4*time.Second, 4*time.Second
			cfg.Log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		upstreamtest.Await(t, u, upstream.Live)
		synctest.Wait()
		test(t, u, out)
		if err := u.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if b.open != 0 {
			t.Errorf("%d listens are open after Close", b.open)
		}
	})
}

func wantChanges(t *testing.T, u *Upstream, session uint64, want upstream.Changes) {
	t.Helper()
	synctest.Wait()
	status, _ := u.Status()
	if status.State != upstream.Live || status.Session != session || status.Changes != want {
		t.Errorf("%s with session %d and changes %+v, want %d and %+v", status.State, status.Session, status.Changes, session, want)
	}
}

func wantTold(t *testing.T, b *broadcaster, want ...string) {
	t.Helper()
	if got := b.told(); !slices.Equal(got, want) {
		t.Errorf("the server got %q, want %q", got, want)
	}
}
