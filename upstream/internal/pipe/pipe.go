// Package pipe makes calls over a connection that carries whole JSON-RPC messages in both directions, such as a
// child's standard streams. It gives each call an id, finds its reply, cancels what is given up, answers what the
// server asks, and says of each call that fails whether it may have run.
//
// One goroutine reads and one writes; a call's record (leg.go) decides between its caller and the writer whether it is
// sent, so that a call said to be not sent is never sent later. Start with [Pipe.Call], then read.go.
package pipe

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mcp-gateway/internal/backoff"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

const (
	// legRoom is how many legs the writer is handed ahead of the one it writes.
	legRoom = 32
	// cancelWait bounds how long a cancel may wait for the writer.
	cancelWait = 2 * time.Second
	// answerRoom and cancelRoom bound what waits beside the calls. More is dropped: the server's own flood, and cancels that
	// it would not read in time.
	answerRoom = 64
	cancelRoom = 256
	// A pipe is read whatever its callers do, so that large replies beyond the budget are dropped.
	largeReply  = 1 << 20
	replyBudget = 128 << 20
	// reportRoom and maxReport bound the progress that waits for one call's Notify, in number and each in bytes. Where it does not keep
	// up the oldest is dropped, since the newest says more; one that is larger is dropped as well.
	reportRoom = 32
	maxReport  = 64 << 10
	// complaintBurst and complaintPause bound the log lines about messages that cannot be used.
	complaintBurst = 20
	complaintPause = time.Second
)

// Frames carry one message each. Read and Write may run at the same time, and each is called by one goroutine.
type Frames interface {
	// Read gives the next frame, which the caller keeps. After a *SkippedError, or another error with its method Ends, it goes on;
	// any other error is the end.
	Read() ([]byte, error)
	// Write sends a frame, which holds no line end, and gives how much of it reached the transport: 0 is none of it.
	Write([]byte) (int, error)
	// Close ends the connection and with it a Read and a Write that wait. It may be called again.
	Close() error
}

// A skippedFrame is the error of a frame that was too large and was passed over. Its ends are what is known of it.
type skippedFrame interface {
	error
	Ends() (head, tail []byte)
}

// A SkippedError is a frame that was too large and was passed over. Head and Tail are what is known of it.
type SkippedError struct {
	Err        error
	Head, Tail []byte
}

// Ends gives what is known of the frame.
func (e *SkippedError) Ends() (head, tail []byte) { return e.Head, e.Tail }

// Error says how large it was.
func (e *SkippedError) Error() string { return e.Err.Error() }

// Unwrap gives the transport's error.
func (e *SkippedError) Unwrap() error { return e.Err }

// Config is how a Pipe works.
type Config struct {
	// OnNotification takes the server's notifications, from the reading goroutine: it must not wait. Nil drops them.
	// Progress is none of them: it goes to its call.
	OnNotification func(method string, params wire.Object)
	// NoAnswers is for a revision whose servers send no requests, and whose clients must not write responses (2026-07-28, stdio): what
	// a server asks all the same is dropped and logged.
	NoAnswers bool
	Log       *slog.Logger
}

// A Pipe makes calls over frames. It is safe for concurrent use. Close is owed, also after the pipe has ended by itself.
type Pipe struct {
	frames  Frames
	sender  Sender // the frames, where they are one
	cfg     Config
	queue   chan *leg
	answers chan []byte
	cancels chan cancel
	held    atomic.Int64 // bytes of large replies that are on their way
	room    int64        // the most that held may be

	over  chan struct{}  // closed when nothing is sent any more
	done  chan struct{}  // closed when the pipe has ended by itself
	posts sync.WaitGroup // frames on their way through sender; counted up under mu, before the end
	gone  chan struct{}  // closed when reader and writer have ended

	// A server can cause these without end; only read touches them.
	unanswered, outpaced bool           // what was logged once and is not again
	complaints           backoff.Bucket // of the log
	silent               int            // those that were not logged, since the last that was

	mu      sync.Mutex // guards the rest
	nextID  int64
	pending map[int64]*leg
	ended   bool
	end     error // why, where the pipe ended by itself
	stdin   bool  // it ended by a failed write
}

// A cancel is one notifications/cancelled and the time after which nobody cares.
type cancel struct {
	frame []byte
	until time.Time
}

// New begins to read and write. The pipe owns frames from here on.
func New(frames Frames, cfg Config) *Pipe {
	p := &Pipe{
		frames:  frames,
		cfg:     cfg,
		queue:   make(chan *leg, legRoom),
		answers: make(chan []byte, answerRoom),
		cancels: make(chan cancel, cancelRoom),
		room:    replyBudget,
		over:    make(chan struct{}),
		done:    make(chan struct{}),
		gone:    make(chan struct{}),
		pending: make(map[int64]*leg),

		complaints: backoff.Bucket{Burst: complaintBurst, Every: complaintPause},
	}
	p.sender, _ = frames.(Sender)
	go p.run()
	return p
}

// run reads and writes. A pipe that ends by itself closes its frames, so that the server ends and what it still
// wrote is read.
func (p *Pipe) run() {
	defer close(p.gone)
	defer p.posts.Wait()
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(p.read)
	both.Go(p.write)
	<-p.over
	select {
	case <-p.done:
		_ = p.frames.Close() // the owner's Close tries again and reports it
	default:
	}
}

// Done is closed once the pipe has ended by itself, never only because of Close.
func (p *Pipe) Done() <-chan struct{} { return p.done }

// Err says why the pipe has ended by itself; nil before that.
func (p *Pipe) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end
}

// Close ends the frames and waits for both goroutines. Calls in flight fail. Its error is that of the frames, and a later Close
// tries them again.
func (p *Pipe) Close() error {
	p.mu.Lock()
	if !p.ended {
		p.ended = true
		close(p.over)
	}
	p.mu.Unlock()
	err := p.frames.Close()
	<-p.gone
	return err
}

// fail ends the pipe by itself, once.
func (p *Pipe) fail(err error, stdin bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended, p.end, p.stdin = true, err, stdin
	close(p.done) // before over, at which run asks for it
	close(p.over)
}

// Call sends one request and waits for its reply, which has a result or an error. Its own error is an *upstream.Error. A call
// that was sent and whose ctx ends is canceled on the wire, except those that open a connection, which may not be. Where the
// connection is lost, Call returns once all that the server had written is read, which may be only after Close.
//
// With notify, a progressToken in the _meta of params is replaced by the call's own id, and the server's progress under it goes to
// notify with the caller's token, in order and before Call returns. While notify is slow nobody else waits, and of what
// comes meanwhile the oldest is dropped. Without notify, the token is taken off.
//
// The notify of subscriptions/listen gets what the server sends for it instead, from the reading goroutine: it must not wait.
func (p *Pipe) Call(ctx context.Context, method string, params []byte, notify func(upstream.Notification), hold *upstream.Hold) (*wire.Message, error) {
	if ctx.Err() != nil {
		return nil, upstream.Ended(ctx, false, context.Cause(ctx))
	}
	l := p.register(method, params, notify)
	defer p.forget(l, hold)
	send := p.submit
	if p.sender != nil {
		send = p.post
	}
	if err := send(ctx, l); err != nil {
		return nil, err
	}
	defer l.release()
	over, gone := p.over, (<-chan struct{})(nil)
	for {
		select {
		case n := <-l.reports:
			l.notify(n)
		case r := <-l.reply:
			return l.finish(r)
		case <-ctx.Done():
			return p.abandon(ctx, l, method)
		case <-over:
			if l.withdraw() {
				return nil, p.unsent()
			}
			over, gone = nil, p.gone
		case <-gone:
			return p.lost(l)
		}
	}
}

// Notify sends one notification and waits until it is written.
func (p *Pipe) Notify(ctx context.Context, method string, params []byte) error {
	l := &leg{frame: wire.AppendRequest(nil, nil, method, wire.OneLine(params)), written: make(chan error, 1)}
	if p.sender != nil {
		return p.notify(ctx, l.frame)
	}
	if err := p.submit(ctx, l); err != nil {
		return err
	}
	select {
	case err := <-l.written:
		return err
	case <-ctx.Done():
		l.withdraw()
		return context.Cause(ctx)
	case <-p.over:
		return p.unsent()
	}
}

// submit hands a leg to the writer.
func (p *Pipe) submit(ctx context.Context, l *leg) error {
	select {
	case <-p.over:
		return p.unsent()
	default:
	}
	select {
	case p.queue <- l:
		return nil
	case <-ctx.Done():
		return upstream.Ended(ctx, false, context.Cause(ctx))
	case <-p.over:
		return p.unsent()
	}
}

func (p *Pipe) register(method string, params []byte, notify func(upstream.Notification)) *leg {
	l := &leg{reply: make(chan reply, 1), listens: method == mcp.MethodListen}
	p.mu.Lock()
	p.nextID++
	l.id = p.nextID
	p.mu.Unlock()
	params = wire.OneLine(l.listen(params, notify))
	if l.listens {
		l.notify = notify
	}
	frame := make([]byte, 0, len(params)+len(method)+64)
	l.frame = wire.AppendRequest(frame, strconv.AppendInt(nil, l.id, 10), method, params)
	p.mu.Lock()
	p.pending[l.id] = l
	p.mu.Unlock()
	return l
}

// forget ends the record of a call. What its reply takes of the budget goes on to hold, taken or not.
func (p *Pipe) forget(l *leg, hold *upstream.Hold) {
	p.mu.Lock()
	delete(p.pending, l.id)
	size := l.size
	p.mu.Unlock()
	if size > 0 {
		hold.Keep(func() { p.held.Add(-size) })
	}
}

// abandon ends a call whose ctx has ended.
func (p *Pipe) abandon(ctx context.Context, l *leg, method string) (*wire.Message, error) {
	l.settled()
	select {
	case r := <-l.reply: // it came at the same moment
		return l.finish(r)
	default:
	}
	if l.withdraw() {
		return nil, upstream.Ended(ctx, false, context.Cause(ctx))
	}
	if l.state.Load() == failedUnsent {
		return p.lost(l)
	}
	e := upstream.Ended(ctx, true, context.Cause(ctx))
	reason := "the caller canceled it"
	if e.Cause == upstream.Deadline {
		reason = "its deadline passed"
	}
	switch method {
	case mcp.MethodInitialize, mcp.MethodDiscover: // whose end is the connection's
	default:
		p.cancel(l.id, reason)
	}
	return nil, e
}

// cancel asks the writer to tell the server, and does not wait for it.
func (p *Pipe) cancel(id int64, reason string) {
	c := cancel{mcp.Cancel(id, reason), time.Now().Add(cancelWait)}
	select {
	case p.cancels <- c:
	default:
		p.cfg.Log.Debug("cancel dropped: the server does not read", "id", id)
	}
}
