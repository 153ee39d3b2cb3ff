// Package mcp holds the words of the Model Context Protocol that both sides of the gateway use: revisions, methods,
// _meta keys, error codes, HTTP header names and the encoding of their values.
package mcp

// Protocol revisions. Modern is the one with metadata on each request; the others begin with a handshake.
const (
	Revision20241105 = "2024-11-05"
	Revision20250326 = "2025-03-26"
	Revision20250618 = "2025-06-18"
	Revision20251125 = "2025-11-25"
	Modern           = "2026-07-28"
)

// LegacyLatest is the newest revision with a handshake.
const LegacyLatest = Revision20251125

// IsLegacy reports whether revision is one with a handshake.
func IsLegacy(revision string) bool {
	switch revision {
	case Revision20241105, Revision20250326, Revision20250618, Revision20251125:
		return true
	}
	return false
}

// Methods.
const (
	MethodDiscover               = "server/discover"
	MethodInitialize             = "initialize"
	MethodPing                   = "ping"
	MethodToolsList              = "tools/list"
	MethodToolsCall              = "tools/call"
	MethodPromptsGet             = "prompts/get"
	MethodResourcesRead          = "resources/read"
	MethodListen                 = "subscriptions/listen"
	MethodElicitationCreate      = "elicitation/create"
	MethodSamplingCreateMessage  = "sampling/createMessage"
	MethodRootsList              = "roots/list"
	NotificationInitialized      = "notifications/initialized"
	NotificationCancelled        = "notifications/cancelled"
	NotificationProgress         = "notifications/progress"
	NotificationMessage          = "notifications/message"
	NotificationAcknowledged     = "notifications/subscriptions/acknowledged"
	NotificationToolsChanged     = "notifications/tools/list_changed"
	NotificationPromptsChanged   = "notifications/prompts/list_changed"
	NotificationResourcesChanged = "notifications/resources/list_changed"
	NotificationResourceUpdated  = "notifications/resources/updated"
)

// Keys of _meta that belong to one hop (2026-07-28, basic: per-request metadata).
const (
	MetaVersion            = "io.modelcontextprotocol/protocolVersion"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaProgressToken      = "progressToken"
)

// Keys of the gateway's own.
const (
	MetaOutcome  = "mcp-gateway/outcome"
	MetaAbsent   = "mcp-gateway/absent"
	MetaUpstream = "mcp-gateway/upstream"
	MetaPrefix   = "mcp-gateway/"
)

// Error codes of the specification beside JSON-RPC's own (2026-07-28, basic: error codes).
const (
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
	CodeResourceNotFound   = -32002 // until 2025-11-25
	CodeURLElicitation     = -32042 // 2025-11-25 only
)

// Values of resultType.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
)

// HTTP headers (2026-07-28, Streamable HTTP), in net/http's canonical form.
const (
	HeaderVersion     = "Mcp-Protocol-Version"
	HeaderMethod      = "Mcp-Method"
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"
	HeaderSession     = "Mcp-Session-Id"
)

// HeaderKeyword marks a schema property whose argument also rides in a header.
const HeaderKeyword = "x-mcp-header"

// What the gateway calls itself, to clients and to servers.
const (
	GatewayName    = "mcp-gateway"
	GatewayVersion = "0.1.0"
)
