package front

import (
	"log/slog"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

const (
	// maxQueue and maxQueueBytes bound what waits for a client that reads slowly, and one notification as well.
	maxQueue      = 64
	maxQueueBytes = 1 << 20
)

// A queued is an event or comment that waits to be written.
type queued struct {
	text     []byte
	progress bool // a later one says all that it says
}

// wait begins the time after which a silent client gets a stream. settle must follow.
func (p *post) wait() {
	if p.f.cfg.StreamAfter <= 0 || !p.accepts.events {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.f.cfg.StreamAfter, p.tick)
}

// tick opens the stream, or keeps it open.
func (p *post) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || p.lost != nil {
		return
	}
	// A stream that is just being written to is not silent.
	if p.writing == nil {
		p.push(queued{text: keepaliveComment})
	}
	p.tickAgain()
}

// tickAgain must be called with mu held.
func (p *post) tickAgain() {
	switch {
	case p.f.cfg.Keepalive <= 0:
	case p.timer == nil:
		p.timer = time.AfterFunc(p.f.cfg.Keepalive, p.tick)
	default:
		p.timer.Reset(p.f.cfg.Keepalive)
	}
}

// notify puts a notification of the call on the stream, and opens that. It never waits for the client, since a server's
// other calls may wait behind whoever calls it.
func (p *post) notify(method string, params wire.Object) {
	var text []byte
	if len(params.Raw()) <= maxQueueBytes {
		text = notification(method, params.Raw())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || p.lost != nil {
		return
	}
	if text == nil {
		p.dropped++
		return
	}
	if !p.streaming && p.writing == nil {
		p.tickAgain()
	}
	p.push(queued{text: text, progress: method == mcp.NotificationProgress})
}

// push has a text written after those that wait. It must be called with mu held.
func (p *post) push(q queued) {
	for len(p.queue) > 0 && (len(p.queue) == maxQueue || p.size+len(q.text) > maxQueueBytes) {
		p.drop()
	}
	p.queue = append(p.queue, q)
	p.size += len(q.text)
	if p.writing == nil {
		p.writing = make(chan struct{})
		go p.write(p.writing)
	}
}

// drop makes room: the oldest progress goes first, the oldest of all where there is none. It must be called with mu held.
func (p *post) drop() {
	oldest := 0
	for i, q := range p.queue {
		if q.progress {
			oldest = i
			break
		}
	}
	p.size -= len(p.queue[oldest].text)
	p.queue = append(p.queue[:oldest], p.queue[oldest+1:]...)
	p.dropped++
}

// write writes the queue until it is empty. While it runs nobody else writes the answer.
func (p *post) write(written chan struct{}) {
	defer close(written)
	for {
		text, first := p.take()
		if text == nil {
			return
		}
		if first {
			p.in.openStream()
		}
		if err := p.in.stream(text); err != nil {
			p.mu.Lock()
			p.lost = err
			p.mu.Unlock()
		}
	}
}

// take is all that waits, nil where that is nothing any more, and whether it is the first of the stream.
func (p *post) take() (text []byte, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		p.writing = nil
		return nil, false
	}
	text = p.queue[0].text
	if len(p.queue) > 1 {
		text = make([]byte, 0, p.size)
		for _, q := range p.queue {
			text = append(text, q.text...)
		}
	}
	first = !p.streaming
	p.queue, p.size, p.streaming = nil, 0, true
	return text, first
}

// settle ends the notifying and the waiting, and returns when all that was queued has been written: from here on nobody but
// the caller writes the answer. It may be called again.
func (p *post) settle() { p.end(true) }

// discard is settle for an answer that ends without a message: what is still queued is not written.
func (p *post) discard() { p.end(false) }

func (p *post) end(keep bool) {
	p.mu.Lock()
	already := p.done
	p.done = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if !keep {
		p.queue, p.size = nil, 0
	}
	writing, dropped := p.writing, p.dropped
	p.mu.Unlock()
	if writing != nil {
		<-writing
	}
	if dropped > 0 && !already {
		p.f.cfg.Log.Info("notifications of a call were dropped: its client takes them too slowly, or they are too large",
			slog.String("request", p.in.id), slog.Int("dropped", dropped))
	}
}
