package pipe

import (
	"context"
	"errors"
	"time"

	"mcp-gateway/upstream"
)

// postWait bounds how long a frame that was handed to a Sender may take once its call has its reply.
const postWait = 2 * time.Second

// A Sender is Frames that send each frame on its own, such as in a POST: several are on their way at once, and one that fails says
// nothing of the others or of the connection. Calls and notifications go through Send. Write is left for answers and cancels,
// one after another, and is to end soon.
type Sender interface {
	Frames
	// Send sends one frame and returns once the server has taken it. It ends with ctx, whose cause says why, and with Close.
	// The error is an *upstream.Error, which says what crossed the transport.
	Send(ctx context.Context, frame []byte) error
}

// A posting is a call's frame on its way through a Sender.
type posting struct {
	over chan struct{} // closed when Send has returned
	end  context.CancelCauseFunc
	stop func() bool // parts it from its call's ctx
}

// post hands a call to the Sender. It ends with ctx, so that what became of it is known when the call gives up.
func (p *Pipe) post(ctx context.Context, l *leg) error {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return p.unsent()
	}
	p.posts.Add(1)
	p.mu.Unlock()
	l.state.Store(taken)
	sending, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	l.posting = &posting{over: make(chan struct{}), end: end, stop: stop}
	go func() {
		defer p.posts.Done()
		defer close(l.posting.over)
		defer end(nil)
		p.posted(l, p.sender.Send(sending, l.frame))
	}()
	return nil
}

// notify sends one notification, unless the pipe is over.
func (p *Pipe) notify(ctx context.Context, frame []byte) error {
	select {
	case <-p.over:
		return p.unsent()
	default:
		return p.sender.Send(ctx, frame)
	}
}

// posted takes what became of a frame. A failure is the call's; where the call or the pipe has ended, those say more than it.
func (p *Pipe) posted(l *leg, err error) {
	e, ok := errors.AsType[*upstream.Error](err)
	switch {
	case !ok:
	case e.Cause == upstream.ClosedByGateway:
		if e.Outcome == upstream.NotSent {
			l.state.Store(failedUnsent)
		}
	case e.Cause == upstream.Deadline, e.Cause == upstream.Canceled:
	default:
		p.settle(l.id, reply{err: e})
	}
}

// settled waits until it is known what became of the frame of a call whose ctx has ended.
func (l *leg) settled() {
	if l.posting != nil {
		<-l.posting.over
	}
}

// release lets the frame of a call that has its reply come to its end, within postWait.
func (l *leg) release() {
	if l.posting == nil || !l.posting.stop() {
		return
	}
	select {
	case <-l.posting.over:
	default:
		time.AfterFunc(postWait, func() { l.posting.end(nil) })
	}
}
