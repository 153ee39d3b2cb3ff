package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"mcp-gateway/gateway/catalog"
	"mcp-gateway/gateway/front"
	"mcp-gateway/gateway/observe"
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
		return g.listTools(ctx, snap, req)
	}
	return refuse(wire.CodeMethodNotFound, `unknown method "`+req.Method+`"`)
}

// A toolCall is one round of a tools/call on its way: what it is, what earlier rounds have left of it, what is sent, and
// what became of it.
type toolCall struct {
	g       *Gateway
	snap    *snapshot
	route   *route
	req     *front.Request
	timeout time.Duration // of all rounds together
	round   *round        // nil for a first one

	sent   upstream.Request // its Target is there from the start
	resend upstream.Budget
	reply  front.Reply

	failed             *observe.Record // what a failure adds to the record; nil where there was none
	listed             bool            // the tool is in its upstream's listing
	waited             bool            // for a listing
	toolFailed         bool            // by the tool's own account
	took, upstreamTook time.Duration   // from arrival until the answer was ready; of it, the upstream's part
}

func (g *Gateway) callTool(ctx context.Context, snap *snapshot, req *front.Request) *front.Reply {
	route, target := snap.route(req.Name)
	if route == nil || !snap.policy.Allows(req.Caller, route.id, target) {
		return unknownTool(req.Name)
	}
	c := &toolCall{g: g, snap: snap, route: route, req: req, timeout: route.timeoutOf(target)}
	c.sent.Target = target
	refusal, err := c.openRound()
	if refusal != nil {
		return refusal
	}
	arrived := ctx
	ctx, cancel := context.WithDeadline(upstream.WithWait(ctx, req.Received.Add(startWait)), c.deadline())
	defer cancel()
	var resp *upstream.Response
	if err == nil {
		refusal, err = c.prepare(ctx)
	}
	if next := g.snapshot.Load(); next != snap && c.waited {
		// What it has waited for ends with a catalog that is replaced. Nothing was sent yet.
		return g.callTool(arrived, next, req)
	}
	if refusal != nil {
		return refusal
	}
	if err == nil {
		resp, err = c.send(ctx)
	}
	if next := g.snapshot.Load(); next != snap && unsentForReload(err) {
		return g.callTool(arrived, next, req)
	}
	return c.conclude(ctx, resp, err)
}

// unsentForReload reports whether nothing was sent since a reload has ended the upstream, so that its heir can be asked.
func unsentForReload(err error) bool {
	e, ok := errors.AsType[*upstream.Error](err)
	return ok && e.Outcome == upstream.NotSent && e.Cause == upstream.Reload
}

// send sends the round, and once more where the server has compared headers with a schema that it has changed, so that they are
// others now: nothing ran.
func (c *toolCall) send(ctx context.Context) (*upstream.Response, error) {
	began := time.Now()
	resp, err := c.route.upstream.Call(ctx, &c.sent)
	if errors.Is(err, upstream.ErrHeaderMismatch) {
		// What it waits for now is not what it waited for on arrival.
		ctx = upstream.WithWait(ctx, time.Now().Add(startWait))
		c.snap.catalog.Relist(ctx, c.route.id)
		header := c.headers(c.snap.catalog.View().Tool(c.route.id, c.sent.Target))
		switch {
		case maps.EqualFunc(header, c.sent.Header, slices.Equal):
			err = unproven(err)
		case c.resend.Take():
			c.sent.Header = header
			resp, err = c.route.upstream.Call(ctx, &c.sent)
		}
	}
	c.upstreamTook = time.Since(began)
	return resp, err
}

// unproven is the refusal of headers that are as the listing asks for them: it is not known what the server compared, nor when.
func unproven(err error) error {
	e, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		return err
	}
	bare := *e
	bare.Err = errors.New("the server refused the headers that its own listing asks for")
	if stated, ok := errors.AsType[*wire.Error](err); ok {
		bare.Err = fmt.Errorf("%w: %w", bare.Err, stated)
	}
	return &bare
}

// prepare finds the tool, holds the request against its definition, and writes it in the upstream's own words.
func (c *toolCall) prepare(ctx context.Context) (*front.Reply, error) {
	for _, h := range c.route.forward {
		if h.required && !present(c.req.Sent[h.name]) {
			return refuse(wire.CodeInvalidParams, `the server "`+c.route.id+`" needs the header `+h.name+` of the client's own request, which has none: nothing was sent`), nil
		}
	}
	tool, refusal, err := c.tool(ctx)
	if refusal != nil || err != nil {
		return refusal, err
	}
	c.listed = tool != nil
	params, err := c.outgoing()
	if err != nil {
		return refuse(wire.CodeInvalidParams, err.Error()), nil
	}
	c.sent = upstream.Request{
		Method: c.req.Method, Params: params, Target: c.sent.Target, Client: c.req.Client,
		Hold: c.req.Hold, Notify: c.notify(), Resend: &c.resend,
	}
	if c.req.Header != nil && tool != nil && len(tool.Params) > 0 {
		arguments, _ := params.Object("arguments")
		for _, p := range tool.Params {
			if !p.Agrees(c.req.Header[p.Header], arguments) {
				return refuse(mcp.CodeHeaderMismatch, "the header "+p.Header+" is missing, or says something else than the arguments"), nil
			}
		}
	}
	c.sent.Header = c.headers(tool)
	return nil, nil
}

// tool is the definition that the call is held against, nil where its upstream has not listed.
func (c *toolCall) tool(ctx context.Context) (*catalog.Tool, *front.Reply, error) {
	view, err := c.listing(ctx)
	if err != nil {
		return nil, nil, err
	}
	tool := view.Tool(c.route.id, c.sent.Target)
	if tool != nil || !view.Listed(c.route.id) {
		return tool, nil, nil
	}
	c.waited = true
	c.snap.catalog.Relist(ctx, c.route.id)
	view = c.snap.catalog.View()
	tool = view.Tool(c.route.id, c.sent.Target)
	switch {
	case tool != nil || !view.Listed(c.route.id):
		return tool, nil, nil
	case c.later():
		return nil, nil, &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.RoundNotSent, Err: errors.New("the tool is not listed any more")}
	}
	return nil, unknownTool(c.req.Name), nil
}

// listing is the view that the call is held against. A client that sends its arguments in headers as well is owed the check,
// which needs the tool's definition: its call waits for an upstream that has not listed.
func (c *toolCall) listing(ctx context.Context) (*catalog.View, error) {
	view := c.snap.catalog.View()
	if view.Listed(c.route.id) || c.req.Header == nil {
		return view, nil
	}
	c.waited = true
	c.snap.catalog.Await(ctx, c.route.id)
	view = c.snap.catalog.View()
	until, _ := upstream.WaitUntil(ctx)
	switch {
	case view.Listed(c.route.id):
	case ctx.Err() != nil:
		return nil, upstream.Ended(ctx, false, context.Cause(ctx))
	case !time.Now().Before(until):
		return nil, &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.ConnectingStill}
	}
	return view, nil
}

// hopKeys are the keys of _meta that speak of one hop and end with it.
var hopKeys = []wire.Edit{
	{Name: mcp.MetaVersion}, {Name: mcp.MetaClientCapabilities}, {Name: mcp.MetaClientInfo}, {Name: mcp.MetaLogLevel},
	{Name: mcp.MetaSubscriptionID}, {Name: mcp.MetaProgressToken},
}

// outgoing is params as the upstream is to read them: its own name for the tool, its own state of the call, and without what
// belongs to the client's hop. The member task of 2025-11-25 goes: the gateway declares no tasks, and could not pass on what
// would come back. A progressToken stays where somebody listens; the engine puts one of its own there.
func (c *toolCall) outgoing() (wire.Object, error) {
	params := c.req.Params
	var edits [4]wire.Edit
	n := 0
	if c.req.Name != c.sent.Target {
		edits[n] = wire.Edit{Name: "name", Value: wire.AppendString(nil, c.sent.Target)}
		n++
	}
	if params.Has("task") {
		edits[n] = wire.Edit{Name: "task"}
		n++
	}
	if c.round != nil && params.Has("requestState") {
		edits[n] = wire.Edit{Name: "requestState", Value: c.round.state}
		n++
	}
	if raw, ok := params.Value("_meta"); ok {
		meta, err := c.req.Meta, error(nil)
		if meta.IsZero() {
			meta, err = wire.ParseObject(raw)
		}
		if err != nil {
			return wire.Object{}, errors.New("_meta is not an object")
		}
		keys := hopKeys
		if c.req.Notify != nil {
			keys = hopKeys[:len(hopKeys)-1]
		}
		edits[n] = wire.Edit{Name: "_meta", Value: rest(meta, keys)}
		n++
	}
	return params.Later(edits[:n]...), nil
}

// rest is the object without the members that the edits take off, nil where nothing is left. It is made only if something is.
func rest(o wire.Object, edits []wire.Edit) []byte {
	off := 0
	for _, e := range edits {
		if o.Has(e.Name) {
			off++
		}
	}
	if off == o.Len() { // in a request no name stands twice
		return nil
	}
	return o.Edited(edits...)
}

// headers are the arguments that the tool's definition wants in headers as well, and what is forwarded of the client's
// request; nil where there is neither.
func (c *toolCall) headers(tool *catalog.Tool) http.Header {
	var h http.Header
	if tool != nil && len(tool.Params) > 0 {
		h = make(http.Header, len(tool.Params)+len(c.route.forward))
		arguments, _ := c.sent.Params.Object("arguments")
		for _, p := range tool.Params {
			if value, ok := p.Value(arguments); ok {
				h[p.Header] = []string{value}
			}
		}
	}
	for _, f := range c.route.forward {
		if values := c.req.Sent[f.name]; present(values) {
			if h == nil {
				h = make(http.Header, len(c.route.forward))
			}
			h[f.name] = values
		}
	}
	return h
}

// present reports whether a header says anything.
func present(values []string) bool { return len(values) > 0 && (len(values) > 1 || values[0] != "") }

func refuse(code int64, message string) *front.Reply {
	return &front.Reply{Error: &wire.Error{Code: code, Message: message}}
}

// unknownTool reads the same for a tool that is denied and one that does not exist, so that nobody can map what there is.
func unknownTool(name string) *front.Reply {
	return refuse(wire.CodeInvalidParams, `unknown tool "`+name+`"`)
}
