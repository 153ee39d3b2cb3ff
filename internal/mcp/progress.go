package mcp

import (
	"bytes"
	"strconv"

	"mcp-gateway/internal/wire"
)

// SwapProgressToken puts a token of the gateway's own where params' _meta has a progressToken, and gives the text of the
// caller's. Many callers stand behind one sender, whose tokens must differ (2026-07-28, progress). Without a token, or with
// one that is neither a string nor a number, the params that come back have none and the text is nil.
func SwapProgressToken(params wire.Object, minted int64) (swapped wire.Object, callers []byte) {
	meta, _ := params.Object("_meta")
	callers, ok := meta.Value(MetaProgressToken)
	switch {
	case !ok:
		return params, nil
	case !isToken(callers):
		return DropProgressToken(params), nil
	}
	token := strconv.AppendInt(nil, minted, 10)
	return params.Later(wire.Edit{Name: "_meta", Value: meta.Edited(wire.Edit{Name: MetaProgressToken, Value: token})}), callers
}

// DropProgressToken takes the token off params, where nobody listens.
func DropProgressToken(params wire.Object) wire.Object {
	meta, _ := params.Object("_meta")
	if !meta.Has(MetaProgressToken) {
		return params
	}
	return params.Later(wire.Edit{Name: "_meta", Value: meta.Edited(wire.Edit{Name: MetaProgressToken})})
}

// ProgressToken is the token of the gateway's own that a progress notification bears. It reports false for any other.
func ProgressToken(params wire.Object) (int64, bool) {
	raw, ok := params.Value(MetaProgressToken)
	if !ok || !params.Unique(MetaProgressToken) {
		return 0, false
	}
	return wire.Int(raw)
}

// RestoreProgressToken is the params of a progress notification with the caller's token, as it was written.
func RestoreProgressToken(params wire.Object, callers []byte) wire.Object {
	return params.With(wire.Edit{Name: MetaProgressToken, Value: callers})
}

// MayHoldProgressToken reports false only for a text that has no member named progressToken anywhere, however its names are
// escaped, so that most need not be read for it.
func MayHoldProgressToken(text []byte) bool {
	return bytes.Contains(text, []byte(MetaProgressToken)) || bytes.Contains(text, []byte(`\u00`))
}

func isToken(raw []byte) bool {
	return raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
}
