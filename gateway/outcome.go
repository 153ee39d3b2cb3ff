package gateway

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"

	"mcp-gateway/gateway/front"
	"mcp-gateway/gateway/observe"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// conclude turns what came of a call into the reply, and into the record of it.
func (g *Gateway) conclude(ctx context.Context, route *route, req *front.Request, resp *upstream.Response, err error) (*front.Reply, observe.Record) {
	if err == nil {
		if err = unfinished(resp); err == nil {
			rec := observe.Record{Outcome: "ok"}
			if raw, _ := resp.Result.Value("isError"); string(raw) == "true" {
				rec.Outcome = "tool-error"
			}
			return &front.Reply{Result: ownMeta(resp.Result), Type: resp.Type, Revision: resp.Revision}, rec
		}
	}
	e, ok := errors.AsType[*upstream.Error](err)
	if stated, isStated := errors.AsType[*wire.Error](err); isStated && !ok {
		if stated.Code != mcp.CodeHeaderMismatch && stated.Code != mcp.CodeUnsupportedVersion {
			rec := observe.Record{Outcome: string(upstream.ErrorResponse), Code: stated.Code, Err: stated}
			return &front.Reply{Error: passedError(stated), Revision: mcp.Modern}, rec
		}
		// It speaks of the gateway's hop, and would send the client to mend its own.
		e, ok = &upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, Err: stated}, true
	}
	if !ok {
		e = &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Unusable, Err: err}
	}
	e = cutOff(ctx, e)
	f := &failure{Error: e, upstream: route.id, method: req.Method}
	rec := observe.Record{Outcome: string(e.Outcome), Cause: string(e.Cause), HTTPStatus: e.HTTPStatus, Err: e.Err}
	return &front.Reply{Result: f.toolResult(g.serverInfo), Type: mcp.ResultComplete, Revision: mcp.Modern}, rec
}

// unfinished gives the failure of a response that is no end of the call. Another round cannot be offered to the client yet.
func unfinished(resp *upstream.Response) error {
	switch resp.Type {
	case mcp.ResultComplete:
		return nil
	case mcp.ResultInputRequired:
		return &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.CallerCannotContinue}
	}
	return &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Unusable, Err: errors.New("the result is of a type that the revision does not define")}
}

// passedError is a server's own error, whole but for what it must not claim. Only a message that says nothing is replaced.
func passedError(e *wire.Error) *wire.Error {
	var edits []wire.Edit
	if e.BadMessage {
		e.Message = "The server answered with an error that says nothing about its reason."
		edits = append(edits, wire.Edit{Name: "message", Value: wire.AppendString(nil, e.Message)})
	}
	if data, ok := e.Raw.Object("data"); ok && claims(data) {
		e.Data = underUpstream(data)
		edits = append(edits, wire.Edit{Name: "data", Value: e.Data})
	}
	e.Raw = e.Raw.With(edits...)
	return e
}

// ownMeta moves what a server writes under the gateway's own names to mcp-gateway/upstream, so that no server can forge an
// outcome, and one of a gateway behind this one is not lost.
func ownMeta(result wire.Object) wire.Object {
	raw, ok := result.Value("_meta")
	if !ok || !mayClaim(raw) {
		return result
	}
	meta, err := wire.ParseObject(raw)
	if err != nil || !claims(meta) {
		return result
	}
	return result.With(wire.Edit{Name: "_meta", Value: underUpstream(meta)})
}

func mayClaim(raw []byte) bool {
	return bytes.Contains(raw, []byte(mcp.MetaPrefix)) || bytes.IndexByte(raw, '\\') >= 0
}

func claims(o wire.Object) bool {
	for name := range o.All() {
		if len(name) >= len(mcp.MetaPrefix) && name[:len(mcp.MetaPrefix)] == mcp.MetaPrefix {
			return true
		}
	}
	return false
}

func underUpstream(o wire.Object) []byte {
	var edits, moved []wire.Edit
	for name, value := range o.All() {
		if len(name) < len(mcp.MetaPrefix) || name[:len(mcp.MetaPrefix)] != mcp.MetaPrefix {
			continue
		}
		if slices.ContainsFunc(moved, func(e wire.Edit) bool { return e.Name == name }) {
			continue
		}
		moved = append(moved, wire.Edit{Name: name, Value: value})
		edits = append(edits, wire.Edit{Name: name})
	}
	return o.With(edits...).Edited(wire.Edit{Name: mcp.MetaUpstream, Value: wire.Object{}.AppendEdited(nil, moved...)})
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

// cutOff gives a call that the gateway itself has ended the cause that says so, and leaves every other.
func cutOff(ctx context.Context, e *upstream.Error) *upstream.Error {
	if !errors.Is(context.Cause(ctx), front.ErrShutdown) {
		return e
	}
	cut := *e
	switch e.Cause {
	case upstream.Canceled:
		cut.Cause = upstream.Shutdown
	case upstream.CanceledUnsent:
		cut.Cause = upstream.ClosedByGateway
	}
	return &cut
}
