package front

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// initializeMembers are the members of an initialize result after protocolVersion. Capabilities are fixed for a session,
// so that they do not depend on which upstream is up.
func initializeMembers(serverInfo []byte, tools string) []byte {
	b := append([]byte(`,"capabilities":{`+tools+`},"serverInfo":`), serverInfo...)
	return append(b, '}')
}

// A legacyClient is who sends a legacy POST: the client of a session, or one that has none and is served all the same.
type legacyClient struct {
	revision string
	session  *session // nil without one
}

// serveLegacy answers one message of a legacy client.
func (f *Front) serveLegacy(p *post, m *wire.Message) {
	if m.Method == mcp.MethodInitialize {
		f.initialize(p, m)
		return
	}
	client, ok := f.legacyClient(p.in, p.r.Header, m.ID)
	if !ok {
		return
	}
	if m.Kind != wire.Request {
		f.notice(client, m)
		p.nothing()
		return
	}
	switch m.Method {
	case mcp.MethodPing, mcp.MethodToolsList, mcp.MethodToolsCall:
		p.in.rpc = m.Method
	}
	p.wait()
	ctx, call := f.flights.begin(context.WithoutCancel(p.r.Context()), client.flightKey(m.ID))
	defer f.flights.end(call)
	body := f.answerLegacy(ctx, p, client, m, &p.hold)
	if body == nil {
		p.nothing()
		return
	}
	p.answer(http.StatusOK, body)
	p.logUndelivered(p.in.rpc)
}

// legacyClient finds the session and the revision. It has answered where it reports false: 404 tells a legacy client
// to initialize again, and nothing else must.
func (f *Front) legacyClient(in *inbound, h http.Header, id []byte) (legacyClient, bool) {
	client := legacyClient{revision: mcp.Revision20250326}
	if versions := h[mcp.HeaderVersion]; len(versions) > 0 {
		if len(versions) > 1 || !mcp.IsLegacy(versions[0]) {
			refuse(in, http.StatusBadRequest, id, fault(wire.CodeInvalidRequest, "MCP-Protocol-Version does not name one revision that is served here"))
			return client, false
		}
		client.revision = versions[0]
	}
	tokens := h[mcp.HeaderSession]
	if len(tokens) == 0 {
		return client, true
	}
	s, ok := f.openSession(tokens, in.caller)
	if !ok {
		refuse(in, http.StatusNotFound, id, noSession())
		return client, false
	}
	return legacyClient{revision: s.revision, session: &s}, true
}

// openSession knows only sessions of this caller, that nobody has ended.
func (f *Front) openSession(tokens []string, caller string) (session, bool) {
	if len(tokens) != 1 {
		return session{}, false
	}
	s, ok := openSession(f.cfg.Ring, tokens[0], caller, time.Now())
	return s, ok && !f.sessions.ended(s.id)
}

func noSession() *wire.Error {
	return fault(wire.CodeInvalidRequest, "there is no such session, or it has ended: initialize again")
}

// initialize agrees on a revision and begins a session. The client's revision is echoed where it is served, else
// the newest with a handshake is offered.
func (f *Front) initialize(p *post, m *wire.Message) {
	if m.Kind != wire.Request {
		p.nothing()
		return
	}
	p.in.rpc = m.Method
	revision, ok := m.Params.String("protocolVersion")
	if !ok {
		p.answer(http.StatusOK, wire.AppendError(nil, m.ID, fault(wire.CodeInvalidParams, "params.protocolVersion is missing or not a string")))
		return
	}
	if !mcp.IsLegacy(revision) {
		revision = mcp.LegacyLatest
	}
	declared, _ := m.Params.Object("capabilities")
	s := newSession(revision, readCapabilities(declared), p.in.caller, time.Now())
	p.in.Header()[mcp.HeaderSession] = []string{s.token(f.cfg.Ring)}
	result := append([]byte(`{"protocolVersion":"`+revision+`"`), f.fixed...)
	p.answer(http.StatusOK, wire.AppendResult(nil, m.ID, result))
}

// notice acts on what needs no answer. Only a session says which request a cancel means.
func (f *Front) notice(client legacyClient, m *wire.Message) {
	if m.Method != mcp.NotificationCancelled || client.session == nil {
		return
	}
	if raw, ok := m.Params.Value("requestId"); ok {
		f.flights.cancelAll(client.flightKey(raw))
	}
}

// flightKey names the calls that the client has given this id; nobody can cancel one without a session.
func (c legacyClient) flightKey(id []byte) flightKey {
	if c.session == nil {
		return flightKey{}
	}
	return flightKey{session: c.session.id, id: plainID(id)}
}

// plainID is the same for every spelling of an id, and differs between "1" and 1.
func plainID(raw []byte) string {
	if s, ok := wire.Unquote(raw); ok {
		return `"` + s
	}
	return string(raw)
}

// answerLegacy is the response to a request other than initialize; nil once the client has cancelled it. The request's
// flight, which ctx is of, is the caller's to begin and end.
func (f *Front) answerLegacy(ctx context.Context, p *post, client legacyClient, m *wire.Message, hold *upstream.Hold) []byte {
	switch m.Method {
	case mcp.MethodPing:
		return wire.AppendResult(nil, m.ID, []byte("{}"))
	case mcp.MethodToolsList, mcp.MethodToolsCall:
		if e := checkNames(m.Method, m.Params); e != nil {
			return wire.AppendError(nil, m.ID, e)
		}
		return f.callLegacy(ctx, p, client, m, hold)
	}
	// Not 404, which means that the session is gone.
	return wire.AppendError(nil, m.ID, unknownMethod())
}

// callLegacy asks the gateway. A disconnect is no cancel: the call runs to its end all the same.
func (f *Front) callLegacy(ctx context.Context, p *post, client legacyClient, m *wire.Message, hold *upstream.Hold) []byte {
	req := &Request{
		Caller: p.in.caller, ID: p.in.id, Method: m.Method, Params: m.Params, Sent: p.r.Header, Received: p.received, Hold: hold,
	}
	if m.Method == mcp.MethodToolsCall {
		req.Name, _ = m.Params.String("name")
		meta, _ := m.Params.Object("_meta")
		req.Notify = p.notifier(wishOf(meta, false))
	}
	reply := f.dispatch(ctx, p, req)
	if errors.Is(context.Cause(ctx), ErrCanceled) {
		return nil
	}
	if reply.Error != nil {
		return wire.AppendError(nil, m.ID, reply.Error)
	}
	return appendLegacyResult(nil, m.ID, m.Method, client.revision, reply)
}

// serveDelete ends a session, and its stream. Modern clients have none.
func (f *Front) serveDelete(w http.ResponseWriter, r *http.Request) {
	if headerIsModern(r.Header) {
		f.methodNotAllowed(w, r)
		return
	}
	tokens := r.Header[mcp.HeaderSession]
	if len(tokens) == 0 {
		refuse(w, http.StatusBadRequest, nil, fault(wire.CodeInvalidRequest, "Mcp-Session-Id says which session to end; it is missing"))
		return
	}
	s, ok := f.openSession(tokens, inboundOf(w).caller)
	if !ok {
		refuse(w, http.StatusNotFound, nil, noSession())
		return
	}
	f.sessions.end(s.id)
	w.WriteHeader(http.StatusOK)
}
