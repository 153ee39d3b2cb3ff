package front

import (
	"bytes"
	"slices"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// levels are those of log messages, the least severe first (2026-07-28, logging).
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// A wish is which notifications of its call a client has asked for.
type wish struct {
	token []byte // its progressToken as it wrote it; nil wants no progress
	level string // the least severe log message; "" wants none
}

// wishOf reads what the metadata of a request asks for. Log messages are a modern client's only: a legacy one sets their
// level for its whole session.
func wishOf(meta wire.Object, modern bool) wish {
	var w wish
	w.token, _ = meta.Value(mcp.MetaProgressToken)
	if modern {
		w.level, _ = meta.String(mcp.MetaLogLevel)
	}
	return w
}

// checkLogLevel refuses a level that is none.
func checkLogLevel(meta wire.Object) *wire.Error {
	if !meta.Has(mcp.MetaLogLevel) {
		return nil
	}
	if level, _ := meta.String(mcp.MetaLogLevel); !slices.Contains(levels, level) {
		return fault(wire.CodeInvalidParams, "params._meta "+mcp.MetaLogLevel+" is none of debug, info, notice, warning, error, critical, alert and emergency")
	}
	return nil
}

// notifier puts what w asks for of a call's notifications on the client's stream; nil where that is nothing, or the client
// takes no stream.
func (p *post) notifier(w wish) func(upstream.Notification) {
	if !p.accepts.events || w.token == nil && w.level == "" {
		return nil
	}
	return func(n upstream.Notification) {
		if w.wants(n) {
			p.notify(n.Method, ownHop(n.Params))
		}
	}
}

// wants says whether a notification is for who asked. One that bears another token, or a level that nobody can compare, is
// for nobody.
func (w wish) wants(n upstream.Notification) bool {
	switch n.Method {
	case mcp.NotificationProgress:
		token, _ := n.Params.Value(mcp.MetaProgressToken)
		return w.token != nil && bytes.Equal(token, w.token)
	case mcp.NotificationMessage:
		level, _ := n.Params.String("level")
		return w.level != "" && slices.Index(levels, level) >= slices.Index(levels, w.level)
	}
	return false
}

// ownHop is params without a subscription's id, which names one of the hop to the server: a call's stream is no subscription's.
func ownHop(params wire.Object) wire.Object {
	meta, ok := params.Object("_meta")
	if !ok || !meta.Has(mcp.MetaSubscriptionID) {
		return params
	}
	return params.With(wire.Edit{Name: "_meta", Value: meta.Edited(wire.Edit{Name: mcp.MetaSubscriptionID})})
}

// extensionUI is the one extension whose results pass through the gateway as they are.
const extensionUI = "io.modelcontextprotocol/ui"

// passedOn is a modern client's ClientCapabilities as its servers may know them: without tasks and extensions, whose
// messages the gateway does not carry.
func passedOn(capabilities []byte) []byte {
	if !bytes.Contains(capabilities, []byte("tasks")) && !bytes.Contains(capabilities, []byte("extensions")) && bytes.IndexByte(capabilities, '\\') < 0 {
		return capabilities
	}
	declared, err := wire.ParseObject(capabilities)
	if err != nil {
		return nil
	}
	extensions := wire.Edit{Name: "extensions"}
	if o, ok := declared.Object("extensions"); ok {
		if ui, ok := o.Value(extensionUI); ok {
			extensions.Value = append(append([]byte(`{"`+extensionUI+`":`), ui...), '}')
		}
	}
	return declared.Edited(wire.Edit{Name: "tasks"}, extensions)
}
