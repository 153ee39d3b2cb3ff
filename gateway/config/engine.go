package config

// An Engine is a row of the family table: an era over a transport.
type Engine string

// The rows. Nothing else picks an engine.
const (
	LegacyStdio     Engine = "legacy-stdio"
	ModernStdio     Engine = "modern-stdio"
	LegacyWebSocket Engine = "legacy-websocket"
	ModernHTTP      Engine = "modern-http"
	LegacyHTTP      Engine = "legacy-http" // Streamable HTTP of the 2025 revisions
	LegacySSE       Engine = "legacy-sse"  // HTTP+SSE of 2024-11-05
)

// Stdio reports whether the server is a child process.
func (e Engine) Stdio() bool { return e == LegacyStdio || e == ModernStdio }

func (e Engine) modern() bool { return e == ModernStdio || e == ModernHTTP }

// String names the row in words, such as "legacy over WebSocket".
func (e Engine) String() string {
	switch e {
	case LegacyStdio:
		return "legacy over stdio"
	case ModernStdio:
		return "modern over stdio"
	case LegacyWebSocket:
		return "legacy over WebSocket"
	case ModernHTTP:
		return "modern over Streamable HTTP"
	case LegacyHTTP:
		return "legacy over Streamable HTTP"
	case LegacySSE:
		return "legacy over HTTP+SSE"
	}
	return string(e)
}
