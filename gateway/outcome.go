package gateway

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

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
		rec := observe.Record{Outcome: string(upstream.ErrorResponse), Code: stated.Code, Err: stated}
		return &front.Reply{Error: passedError(stated), Revision: mcp.Modern}, rec
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
	// A member that stands twice says two things, and the client's reader may take the other one.
	if !resp.Result.Unique("_meta", "content", "isError", "resultType", "structuredContent") {
		return &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Unusable, Err: errors.New("the result repeats a member")}
	}
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
	if e.BadMessage {
		e.Message = "The server answered with an error that says nothing about its reason."
		e.Raw = e.Raw.With(wire.Edit{Name: "message", Value: wire.AppendString(nil, e.Message)})
	}
	if data, ok := e.Raw.Object("data"); ok {
		e.Data = underUpstream(data)
		e.Raw = e.Raw.With(wire.Edit{Name: "data", Value: e.Data})
	}
	// A code that a client cannot read is passed on with the whole error as its data.
	if own, err := wire.ParseObject(underUpstream(e.Raw)); err == nil {
		e.Raw = own
	}
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
	if err != nil {
		return result
	}
	return result.With(wire.Edit{Name: "_meta", Value: underUpstream(meta)})
}

func mayClaim(raw []byte) bool {
	return bytes.Contains(raw, []byte(mcp.MetaPrefix)) || bytes.IndexByte(raw, '\\') >= 0
}

// underUpstream is o's text with the members under the gateway's own names moved into one.
func underUpstream(o wire.Object) []byte {
	if !mayClaim(o.Raw()) {
		return o.Raw()
	}
	moved := []byte{'{'}
	rest := o.Rewrite(func(name string, value []byte) []byte {
		if !strings.HasPrefix(name, mcp.MetaPrefix) {
			return value
		}
		if len(moved) > 1 {
			moved = append(moved, ',')
		}
		moved = append(append(wire.AppendString(moved, name), ':'), value...)
		return nil
	})
	if len(moved) == 1 {
		return rest
	}
	own, err := wire.ParseObject(rest)
	if err != nil {
		return rest // it is a part of a parsed text
	}
	return own.Edited(wire.Edit{Name: mcp.MetaUpstream, Value: append(moved, '}')})
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
