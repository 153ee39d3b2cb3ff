package gateway

import (
	"context"
	"encoding/binary"

	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// purposeCursor is what a sealed cursor is for; it binds the kind of list as well.
const purposeCursor = "cursor tools/list"

// maxCursor bounds what a client may hand back as a cursor.
const maxCursor = 512

func (g *Gateway) listTools(ctx context.Context, snap *snapshot, req *front.Request) *front.Reply {
	view := snap.catalog.Fresh(ctx, req.Caller)
	index := 0
	if raw, ok := req.Params.Value("cursor"); ok && string(raw) != "null" {
		index, ok = g.openCursor(raw, req.Caller, view.Digest[:])
		if !ok {
			return refuse(wire.CodeInvalidParams, "the cursor is not one for the list as it is now; start over without a cursor")
		}
	}
	page := view.Page(index)
	if index+1 < view.Pages() {
		next := wire.AppendString(nil, g.sealCursor(index+1, req.Caller, view.Digest[:]))
		page = page.With(wire.Edit{Name: "nextCursor", Value: next})
	}
	return &front.Reply{Result: page, Type: mcp.ResultComplete, Revision: mcp.Modern}
}

func (g *Gateway) sealCursor(index int, caller string, digest []byte) string {
	return g.ring.Seal(purposeCursor, binary.BigEndian.AppendUint32(digest[:len(digest):len(digest)], uint32(index)), []byte(caller))
}

func (g *Gateway) openCursor(raw []byte, caller string, digest []byte) (int, bool) {
	token, ok := wire.Unquote(raw)
	if !ok || len(token) > maxCursor {
		return 0, false
	}
	plain, err := g.ring.Open(purposeCursor, token, []byte(caller))
	if err != nil || len(plain) != len(digest)+4 || string(plain[:len(digest)]) != string(digest) {
		return 0, false
	}
	return int(binary.BigEndian.Uint32(plain[len(digest):])), true
}
