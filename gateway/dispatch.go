package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mcp-gateway/gateway/catalog"
	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// startWait is how long a call waits for an upstream's connect and first listing together.
const startWait = 5 * time.Second

// dispatch answers one request of either front: snapshot, route, policy, deadline, call, outcome, reply.
func (g *Gateway) dispatch(ctx context.Context, req *front.Request) *front.Reply {
	snap := g.snapshot.Load()
	switch req.Method {
	case mcp.MethodToolsCall:
		return g.callTool(ctx, snap, req)
	case mcp.MethodToolsList:
		return g.listTools(snap, req)
	}
	return refuse(wire.CodeMethodNotFound, `unknown method "`+req.Method+`"`)
}

func (g *Gateway) callTool(ctx context.Context, snap *snapshot, req *front.Request) *front.Reply {
	route, target := snap.route(req.Name)
	if route == nil || !snap.policy.Allows(req.Caller, route.id, target) {
		return unknownTool(req.Name)
	}
	ctx, cancel := context.WithDeadline(ctx, req.Received.Add(route.timeout))
	defer cancel()
	call, refusal, err := g.prepare(ctx, snap, route, target, req)
	if refusal != nil {
		return refusal
	}
	var resp *upstream.Response
	if err == nil {
		resp, err = route.upstream.Call(ctx, call)
	}
	if errors.Is(err, upstream.ErrHeaderMismatch) && call.Resend.Take() {
		// The server has compared headers with a schema that it has changed: nothing ran.
		relist(ctx, snap, route)
		call.Header = headers(snap.catalog.View().Tool(route.id, target), call.Params)
		resp, err = route.upstream.Call(ctx, call)
	}
	reply, rec := g.conclude(ctx, route, req, resp, err)
	rec.Request, rec.Caller, rec.Method, rec.Name = req.ID, req.Caller, req.Method, req.Name
	rec.Upstream, rec.Target, rec.Duration = route.id, target, time.Since(req.Received)
	g.observer.Record(rec)
	return reply
}

// prepare finds the tool, holds the request against its definition, and writes it in the upstream's own words.
func (g *Gateway) prepare(ctx context.Context, snap *snapshot, route *route, target string, req *front.Request) (*upstream.Request, *front.Reply, error) {
	view := snap.catalog.View()
	if !view.Listed(route.id) && req.Header != nil {
		// A client that sends its arguments in headers as well is owed the check, which needs the definition.
		wait, cancel := context.WithTimeout(ctx, startWait)
		defer cancel()
		snap.catalog.Await(wait, route.id)
		view = snap.catalog.View()
		if !view.Listed(route.id) && wait.Err() != nil {
			return nil, nil, unlisted(ctx)
		}
	}
	tool := view.Tool(route.id, target)
	if tool == nil && view.Listed(route.id) {
		relist(ctx, snap, route)
		view = snap.catalog.View()
		if tool = view.Tool(route.id, target); tool == nil && view.Listed(route.id) {
			return nil, unknownTool(req.Name), nil
		}
	}
	if req.Params.Has("requestState") {
		return nil, refuse(wire.CodeInvalidParams, "requestState is not one that this gateway gave for this call"), nil
	}
	room := new(struct {
		upstream.Request
		upstream.Budget
	})
	call := &room.Request
	*call = upstream.Request{Method: req.Method, Target: target, Client: req.Client, Hold: req.Hold, Resend: &room.Budget}
	var err error
	if call.Params, err = outgoing(req.Params, req.Name, target); err != nil {
		return nil, refuse(wire.CodeInvalidParams, err.Error()), nil
	}
	if tool != nil && len(tool.Params) > 0 {
		arguments, _ := call.Params.Object("arguments")
		for _, p := range tool.Params {
			if req.Header != nil && !p.Agrees(req.Header[p.Header], arguments) {
				return nil, refuse(mcp.CodeHeaderMismatch, "the header "+p.Header+" is missing, or says something else than the arguments"), nil
			}
		}
		call.Header = headers(tool, call.Params)
	}
	return call, nil, nil
}

// unlisted is the failure of a call whose upstream did not list in time.
func unlisted(ctx context.Context) error {
	if ctx.Err() != nil {
		return upstream.Ended(ctx, false, context.Cause(ctx))
	}
	return &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.ConnectingStill}
}

// relist waits for a fresh listing, within the call's deadline and no longer than a call waits for anything but its answer.
func relist(ctx context.Context, snap *snapshot, route *route) {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	snap.catalog.Relist(ctx, route.id)
}

// hopKeys are the keys of _meta that speak of one hop and end with it.
var hopKeys = []wire.Edit{
	{Name: mcp.MetaVersion}, {Name: mcp.MetaClientCapabilities}, {Name: mcp.MetaClientInfo}, {Name: mcp.MetaLogLevel},
	{Name: mcp.MetaProgressToken}, {Name: mcp.MetaSubscriptionID},
}

// outgoing is params as the upstream is to read them: its own name for the tool, without what belongs to the client's hop.
// The member task of 2025-11-25 goes: the gateway declares no tasks, and could not pass on what would come back.
func outgoing(params wire.Object, public, target string) (wire.Object, error) {
	var edits [3]wire.Edit
	n := 0
	if public != target {
		edits[n] = wire.Edit{Name: "name", Value: wire.AppendString(nil, target)}
		n++
	}
	if params.Has("task") {
		edits[n] = wire.Edit{Name: "task"}
		n++
	}
	if raw, ok := params.Value("_meta"); ok {
		meta, err := wire.ParseObject(raw)
		if err != nil {
			return wire.Object{}, errors.New("_meta is not an object")
		}
		edit := wire.Edit{Name: "_meta"}
		if rest := meta.Edited(hopKeys...); len(rest) > len("{}") {
			edit.Value = rest
		}
		edits[n] = edit
		n++
	}
	return params.With(edits[:n]...), nil
}

// headers are the arguments that the tool's definition wants in headers as well.
func headers(tool *catalog.Tool, params wire.Object) http.Header {
	arguments, ok := params.Object("arguments")
	if tool == nil || !ok {
		return nil
	}
	h := make(http.Header, len(tool.Params))
	for _, p := range tool.Params {
		if value, ok := p.Value(arguments); ok {
			h[p.Header] = []string{value}
		}
	}
	return h
}

func refuse(code int64, message string) *front.Reply {
	return &front.Reply{Error: &wire.Error{Code: code, Message: message}}
}

// unknownTool reads the same for a tool that is denied and one that does not exist, so that nobody can map what there is.
func unknownTool(name string) *front.Reply {
	return refuse(wire.CodeInvalidParams, `unknown tool "`+name+`"`)
}
