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

// metaOf is the _meta of params with what this hop says: revision, who asks, what the asking client can do, and what it wants to
// be told.
func (u *Upstream) metaOf(params wire.Object, client upstream.Client) []byte {
	meta, ok := params.Object("_meta")
	if !ok || meta.Len() == 0 {
		if (client.Capabilities == nil || string(client.Capabilities) == "{}") && client.LogLevel == "" {
			return u.meta
		}
		meta = wire.Object{}
	}
	edits := u.metaEdits(client)
	return meta.AppendEdited(make([]byte, 0, len(meta.Raw())+len(u.meta)+len(client.Capabilities)), edits...)
}

var (
	metaVersion = wire.AppendString(nil, mcp.Modern)
	none        = []byte("{}")
)

func (u *Upstream) metaEdits(client upstream.Client) []wire.Edit {
	edits := []wire.Edit{
		{Name: mcp.MetaVersion, Value: metaVersion},
		{Name: mcp.MetaClientCapabilities, Value: client.Capabilities},
		{Name: mcp.MetaClientInfo, Value: u.info},
		{Name: mcp.MetaLogLevel},
	}
	if client.Capabilities == nil {
		edits[1].Value = none
	}
	if client.LogLevel != "" {
		edits[3].Value = wire.AppendString(nil, client.LogLevel)
	}
	return edits
}
