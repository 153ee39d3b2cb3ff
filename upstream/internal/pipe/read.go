package pipe

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// maxBatch bounds the messages in one frame, which servers of 2025-03-26 may put into an array.
const maxBatch = 1000

// read takes what the server sends until the connection ends.
func (p *Pipe) read() {
	defer p.unsaid()
	for {
		frame, err := p.frames.Read()
		if skipped, ok := errors.AsType[skippedFrame](err); ok {
			p.skipped(skipped)
			continue
		}
		if err != nil {
			p.fail(fmt.Errorf("the server's output ended: %w", err), false)
			return
		}
		p.take(frame)
	}
}

func (p *Pipe) take(frame []byte) {
	m, err := wire.ParseReply(frame)
	if errors.Is(err, wire.ErrBatch) {
		messages, ok := wire.Elements(frame, maxBatch)
		if !ok {
			p.complain("server sent an array that cannot be read", "bytes", len(frame))
		}
		for _, one := range messages {
			m, err := wire.ParseReply(one)
			p.dispatch(one, m, err)
		}
		return
	}
	p.dispatch(frame, m, err)
}

// dispatch takes one message, or the error that its text gave.
func (p *Pipe) dispatch(text []byte, m *wire.Message, err error) {
	switch {
	case err != nil:
		p.unusable(text, err)
	case m.Kind == wire.Request:
		p.answer(m)
	case m.Kind == wire.Notification && m.Method == mcp.NotificationProgress:
		p.report(m, len(text))
	case m.Kind == wire.Notification && p.heard(m):
	case m.Kind == wire.Notification:
		if p.cfg.OnNotification != nil {
			p.cfg.OnNotification(m.Method, m.Params)
		}
	default:
		p.deliver(m, len(text))
	}
}

// deliver gives a response to its call. One that no call waits for is late, repeated or foreign, and harms none.
func (p *Pipe) deliver(m *wire.Message, size int) {
	if id, ok := wire.Int(m.ID); ok {
		r := reply{message: m}
		if size > largeReply && !p.budget(id, int64(size)) {
			r = noResponse(upstream.TooLarge, fmt.Errorf("large replies of %d bytes in all are on their way to their callers", p.held.Load()))
		}
		if !p.settle(id, r) {
			p.cfg.Log.Debug("server answered a call that does not wait", "id", id)
		}
		return
	}
	p.anonymous(m)
}

// budget counts a large reply for its call, and reports whether there was room.
func (p *Pipe) budget(id, size int64) bool {
	if p.held.Add(size) > p.room {
		p.held.Add(-size)
		return false
	}
	p.mu.Lock()
	l := p.pending[id]
	if l != nil {
		l.size += size
	}
	p.mu.Unlock()
	if l == nil { // the reply is dropped next
		p.held.Add(-size)
	}
	return true
}

// anonymous judges a response without a usable id. Servers send such an error for a request whose id they could not read,
// but also for notifications that they do not know: only the first kind, with one call in flight, says whose it is.
func (p *Pipe) anonymous(m *wire.Message) {
	if m.Kind == wire.Failure && (m.Error.Code == wire.CodeParse || m.Error.Code == wire.CodeInvalidRequest) {
		if id, ok := p.only(); ok && p.settle(id, noResponse(upstream.Unusable, fmt.Errorf("the server could not read the request: %w", m.Error))) {
			return
		}
	}
	p.complain("server sent a response without an id of the gateway's")
}

// unusable judges a text that is no JSON-RPC message: it ends the call whose id it bears or begins with, and no other.
func (p *Pipe) unusable(text []byte, err error) {
	id, known := idOf(text[:min(len(text), 512)], nil)
	if e, ok := errors.AsType[*wire.SyntaxError](err); ok && e.ID != nil {
		id, known = wire.Int(e.ID)
	}
	if known && p.settle(id, noResponse(upstream.Unusable, err)) {
		return
	}
	p.complain("server sent what is no JSON-RPC message", "error", err)
}

// skipped judges a frame that was too large. The id at either end of it, or there being but one call in flight, says whose
// it is; otherwise none is ended on a guess, and the deadline of the one it was ends it.
func (p *Pipe) skipped(e skippedFrame) {
	head, tail := e.Ends()
	id, known := idOf(head, tail)
	if !known && !asking.Match(head) {
		id, known = p.only()
	}
	if known && p.settle(id, noResponse(upstream.TooLarge, e)) {
		return
	}
	p.complain("server sent a message that is too large", "error", e)
}

var (
	asking  = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?(?:"id"\s*:\s*[^,]{1,64},\s*)?"method"\s*:`)
	idFirst = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,`)
	// The last brace of a message is its own, so these members are too.
	idLast = regexp.MustCompile(`[,\s]"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// idOf finds the id of a response at either end of it, where servers write it.
func idOf(head, tail []byte) (int64, bool) {
	if asking.Match(head) {
		return 0, false
	}
	found := idFirst.FindSubmatch(head)
	if found == nil {
		found = idLast.FindSubmatch(tail)
	}
	if found == nil {
		return 0, false
	}
	return wire.Int(found[1])
}

func noResponse(cause upstream.Cause, err error) reply {
	return reply{err: &upstream.Error{Outcome: upstream.NoResponse, Cause: cause, Err: err}}
}

// settle ends a call. It reports false where none with that id waits. A reply to a call that was never sent is not one.
func (p *Pipe) settle(id int64, r reply) bool {
	p.mu.Lock()
	l, ok := p.pending[id]
	ok = ok && l.state.Load() == taken
	if ok {
		delete(p.pending, id)
	}
	p.mu.Unlock()
	if ok {
		l.reply <- r
	}
	return ok
}

// only is the id of the one call that the server has, if it is the only one. A listen is none: it lasts as long as the
// connection, and would hide that.
func (p *Pipe) only() (id int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, l := range p.pending {
		if l.state.Load() == taken && !l.listens {
			id = l.id
			n++
		}
	}
	return id, n == 1
}

// answer replies to a server's request.
func (p *Pipe) answer(m *wire.Message) {
	if p.cfg.NoAnswers {
		p.noAnswer("server sent a request, which its revision does not have: dropped", m.Method)
		return
	}
	frame, err := mcp.Answer(m)
	if err != nil {
		p.noAnswer(err.Error(), m.Method)
		return
	}
	select {
	case p.answers <- frame:
	default:
		p.noAnswer("server asks faster than it reads answers: some of its requests get none", m.Method)
	}
}

// noAnswer tells once that a request of the server's gets no answer.
func (p *Pipe) noAnswer(text, method string) {
	if !p.unanswered {
		p.unanswered = true
		p.cfg.Log.Warn(text, "method", method[:min(len(method), 100)])
	}
}

// complain logs what is wrong with what the server sends. It can send that without end, so that most of it is then only
// counted.
func (p *Pipe) complain(text string, args ...any) {
	if !p.complaints.Take(time.Now()) {
		p.silent++
		return
	}
	p.unsaid()
	p.cfg.Log.Warn(text, args...)
}

// unsaid tells how often complain was silent.
func (p *Pipe) unsaid() {
	if p.silent > 0 {
		p.cfg.Log.Warn("server sent more that could not be used than is logged", "messages", p.silent)
		p.silent = 0
	}
}
