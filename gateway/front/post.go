package front

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// servePost answers one POST: its form, then the message in it, then the era that the message belongs to.
func (f *Front) servePost(w http.ResponseWriter, r *http.Request) {
	in := inboundOf(w)
	if !isJSON(r.Header) {
		refuse(w, http.StatusUnsupportedMediaType, nil, fault(wire.CodeInvalidRequest, "the body must be JSON, sent with Content-Type: application/json"))
		return
	}
	accepted := readAccept(r.Header["Accept"])
	if !accepted.json && !accepted.events {
		refuse(w, http.StatusNotAcceptable, nil, fault(wire.CodeInvalidRequest, "Accept must allow application/json or text/event-stream"))
		return
	}
	body, ok := readBody(in, r)
	if !ok {
		return
	}
	p := &post{f: f, in: in, r: r, accepts: accepted, received: time.Now()}
	defer p.finish()
	// Whatever happens, the timer must not write to an answer that has ended.
	defer p.settle()
	defer p.hold.Release()
	m, err := wire.ParseRequest(body)
	if err != nil {
		f.serveUnread(p, body, err)
		return
	}
	meta, _ := m.Params.Object("_meta")
	switch {
	case isModern(r.Header, m.Method, meta):
		f.serveModern(p, m, meta)
	default:
		f.serveLegacy(p, m)
	}
}

// serveUnread answers what is not one message.
func (f *Front) serveUnread(p *post, body []byte, err error) {
	if errors.Is(err, wire.ErrBatch) {
		if headerIsModern(p.r.Header) {
			refuse(p.in, http.StatusBadRequest, nil, fault(wire.CodeInvalidRequest, batchUnsupported))
			return
		}
		f.serveBatch(p, body)
		return
	}
	id, e := unreadable(err)
	refuse(p.in, http.StatusBadRequest, id, e)
}

// unreadable is the error that answers a text that is no message, and the id if that could be read.
func unreadable(err error) ([]byte, *wire.Error) {
	if s, ok := errors.AsType[*wire.SyntaxError](err); ok {
		return s.ID, fault(s.Code, s.Error())
	}
	if errors.Is(err, wire.ErrBatch) {
		return nil, fault(wire.CodeInvalidRequest, "an array must not stand in an array")
	}
	return nil, fault(wire.CodeParse, "the message could not be read")
}

// isModern decides the era (2026-07-28, versioning): the request's own metadata says it, else the version header. A
// plain initialize is legacy whatever its header says.
func isModern(h http.Header, method string, meta wire.Object) bool {
	if meta.Has(mcp.MetaVersion) {
		return true
	}
	return method != mcp.MethodInitialize && headerIsModern(h)
}

// headerIsModern reports whether the version header names no revision with a handshake: revisions to come are modern.
func headerIsModern(h http.Header) bool {
	for _, revision := range h[mcp.HeaderVersion] {
		if !mcp.IsLegacy(revision) {
			return true
		}
	}
	return false
}

// readable are the members of params that somebody decides on.
var readable = [...]string{"_meta", "name", "arguments", "cursor", "uri", "inputResponses", "requestState", "task"}

// checkNames refuses what two readers could read in two ways: a member of params whose name is like a known one but
// for case, which a careless server takes for it, and one, or a tool name, with a control character, where another ends it.
func checkNames(method string, params wire.Object) *wire.Error {
	known := 0
	for _, name := range readable {
		if params.Has(name) {
			known++
		}
	}
	if known < params.Len() {
		for sent := range params.All() {
			if hasControl(sent) {
				return fault(wire.CodeInvalidParams, "params has a member whose name holds a control character")
			}
			for _, name := range readable {
				if sent != name && strings.EqualFold(sent, name) {
					return fault(wire.CodeInvalidParams, "params has a member that differs from "+name+" only in case")
				}
			}
		}
	}
	if method != mcp.MethodToolsCall {
		return nil
	}
	name, ok := params.String("name")
	if !ok {
		return fault(wire.CodeInvalidParams, "params.name is missing or not a string")
	}
	if hasControl(name) {
		return fault(wire.CodeInvalidParams, `unknown tool "`+name+`"`)
	}
	return nil
}

// hasControl reports whether s holds a control character, where another reader may see its end.
func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// dispatch calls the gateway. A panic there becomes this request's error.
func (f *Front) dispatch(ctx context.Context, p *post, req *Request) (reply *Reply) {
	defer func() {
		if v := recover(); v != nil {
			f.logPanic(p.in, v)
			reply = &Reply{Error: internalFault(), panicked: true}
		}
	}()
	reply = f.cfg.Dispatch(ctx, req)
	p.afterwards(reply.After)
	return reply
}
