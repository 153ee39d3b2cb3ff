package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"mcp-gateway/gateway/config"
	"mcp-gateway/upstream"
)

// A member is one upstream that the gateway runs, from one reload that wants another engine for it to the next.
type member struct {
	engine
	id    string
	spec  [sha256.Size]byte // of the settings that the engine was made from
	child bool              // no other may be started while it runs

	lived    bool // one of its id was live before it
	begin    sync.Once
	calls    atomic.Int64 // in flight; below zero once no more are sent
	leaving  atomic.Bool
	replaces bool            // a process of its id, which is stopped for it
	after    <-chan struct{} // closed when that has ended; nil without one
	gone     chan struct{}   // closed when a reload has ended this one
	idle     chan struct{}   // holds one word that calls may have come to an end
}

func newMember(u config.Upstream, e engine) *member {
	return &member{engine: e, id: u.ID, spec: spec(u), child: u.Engine.Stdio(), gone: make(chan struct{}), idle: make(chan struct{}, 1)}
}

// ended makes a count of calls one to which no call can be added.
const ended = -1 << 62

// Start begins to connect, once.
func (m *member) Start() { m.begin.Do(m.engine.Start) }

// Call is the engine's, counted. What a reload has to do with a failure is told in place of what the engine knows of it.
func (m *member) Call(ctx context.Context, req *upstream.Request) (*upstream.Response, error) {
	defer m.done()
	if m.calls.Add(1) < 0 {
		return nil, &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.Reload}
	}
	resp, err := m.engine.Call(m.patient(ctx), req)
	if err == nil || !m.leaving.Load() && !m.replaces {
		return resp, err
	}
	e, ok := errors.AsType[*upstream.Error](err)
	if ok && m.blames(e) {
		told := *e
		told.Cause = upstream.Reload
		return nil, &told
	}
	return resp, err
}

// patient is ctx with all the time of the call to wait in, where the process that worked was stopped for this one, which has not
// connected yet: who does not look for a reload need not notice one. A connect that fails is told at once.
func (m *member) patient(ctx context.Context) context.Context {
	if !m.replaces {
		return ctx
	}
	if status, _ := m.Status(); status.Session > 0 {
		return ctx
	}
	if deadline, ok := ctx.Deadline(); ok {
		return upstream.WithWait(ctx, deadline)
	}
	return ctx
}

// blames reports whether a failure comes of a reload: it has closed the upstream, or has stopped the one that worked and the new
// one has not started since.
func (m *member) blames(e *upstream.Error) bool {
	switch e.Cause {
	case upstream.ClosedByGateway:
		return m.leaving.Load()
	case upstream.ConnectingStill, upstream.Reconnecting, upstream.Unreachable:
		status, _ := m.Status()
		return m.replaces && e.Outcome == upstream.NotSent && status.Session == 0
	}
	return false
}

func (m *member) done() {
	if m.calls.Add(-1) == 0 && m.leaving.Load() {
		select {
		case m.idle <- struct{}{}:
		default:
		}
	}
}

// retire ends the member once its calls have finished, or ctx has ended. New ones are not sent any more, so that their callers
// can be given to its successor.
func (m *member) retire(ctx context.Context) error {
	m.leaving.Store(true)
	m.Quiesce()
	if m.after != nil {
		<-m.after // else its heir could start beside what is still being ended
	}
	for ctx.Err() == nil && !m.calls.CompareAndSwap(0, ended) {
		select {
		case <-m.idle:
		case <-ctx.Done():
		}
	}
	if m.calls.Load() >= 0 {
		m.calls.Add(ended) // those that still run are cut off
	}
	return m.Close()
}

// wasLive reports whether the upstream was live once.
func (m *member) wasLive() bool {
	status, _ := m.Status()
	return m.lived || status.Session > 0
}

// live reports whether the upstream can be called.
func (m *member) live() bool {
	status, _ := m.Status()
	return status.State == upstream.Live
}

// givenUp reports whether only another engine can bring the upstream back.
func (m *member) givenUp() bool {
	switch status, _ := m.Status(); status.State {
	case upstream.Verdict, upstream.Held, upstream.Closing, upstream.Closed:
		return true
	}
	return false
}

// spec digests the settings that make another engine necessary when they change. The others belong to the route.
func spec(u config.Upstream) [sha256.Size]byte {
	var text []byte
	add := func(fields ...string) {
		for _, f := range fields {
			text = appendField(text, f)
		}
	}
	add(string(u.Engine), u.URL.Reveal(), u.Command.Reveal(), u.Cwd, u.Revision, u.StartTimeout.String(),
		u.Reconnect.Min.String(), u.Reconnect.Max.String(), strconv.FormatBool(u.InheritEnv),
		strconv.Itoa(u.Concurrency), strconv.Itoa(u.Queue), "args")
	for _, arg := range u.Args {
		add(arg.Reveal())
	}
	add("env")
	for _, v := range u.Env {
		add(v.Name, v.Value.Reveal())
	}
	add("headers")
	for _, h := range u.Headers {
		add(h.Name, h.Value.Reveal())
	}
	if c := u.Credential; c != nil {
		add("credential", c.Bearer.Reveal(), c.BearerFile, c.Query, "command")
		for _, arg := range c.Command {
			add(arg.Reveal())
		}
		if o := c.OAuth2; o != nil {
			add("oauth2", o.TokenURL.Reveal(), o.ClientID, o.ClientSecret.Reveal(), o.RefreshToken.Reveal(), o.Resource)
			add(o.Scopes...)
		}
	}
	return sha256.Sum256(text)
}
