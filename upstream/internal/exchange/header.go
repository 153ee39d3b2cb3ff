package exchange

import (
	"net/http"

	"mcp-gateway/internal/mcp"
)

// Header is what the header of every POST has in common: what is configured, and what Streamable HTTP and its client say.
func Header(configured http.Header, version string) http.Header {
	h := make(http.Header, len(configured)+6)
	for name, values := range configured {
		h[http.CanonicalHeaderKey(name)] = values
	}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("Accept-Encoding", "identity") // without it, a server may choose any encoding (RFC 9110, section 12.5.3)
	h.Set("User-Agent", mcp.GatewayName+"/"+version)
	return h
}
