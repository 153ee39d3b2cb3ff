package modern

import (
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

func version(cfg Config) string {
	if cfg.Version == "" {
		return "unknown"
	}
	return cfg.Version
}

// metaOf is the _meta of params with what this hop says: revision, who asks, and what the asking client can do.
func (u *Upstream) metaOf(params wire.Object, client upstream.Client) []byte {
	meta, ok := params.Object("_meta")
	if !ok || meta.Len() == 0 {
		if client.Capabilities == nil {
			return u.meta
		}
		meta = wire.Object{}
	}
	edits := u.metaEdits(client.Capabilities)
	return meta.AppendEdited(make([]byte, 0, len(meta.Raw())+len(u.meta)+len(client.Capabilities)), edits...)
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
