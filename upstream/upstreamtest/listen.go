package upstreamtest

import (
	"strings"
	"sync"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// announcing is Discovered of a server that tells changes of all its lists.
var announcing = strings.Replace(Discovered, `{"tools":{}}`,
	`{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}`, 1)

// listens are the open subscriptions of a modern server.
type listens struct {
	mu   sync.Mutex // guards open, and is held while a message is sent
	open map[string]func(message string)
}

// add acknowledges a listen, all of it, and keeps it open.
func (l *listens) add(t *testing.T, m *wire.Message, send func(message string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = make(map[string]func(string))
	}
	id := string(m.ID)
	if len(l.open) > 0 {
		t.Errorf("the engine opened listen %s beside another", id)
	}
	l.open[id] = send
	asked, _ := m.Params.Value("notifications")
	send(`{"jsonrpc":"2.0","method":"` + mcp.NotificationAcknowledged + `","params":{"notifications":` + string(asked) +
		`,"_meta":{"` + mcp.MetaSubscriptionID + `":` + id + `}}}`)
}

func (l *listens) end(id []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, string(id))
}

// announce tells all of them.
func (l *listens) announce(method string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, send := range l.open {
		send(`{"jsonrpc":"2.0","method":"` + method + `","params":{"_meta":{"` + mcp.MetaSubscriptionID + `":` + id + `}}}`)
	}
}

// An announcer is the Sender of a server that has listens.
type announcer struct {
	Sender
	to *listens
}

// Announce tells who listens.
func (a announcer) Announce(method string) { a.to.announce(method) }

// Part is that of the Sender.
func (a announcer) Part(text string) { a.Sender.(Parter).Part(text) }

// HalfClose is that of the Sender.
func (a announcer) HalfClose() { a.Sender.(HalfCloser).HalfClose() }

// Refuse is that of the Sender, which may be none.
func (a announcer) Refuse(status int) bool {
	r, ok := a.Sender.(Refuser)
	return ok && r.Refuse(status)
}

// listen serves one listen until it is given up.
func (r *reply) listen(to *listens, m *wire.Message, canceled <-chan struct{}) {
	to.add(r.t, m, r.Send)
	<-canceled
	to.end(m.ID)
}
