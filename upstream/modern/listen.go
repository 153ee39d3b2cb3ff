package modern

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/exchange"
	"mcp-gateway/upstream/internal/link"
)

const (
	// headStart bounds how long a session that is new waits for its listen before calls may use it. A list that is asked for
	// after the server has acknowledged misses no change.
	headStart = time.Second
	// ackWait bounds how long a server may take to acknowledge.
	ackWait = 30 * time.Second
)

// subjects are what can be listened to (2026-07-28, subscriptions).
var subjects = [...]struct {
	capability, member, notification string
	change                           link.Change
}{
	{"tools", "toolsListChanged", mcp.NotificationToolsChanged, link.Tools},
	{"prompts", "promptsListChanged", mcp.NotificationPromptsChanged, link.Prompts},
	{"resources", "resourcesListChanged", mcp.NotificationResourcesChanged, link.Resources},
}

// A choice is some of the subjects.
type choice [len(subjects)]bool

// announced is what a server says that it tells changes of.
func announced(discover wire.Object) (c choice) {
	capabilities, _ := discover.Object("capabilities")
	for i, subject := range subjects {
		capability, _ := capabilities.Object(subject.capability)
		tells, _ := capability.Value("listChanged")
		c[i] = string(tells) == "true"
	}
	return c
}

// request is the listen that asks for the choice.
func (c choice) request() *upstream.Request {
	text := []byte(`{"notifications":{`)
	for i, subject := range subjects {
		if c[i] {
			text = append(append(append(text, '"'), subject.member...), `":true,`...)
		}
	}
	params, _ := wire.ParseObject(append(bytes.TrimSuffix(text, []byte(",")), "}}"...)) // it has no other words than its own
	return &upstream.Request{Method: mcp.MethodListen, Params: params, Resend: new(upstream.Budget)}
}

// A listener keeps one subscriptions/listen open for as long as its session lives, so that the server's changes are counted. It
// takes nothing of the calls' limits, and that it is refused says nothing of them.
type listener struct {
	u        *Upstream
	s        *session
	asked    choice
	begun    chan struct{} // closed with the first acknowledgement, or the end of the first listen
	once     sync.Once     // closes begun
	missed   atomic.Bool   // changes may have been, since a list was asked for while none was open
	troubled atomic.Bool   // a refusal was told, and no acknowledgement has followed
}

// subscribe begins to listen if the server announces anything to listen to, and gives the first listen a head start.
func (s *session) subscribe(ctx context.Context, u *Upstream, discover wire.Object) {
	asked := announced(discover)
	if asked == (choice{}) {
		return
	}
	l := &listener{u: u, s: s, asked: asked, begun: make(chan struct{})}
	life, end := context.WithCancel(context.Background())
	s.end = end
	s.listening.Go(func() { l.run(life, discover) })
	timer := time.NewTimer(headStart)
	defer timer.Stop()
	select {
	case <-l.begun:
	case <-timer.C:
		l.missed.Store(true)
	case <-ctx.Done():
	}
}

func (l *listener) log() *slog.Logger { return l.u.cfg.Log.With("upstream", l.u.cfg.ID) }

// start lets the session go on.
func (l *listener) start() { l.once.Do(func() { close(l.begun) }) }

// run opens one listen after the other.
func (l *listener) run(ctx context.Context, discover wire.Object) {
	pace := link.NewPace(l.u.cfg.ReconnectMin, l.u.cfg.ReconnectMax)
	for {
		opened := time.Now()
		h, reply, err := l.open(ctx)
		l.missed.Store(true)
		l.start()
		switch {
		case ctx.Err() != nil, l.over(), !l.goesOn(h, reply, err):
			return
		case ended(err, upstream.ConnectionLost, upstream.Unreachable) && !l.recognizes(ctx, discover):
			return
		case !pace.Wait(ctx, time.Since(opened)):
			return
		}
	}
}

// over reports whether the connection has told its own end.
func (l *listener) over() bool {
	select {
	case <-l.s.conn.Done():
		return true
	default:
		return false
	}
}

// open makes one listen and returns with its end.
func (l *listener) open(ctx context.Context) (*hearing, exchange.Reply, error) {
	h := &hearing{l: l, honoured: l.asked}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	impatient := time.AfterFunc(ackWait, func() {
		if !h.acknowledged.Load() {
			cancel(errSilent)
		}
	})
	defer impatient.Stop()
	reply, err := l.s.conn.listen(ctx, l.asked.request(), h.hear)
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		err = errSilent
	}
	return h, reply, err
}

var errSilent = errors.New("the server has not acknowledged it")

// goesOn judges the end of a listen, and reports whether another may follow.
func (l *listener) goesOn(h *hearing, reply exchange.Reply, err error) bool {
	stated := err == nil && reply.Kind == wire.Failure
	switch {
	case stated && reply.Error.Code == wire.CodeMethodNotFound:
		l.log().Warn("server announces changes of its lists, but has no subscriptions/listen: they are noticed only by `poll`")
		return false
	case h.acknowledged.Load():
		l.log().Debug("server ended subscriptions/listen", "error", err)
		return h.honoured != (choice{})
	case ended(err, upstream.Unreachable):
		return true // which is no refusal, and tells its own
	case stated:
		err = reply.Error
	case err == nil:
		err = errors.New("the server answered without an acknowledgement")
	}
	level := slog.LevelWarn
	if l.troubled.Swap(true) {
		level = slog.LevelDebug
	}
	l.log().Log(context.Background(), level, "server refuses subscriptions/listen: until it takes one, changes of its lists are noticed only by `poll`", "error", err)
	return true
}

// ended reports whether a listen ended by one of the causes.
func ended(err error, causes ...upstream.Cause) bool {
	e, ok := errors.AsType[*upstream.Error](err)
	return ok && slices.Contains(causes, e.Cause)
}

// recognizes asks the server again who it is: what broke the connection may have been its end, and another can have come in
// its place. It reports whether the session still stands, and ends it otherwise.
func (l *listener) recognizes(ctx context.Context, before wire.Object) bool {
	ctx, cancel := context.WithTimeout(ctx, l.u.cfg.StartTimeout)
	defer cancel()
	info, err := l.u.discover(ctx, l.s.conn)
	_, verdict := errors.AsType[*link.VerdictError](err)
	switch {
	case ended(err, upstream.Unreachable):
		l.s.fail(err)
	case verdict:
		l.s.fail(&link.EndedError{Err: err})
	case err == nil && !alike(info.Discover, before):
		l.s.fail(&link.EndedError{Err: errors.New("another server answers in the place of the one before")})
	default:
		return true
	}
	return false
}

// alike reports whether two answers to server/discover describe the same server.
func alike(a, b wire.Object) bool {
	same := func(a, b wire.Object, name string) bool {
		x, _ := a.Value(name)
		y, _ := b.Value(name)
		return bytes.Equal(x, y)
	}
	metaA, _ := a.Object("_meta")
	metaB, _ := b.Object("_meta")
	return same(a, b, "capabilities") && same(a, b, "instructions") && same(metaA, metaB, mcp.MetaServerInfo)
}

// A hearing is one listen as the server serves it.
type hearing struct {
	l            *listener
	honoured     choice // read by others after acknowledged
	acknowledged atomic.Bool
}

// hear takes one notification of the listen. It does not wait.
func (h *hearing) hear(n upstream.Notification) {
	if n.Method == mcp.NotificationAcknowledged {
		h.acknowledge(n.Params)
		return
	}
	for i, subject := range subjects {
		if subject.notification == n.Method && h.honoured[i] {
			h.l.u.link.Changed(subject.change)
		}
	}
}

// acknowledge takes what the server will tell. What may have changed while there was no listen counts as changed.
func (h *hearing) acknowledge(params wire.Object) {
	if h.acknowledged.Load() {
		return
	}
	l, will := h.l, h.honoured
	told, _ := params.Object("notifications")
	for i, subject := range subjects {
		tells, _ := told.Value(subject.member)
		will[i] = will[i] && string(tells) == "true"
		if h.honoured[i] && l.missed.Load() {
			l.u.link.Changed(subject.change)
		}
	}
	h.honoured = will
	h.acknowledged.Store(true)
	l.start()
	switch {
	case will == (choice{}):
		l.log().Warn("server announces changes of its lists, but honours no subscription to them: they are noticed only by `poll`")
	case l.troubled.Swap(false):
		l.log().Info("server takes subscriptions/listen again")
	}
}
