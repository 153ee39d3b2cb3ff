package front

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/sse"
	"mcp-gateway/internal/wire"
)

const (
	// noticeInterval is the least time between two notices on one stream.
	noticeInterval = time.Second
	// maxSubscriptionID bounds an id that is kept for as long as its client listens, in bytes.
	maxSubscriptionID = 1 << 10

	never = time.Duration(math.MaxInt64)
)

// A listener is one open stream of notices that the tools have changed: a modern client's subscriptions/listen, or the GET
// of a legacy session. It lives on its request's own goroutine and queues nothing: what has changed since the last notice
// is found out when the next may be written, so that a slow reader costs no memory and misses no more than the copies.
type listener struct {
	f     *Front
	in    *inbound
	tools bool          // the client wants to hear of them
	id    []byte        // of a modern client's request; nil of a legacy client
	seen  atomic.Uint64 // the count of changes that the client has been told of

	session session       // of a legacy client
	over    chan struct{} // closed when the session has ended or has a newer stream; nil without a session
}

// newListener must be made before the client is told that it is heard, so that nothing falls between.
func (f *Front) newListener(in *inbound, tools bool) *listener {
	l := &listener{f: f, in: in, tools: tools}
	count, _ := f.cfg.Changes(in.caller)
	l.seen.Store(count)
	return l
}

// serveListeners serves the stream that next has left on the inbound. Far out here there are few frames on the stack, and none
// that holds the request's body, and nobody reads its headers any more: an idle listener should cost little.
func (f *Front) serveListeners(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if l := inboundOf(w).listener; l != nil {
			r.Header = nil
			l.serve(r.Context())
		}
	})
}

// serve is the whole stream.
func (l *listener) serve(ctx context.Context) {
	l.f.listening.Add(1)
	defer l.f.listening.Add(-1)
	if l.over != nil {
		defer l.f.sessions.detach(l.session.id, l)
	}
	l.in.openStream()
	if l.in.stream(l.greeting()) != nil || !l.run(ctx) {
		panic(http.ErrAbortHandler)
	}
	if l.id == nil {
		l.in.endStream()
		return
	}
	result := subscription(l.id, `,"`+mcp.MetaServerInfo+`":`+string(l.f.cfg.ServerInfo)+`},"resultType":"complete"}`)
	// A client that is gone needs no result.
	_ = l.in.stream(event(wire.AppendResult(nil, l.id, result)))
}

// greeting is what the stream begins with.
func (l *listener) greeting() []byte {
	if l.id == nil {
		return keepaliveComment
	}
	heard := `{}`
	if l.tools {
		heard = `{"toolsListChanged":true}`
	}
	return notification(mcp.NotificationAcknowledged, subscription(l.id, `},"notifications":`+heard+`}`))
}

// notice is made when it is written: most listeners wait for long.
func (l *listener) notice() []byte {
	if l.id == nil {
		return toolsChanged
	}
	return notification(mcp.NotificationToolsChanged, subscription(l.id, `}}`))
}

// subscription is an object that begins with the metadata of what belongs to the listen with that id; rest is what follows the id.
func subscription(id []byte, rest string) []byte {
	const start = `{"_meta":{"` + mcp.MetaSubscriptionID + `":`
	return append(append(append(make([]byte, 0, len(start)+len(id)+len(rest)), start...), id...), rest...)
}

// run writes notices, and comments where it is quiet, until the listening ends. It reports false where the client has gone
// or takes nothing.
func (l *listener) run(ctx context.Context) bool {
	timer := time.NewTimer(never)
	defer timer.Stop()
	expires := l.session.expires // zero is never
	written, noticed := time.Now(), time.Time{}
	for {
		recheck := *l.f.recheck.Load()
		select {
		case <-l.f.ending:
			return l.flush()
		default:
		}
		if l.f.cfg.Admits != nil && !l.f.cfg.Admits(Caller{l.in.caller, l.in.grant}) {
			return true
		}
		// Read before the notice is written: what changes meanwhile is another one.
		count, changed := l.f.cfg.Changes(l.in.caller)
		pending := l.tools && count != l.seen.Load()
		keepalive, now := l.f.cfg.Keepalive, time.Now()
		var text []byte
		switch {
		case !expires.IsZero() && !now.Before(expires):
			return true
		case pending && now.Sub(noticed) >= noticeInterval:
			text, noticed = l.notice(), now
			l.seen.Store(count)
		case keepalive > 0 && now.Sub(written) >= keepalive:
			text = keepaliveComment
		}
		if text != nil {
			if l.in.stream(text) != nil {
				return false
			}
			written = time.Now()
			continue
		}
		timer.Reset(l.wait(now, written, noticed, pending))
		select {
		case <-ctx.Done():
			return l.f.base.Err() != nil && l.flush()
		case <-l.over:
			return true
		case <-recheck:
		case <-changed:
		case <-timer.C:
		}
	}
}

// wait is how long there is nothing to write, unless something changes.
func (l *listener) wait(now, written, noticed time.Time, pending bool) time.Duration {
	wait := never
	if pending {
		wait = noticeInterval - now.Sub(noticed)
	}
	if keepalive := l.f.cfg.Keepalive; keepalive > 0 {
		wait = min(wait, keepalive-now.Sub(written))
	}
	if expires := l.session.expires; !expires.IsZero() {
		wait = min(wait, expires.Sub(now))
	}
	return wait
}

// flush writes the notice that waits for its time: there will be no other.
func (l *listener) flush() bool {
	count, _ := l.f.cfg.Changes(l.in.caller)
	return !l.tools || count == l.seen.Load() || l.in.stream(l.notice()) == nil
}

// checkListen refuses a subscriptions/listen that does not say what it listens to (2026-07-28, subscriptions).
func checkListen(m *wire.Message) *wire.Error {
	if len(m.ID) > maxSubscriptionID {
		return fault(wire.CodeInvalidRequest, "the id is too long for one that every notice repeats")
	}
	wanted, ok := m.Params.Object("notifications")
	if !ok {
		return fault(wire.CodeInvalidParams, "params.notifications, an object that names what to listen to, is missing")
	}
	if raw, ok := wanted.Value("toolsListChanged"); ok && string(raw) != "true" && string(raw) != "false" {
		return fault(wire.CodeInvalidParams, "params.notifications.toolsListChanged is neither true nor false")
	}
	return nil
}

// listenModern answers a subscriptions/listen that checkListen has let pass: the acknowledgement, notices, and a result
// once the gateway ends it. Only changes of the tools are heard of; other kinds are left out of the acknowledgement.
func (f *Front) listenModern(p *post, m *wire.Message) {
	if !p.accepts.events {
		refuse(p.in, http.StatusNotAcceptable, m.ID, fault(wire.CodeInvalidRequest, "Accept must allow text/event-stream: a listen is answered with a stream"))
		return
	}
	wanted, _ := m.Params.Object("notifications")
	tools, _ := wanted.Value("toolsListChanged")
	p.in.listener = f.newListener(p.in, string(tools) == "true")
	p.in.listener.id = bytes.Clone(m.ID) // the body must not live as long as the stream
}

// serveGet is the stream of a legacy session, which has what belongs to no request. A newer one takes the place of an older.
func (f *Front) serveGet(w http.ResponseWriter, r *http.Request) {
	in := inboundOf(w)
	switch {
	case headerIsModern(r.Header):
		f.methodNotAllowed(w, r)
		return
	case !readAccept(r.Header["Accept"]).events:
		refuse(w, http.StatusNotAcceptable, nil, fault(wire.CodeInvalidRequest, "Accept must allow text/event-stream: GET is answered with a stream"))
		return
	case r.ContentLength != 0:
		// With a body unread, net/http would not see the client go.
		refuse(w, http.StatusBadRequest, nil, fault(wire.CodeInvalidRequest, "a GET must not have a body"))
		return
	}
	client, ok := f.legacyClient(in, r.Header, nil)
	if !ok {
		return
	}
	if client.session == nil {
		refuse(w, http.StatusBadRequest, nil, fault(wire.CodeInvalidRequest, "Mcp-Session-Id says whose stream this is; it is missing"))
		return
	}
	l := f.newListener(in, true)
	l.session, l.over = *client.session, make(chan struct{})
	if !f.sessions.attach(l.session.id, l) {
		refuse(w, http.StatusNotFound, nil, noSession())
		return
	}
	in.listener = l
}

// toolsChanged is the notice for legacy clients.
var toolsChanged = notification(mcp.NotificationToolsChanged, nil)

// notification is a notification as an event.
func notification(method string, params []byte) []byte {
	return event(wire.AppendRequest(make([]byte, 0, len(method)+len(params)+64), nil, method, params))
}

// event is a message as an event. It has one data line: there are readers that take each line for an event.
func event(message []byte) []byte {
	message = wire.OneLine(message)
	return sse.AppendEvent(make([]byte, 0, len(message)+len("data: \n\n")), message)
}
