package legacy

import (
	"io"
	"log/slog"
	"net/http"
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

var changed = map[string]upstream.Changes{
	mcp.NotificationToolsChanged:     {Tools: 1},
	mcp.NotificationPromptsChanged:   {Prompts: 1},
	mcp.NotificationResourcesChanged: {Resources: 1},
	mcp.NotificationResourceUpdated:  {Updated: 1},
}

// awaitChanges waits until u has counted so.
func awaitChanges(t *testing.T, u *Upstream, want upstream.Changes) {
	t.Helper()
	for {
		status, changed := u.Status()
		if status.Changes == want {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("changes %+v, want %+v", status.Changes, want)
		}
	}
}

// Whatever stream they come on, changes count.
func TestChangesOnTheServersOwnStream(t *testing.T) {
	for method, want := range changed {
		s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
			if r.what != http.MethodGet {
				return false
			}
			r.events(w, `data: {"jsonrpc":"2.0","method":"`+method+`"}`+"\n\n")
			<-r.Context().Done()
			return true
		})
		u, _ := overHTTP(t, s.URL)
		awaitChanges(t, u, want)
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestChangesOnTheStreamOfAPing(t *testing.T) {
	for method, want := range changed {
		s := newStage(t, mcp.Revision20251125, func(w http.ResponseWriter, r *heard) bool {
			switch r.what {
			case mcp.MethodPing:
				r.events(w, `data: {"jsonrpc":"2.0","method":"`+method+`"}`+"\n\n"+`data: {"jsonrpc":"2.0","id":ID,"result":{}}`+"\n\n")
				return true
			case mcp.MethodToolsCall:
				w.WriteHeader(400) // which leaves the session in doubt
				return true
			}
			return false
		})
		u, _ := overHTTP(t, s.URL)
		upstreamtest.Await(t, u, upstream.Live)
		for range 2 {
			_, err := ask(t, u)
			wantError(t, err, upstream.NoResponse, upstream.HTTPError)
		}
		awaitChanges(t, u, want)
	}
}

// A hasty is a server in memory whose own stream ends as soon as it is open, and which wants it back at once.
type hasty struct {
	mu     sync.Mutex // guards opened
	opened []time.Time
}

func (h *hasty) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(status int, media, text string) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {media}}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(text)),
		}, nil
	}
	if r.Method == http.MethodGet {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.opened = append(h.opened, time.Now())
		return answer(200, "text/event-stream", "retry: 0\n\n")
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m, err := wire.ParseRequest(data)
	if err != nil || m.ID == nil {
		return answer(202, "", "")
	}
	return answer(200, "application/json", `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
}

func TestAStreamThatEndsAtOnceIsOpenedEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(hasty)
		cfg, _ := remote(t, "http://server", func(c *Config, r *Remote) { c.HTTP = r }, func(c *Config) {
			c.HTTP.Transport = h
			c.Log = slog.New(slog.DiscardHandler)
		})
		u := New(cfg)
		u.Start()
		<-time.After(time.Hour)
		if err := u.Close(); err != nil {
			t.Fatal(err)
		}
		// Between half of mostFollow, on the average of the jitter, and that: the first ones are sooner.
		if n := len(h.opened); n < 360 || n > 1200 {
			t.Errorf("the stream was opened %d times in an hour", n)
		}
		if first := h.opened[1].Sub(h.opened[0]); first > time.Second {
			t.Errorf("it was opened again after %v, and a server may end its stream at times", first)
		}
	})
}
