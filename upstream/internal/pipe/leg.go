package pipe

import (
	"sync/atomic"
	"time"

	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// A leg is one message on its way out, and the record of how far it came.
type leg struct {
	id    int64
	frame []byte
	state atomic.Uint32

	listens bool // it is open as long as the connection

	reply   chan reply // capacity 1; of a call
	size    int64      // of the reply, where it counts; the pipe's mu guards it
	written chan error // capacity 1; of a notification
	posting *posting   // of a call through a Sender

	// Of a call that wants progress.
	token   []byte                     // the caller's
	reports chan upstream.Notification // read sends, and Call takes
	notify  func(upstream.Notification)
}

// A reply is what became of a call.
type reply struct {
	message *wire.Message
	err     error
}

// The states of a leg. It leaves queued once: its caller withdraws it or the writer takes it.
const (
	queued uint32 = iota
	withdrawn
	taken        // a byte of it may have reached the transport
	failedUnsent // none has
)

// withdraw reports whether the leg was not sent, and now never will be.
func (l *leg) withdraw() bool {
	return l.state.CompareAndSwap(queued, withdrawn) || l.state.Load() == withdrawn
}

// write sends what is queued until the pipe is over.
func (p *Pipe) write() {
	for {
		var err error
		select {
		case <-p.over:
			return
		case l := <-p.queue:
			err = p.send(l)
		case frame := <-p.answers:
			_, err = p.frames.Write(frame)
		case c := <-p.cancels:
			if time.Now().Before(c.until) {
				_, err = p.frames.Write(c.frame)
			}
		}
		if err != nil {
			p.fail(err, true)
			return
		}
	}
}

// send writes one leg, unless it was withdrawn.
func (p *Pipe) send(l *leg) error {
	if !l.state.CompareAndSwap(queued, taken) {
		return nil
	}
	n, err := p.frames.Write(l.frame)
	l.frame = nil
	if err != nil && n == 0 {
		l.state.Store(failedUnsent)
	}
	if l.written != nil {
		l.written <- err
	}
	return err
}

// unsent is the failure of a call that finds the pipe over before it was sent.
func (p *Pipe) unsent() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.Reconnecting, Err: p.end}
	switch {
	case p.end == nil:
		e.Cause = upstream.ClosedByGateway
	case p.stdin:
		e.Cause = upstream.StdinFailed
	}
	return e
}

// lost is the failure of a call that the writer had taken when the pipe ended.
func (p *Pipe) lost(l *leg) (*wire.Message, error) {
	select {
	case r := <-l.reply: // the last words of the server
		return l.finish(r)
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.ConnectionLost, Err: p.end}
	if p.end == nil {
		e.Cause = upstream.ClosedByGateway
	}
	if l.state.Load() == failedUnsent {
		e.Outcome = upstream.NotSent
		if p.end != nil {
			e.Cause = upstream.WriteFailed
		}
	}
	return nil, e
}
