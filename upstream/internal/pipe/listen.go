package pipe

import (
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// heard gives a notification to the listen whose subscription it names, in the listen's own id, and reports whether there was one
// (2026-07-28, subscriptions). A server may also end a listen by a cancel, which counts as its answer.
func (p *Pipe) heard(m *wire.Message) bool {
	if m.Method == mcp.NotificationCancelled {
		raw, _ := m.Params.Value("requestId")
		l := p.listening(raw)
		return l != nil && p.settle(l.id, reply{message: &wire.Message{Kind: wire.Result, ID: raw}})
	}
	meta, _ := m.Params.Object("_meta")
	raw, _ := meta.Value(mcp.MetaSubscriptionID)
	l := p.listening(raw)
	if l == nil {
		return false
	}
	if l.notify != nil {
		l.notify(upstream.Notification{Method: m.Method, Params: m.Params})
	}
	return true
}

// listening is the open listen with the id, or nil.
func (p *Pipe) listening(raw []byte) *leg {
	id, ok := wire.Int(raw)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.pending[id]; l != nil && l.listens && l.state.Load() == taken {
		return l
	}
	return nil
}
