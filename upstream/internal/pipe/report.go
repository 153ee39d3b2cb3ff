package pipe

import (
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// listen prepares a call for progress, before it is known to the reader, and gives its params as they go to the server.
func (l *leg) listen(params []byte, notify func(upstream.Notification)) []byte {
	if !mcp.MayHoldProgressToken(params) {
		return params
	}
	o, err := wire.ParseObject(params)
	if err != nil {
		return params // which come from a parsed object
	}
	if notify == nil {
		return mcp.DropProgressToken(o).Raw()
	}
	o, l.token = mcp.SwapProgressToken(o, l.id)
	if l.token != nil {
		l.reports, l.notify = make(chan upstream.Notification, reportRoom), notify
	}
	return o.Raw()
}

// report gives the server's progress to the call whose token it bears, and never waits for it.
func (p *Pipe) report(m *wire.Message, size int) {
	l := p.listener(m.Params)
	if l == nil || size > maxReport {
		p.cfg.Log.Debug("server's progress dropped: it is for no call that waits for it, or too large", "bytes", size)
		return
	}
	n := upstream.Notification{Method: m.Method, Params: mcp.RestoreProgressToken(m.Params, l.token)}
	for {
		select {
		case l.reports <- n:
			return
		default:
		}
		select {
		case <-l.reports:
			p.outpace(l)
		default: // its call has just taken one
		}
	}
}

// outpace tells once that progress is dropped.
func (p *Pipe) outpace(l *leg) {
	if !p.outpaced {
		p.outpaced = true
		p.cfg.Log.Warn("server reports progress faster than the caller takes it: the oldest is dropped", "id", l.id)
	}
}

// listener is the call that waits for progress with this token: none once it has its reply, or before it was sent.
func (p *Pipe) listener(params wire.Object) *leg {
	id, ok := mcp.ProgressToken(params)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.pending[id]; l != nil && l.reports != nil && l.state.Load() == taken {
		return l
	}
	return nil
}

// finish is the end of a call that has its reply: what the server reported before goes first.
func (l *leg) finish(r reply) (*wire.Message, error) {
	for {
		select {
		case n := <-l.reports:
			l.notify(n)
		default:
			return r.message, r.err
		}
	}
}
