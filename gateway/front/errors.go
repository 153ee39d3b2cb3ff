package front

import (
	"strconv"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// The codes that 2026-07-28 keeps for itself (basic: error codes).
const (
	firstReserved = -32020
	lastReserved  = -32099
)

// modernError is an error as a modern client may see it. The gateway's own are; a server's may have a code that means
// something else, or nothing, to this client at this hop.
func modernError(e *wire.Error, declared wire.Object) *wire.Error {
	if e.Raw.IsZero() {
		return e
	}
	switch e.Code {
	case wire.CodeMethodNotFound, mcp.CodeResourceNotFound:
		// The gateway does serve the method.
		return recoded(e, wire.CodeInvalidParams)
	case mcp.CodeURLElicitation:
		return recoded(e, wire.CodeInternal)
	case mcp.CodeMissingCapability:
		if asksForMore(e, declared) {
			return e
		}
		return enclosed(e)
	}
	if e.Code <= firstReserved && e.Code >= lastReserved {
		return enclosed(e)
	}
	return e
}

// recoded is e with another code, every other member as it was.
func recoded(e *wire.Error, code int64) *wire.Error {
	raw, err := wire.ParseObject(e.Raw.Edited(wire.Edit{Name: "code", Value: strconv.AppendInt(nil, code, 10)}))
	if err != nil {
		return fault(code, e.Message)
	}
	return &wire.Error{Code: code, Message: e.Message, Data: e.Data, Raw: raw}
}

// enclosed is an internal error with the original in its data.
func enclosed(e *wire.Error) *wire.Error {
	return &wire.Error{Code: wire.CodeInternal, Message: e.Message, Data: e.Raw.Raw()}
}

// asksForMore reports whether a server misses a capability that the client has indeed not declared. Otherwise it misses
// what the gateway did not pass on, and the client could do nothing about it.
func asksForMore(e *wire.Error, declared wire.Object) bool {
	data, ok := e.Raw.Object("data")
	if !ok {
		return false
	}
	required, ok := data.Object("requiredCapabilities")
	return ok && !covers(declared, required, 0)
}

// How deep, and how many, capabilities are compared. A server that asks for more asks for nothing that there is.
const (
	maxCapabilityDepth = 8
	maxCapabilities    = 64
)

// covers reports whether every capability in required stands in declared as well.
func covers(declared, required wire.Object, depth int) bool {
	if depth == maxCapabilityDepth || required.Len() > maxCapabilities {
		return true
	}
	for name, value := range required.All() {
		// An empty elicitation is the form mode.
		if name == "form" && depth == 1 && declared.Len() == 0 && !declared.IsZero() {
			continue
		}
		if !declared.Has(name) {
			return false
		}
		inner, err := wire.ParseObject(value)
		if err != nil {
			continue
		}
		if has, _ := declared.Object(name); !covers(has, inner, depth+1) {
			return false
		}
	}
	return true
}
