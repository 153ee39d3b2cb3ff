package modern

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/internal/exchange"
)

// overHTTP is the transport to a server at a url, and the one connection to it: each request stands alone.
type overHTTP struct {
	u       *Upstream
	client  *exchange.Client // of the calls
	listens *exchange.Client // of the one that lasts, whose connection and share of large events are its own
	ids     atomic.Int64
	ending  atomic.Bool
}

func newHTTP(u *Upstream) *overHTTP {
	cfg := exchange.Config{
		URL: u.cfg.URL, Header: fixedHeader(u.cfg), Credential: u.cfg.Credential, Transport: u.cfg.Transport, Log: u.cfg.Log,
	}
	return &overHTTP{u: u, client: exchange.New(cfg), listens: exchange.New(cfg)}
}

func (h *overHTTP) open(context.Context) (conn, error) { return h, nil }

func (h *overHTTP) closing() { h.ending.Store(true) }

func (h *overHTTP) close() {
	h.client.Close()
	h.listens.Close()
}

func (h *overHTTP) hint() string {
	return "a server with an initialize handshake needs `protocol: legacy`, one with an SSE endpoint also `transport: sse`"
}

func (h *overHTTP) explain(err error) error { return err }

// Done is none: nothing on the wire tells that the server has gone but a call that cannot reach it, and a listen that breaks off.
func (h *overHTTP) Done() <-chan struct{} { return nil }

// Err is not asked, since Done is none.
func (h *overHTTP) Err() error { return nil }

// Close ends the calls in flight where the upstream is being closed. A session that was lost leaves them: they run on
// connections of their own, and one call's dial says nothing about another's reply.
func (h *overHTTP) Close() error {
	if h.ending.Load() {
		h.close()
	}
	return nil
}

// ask sends req once, and once more after a 401 within its budget.
func (h *overHTTP) ask(ctx context.Context, req *upstream.Request) (exchange.Reply, error) {
	n := h.ids.Add(1)
	params, notify := exchange.Progress(req.Params, n, req.Notify)
	var room [20]byte
	body, id, large := h.u.body(strconv.AppendInt(room[:0], n, 10), req, params)
	return h.client.Do(ctx, &exchange.Request{
		ID: id, Body: body, Room: large, Header: headerOf(req), Notify: notify, Hold: req.Hold, Resend: req.Resend,
	})
}

// listen posts the request, whose stream stays open. A message of it that names no subscription is its own, one that names
// another's is dropped.
func (h *overHTTP) listen(ctx context.Context, req *upstream.Request, hear func(upstream.Notification)) (exchange.Reply, error) {
	body, id, large := h.u.body(strconv.AppendInt(nil, h.ids.Add(1), 10), req, req.Params)
	return h.listens.Do(ctx, &exchange.Request{
		ID: id, Body: body, Room: large, Header: headerOf(req), Resend: req.Resend,
		Notify: func(n upstream.Notification) {
			meta, _ := n.Params.Object("_meta")
			if raw, ok := meta.Value(mcp.MetaSubscriptionID); !ok || bytes.Equal(raw, id) {
				hear(n)
			}
		},
	})
}

// fixedHeader is what every request's header has in common (2026-07-28, Streamable HTTP).
func fixedHeader(cfg Config) http.Header {
	h := exchange.Header(cfg.Header, version(cfg))
	h.Set(mcp.HeaderVersion, mcp.Modern)
	h.Del(mcp.HeaderMethod) // these two are each request's own
	h.Del(mcp.HeaderName)
	return h
}

// headerOf is what req's header has beside fixedHeader, which wins over it.
func headerOf(req *upstream.Request) http.Header {
	out := make(http.Header, len(req.Header)+3) // one more for the credential
	maps.Copy(out, req.Header)
	values := []string{req.Method, ""}
	out[mcp.HeaderMethod] = values[:1:1]
	delete(out, mcp.HeaderName)
	switch req.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead:
		values[1] = mcp.EncodeHeader(req.Target)
		out[mcp.HeaderName] = values[1:]
	}
	return out
}

// body is req with other params as a message with the given id, in one piece, the id as it stands there, and the Room that a
// large one lies in. Log messages that nobody takes are not asked for.
func (u *Upstream) body(id []byte, req *upstream.Request, params wire.Object) (body, idInBody []byte, large *exchange.Room) {
	client := req.Client
	if req.Notify == nil {
		client.LogLevel = ""
	}
	meta := u.metaOf(params, client)
	size := params.Size() + len(meta) + len(req.Method) + len(id) + 64
	body, large = exchange.NewRoom(size)
	body = wire.AppendEditedRequest(body, id, req.Method, params, wire.Edit{Name: "_meta", Value: meta})
	start := len(`{"jsonrpc":"2.0","id":`)
	return body, body[start : start+len(id)], large
}
