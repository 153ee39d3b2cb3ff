package legacy

import (
	"net/url"
	"sync"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream/upstreamtest"
)

// A peer is a server's end of one connection, whatever carries it.
type peer struct {
	t   *testing.T
	h   upstreamtest.Handler
	out upstreamtest.Sender

	mu       sync.Mutex // guards the rest
	revision string
	running  map[string]chan struct{}
	handlers sync.WaitGroup
}

func newPeer(t *testing.T, h upstreamtest.Handler, out upstreamtest.Sender) *peer {
	return &peer{t: t, h: h, out: out, running: make(map[string]chan struct{})}
}

// take answers one message, or leaves that to the handler.
func (p *peer) take(text []byte) {
	m, err := wire.ParseRequest(text)
	if err != nil {
		p.t.Errorf("the engine sent %q: %v", text, err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.running == nil: // it came after the end
	case m.Method == mcp.MethodInitialize:
		p.revision, _ = m.Params.String("protocolVersion")
		p.out.Send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"protocolVersion":"` + p.revision + `","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"scripted","version":"1"}}}`)
	case m.Method == mcp.NotificationCancelled:
		id, _ := m.Params.Value("requestId")
		if canceled := p.running[string(id)]; canceled != nil {
			close(canceled)
			delete(p.running, string(id))
		}
	case m.Kind == wire.Request:
		canceled, revision := make(chan struct{}), p.revision
		p.running[string(m.ID)] = canceled
		p.handlers.Go(func() {
			p.h(&upstreamtest.Request{Message: m, Revision: revision, Canceled: canceled, Sender: p.out})
		})
	}
}

// end cancels what runs and waits for it.
func (p *peer) end() {
	p.mu.Lock()
	for _, canceled := range p.running {
		close(canceled)
	}
	p.running = nil
	p.mu.Unlock()
	p.handlers.Wait()
}

// remote is the configuration of a server at address, to be told how it is reached.
func remote(t *testing.T, address string, set func(*Config, *Remote), change ...func(*Config)) (Config, *logged) {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	cfg, out := config(t)
	cfg.Stdio = nil
	set(&cfg, &Remote{URL: at})
	for _, f := range change {
		f(&cfg)
	}
	return cfg, out
}
