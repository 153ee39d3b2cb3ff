package modern

import (
	"maps"
	"net/http"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// fixedHeader is what every request's header has in common (2026-07-28, Streamable HTTP).
func fixedHeader(cfg Config) http.Header {
	h := make(http.Header, len(cfg.Header)+5)
	for name, values := range cfg.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("Accept-Encoding", "identity") // without it, a server may choose any encoding (RFC 9110, section 12.5.3)
	h.Set("User-Agent", "mcp-gateway/"+version(cfg))
	h.Set(mcp.HeaderVersion, mcp.Modern)
	return h
}

func version(cfg Config) string {
	if cfg.Version == "" {
		return "unknown"
	}
	return cfg.Version
}

// headerOf is the complete header of req but for the credential. The upstream's own members win over req's.
func (u *Upstream) headerOf(req *upstream.Request) http.Header {
	h := make(http.Header, len(u.header)+len(req.Header)+3) // one more for the credential
	maps.Copy(h, req.Header)
	maps.Copy(h, u.header)
	values := []string{req.Method, ""}
	h[mcp.HeaderMethod] = values[:1:1]
	delete(h, mcp.HeaderName)
	switch req.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead:
		values[1] = mcp.EncodeHeader(req.Target)
		h[mcp.HeaderName] = values[1:]
	}
	return h
}

// body is req as a message with the given id, in one piece, and the id as it stands there.
func (u *Upstream) body(id []byte, req *upstream.Request) (body, idInBody []byte) {
	meta := u.metaOf(req)
	size := len(req.Params.Raw()) + len(meta) + len(req.Method) + len(id) + 64
	body = wire.AppendRequest(make([]byte, 0, size), id, req.Method, nil)
	body = append(body[:len(body)-1], `,"params":`...)
	body = req.Params.AppendEdited(body, wire.Edit{Name: "_meta", Value: meta})
	body = append(body, '}')
	start := len(`{"jsonrpc":"2.0","id":`)
	return body, body[start : start+len(id)]
}

// metaOf is req's _meta with what this hop says: revision, who asks, and what the asking client can do.
func (u *Upstream) metaOf(req *upstream.Request) []byte {
	meta, ok := req.Params.Object("_meta")
	if !ok || meta.Len() == 0 {
		if req.Client.Capabilities == nil {
			return u.meta
		}
		meta = wire.Object{}
	}
	edits := u.metaEdits(req.Client.Capabilities)
	return meta.AppendEdited(make([]byte, 0, len(meta.Raw())+len(u.meta)+len(req.Client.Capabilities)), edits...)
}

var (
	metaVersion = wire.AppendString(nil, mcp.Modern)
	none        = []byte("{}")
)

func (u *Upstream) metaEdits(capabilities []byte) []wire.Edit {
	if capabilities == nil {
		capabilities = none
	}
	return []wire.Edit{
		{Name: mcp.MetaVersion, Value: metaVersion},
		{Name: mcp.MetaClientCapabilities, Value: capabilities},
		{Name: mcp.MetaClientInfo, Value: u.info},
	}
}
