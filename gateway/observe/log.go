package observe

import (
	"io"
	"log/slog"

	"mcp-gateway/redact"
)

// NewLogger writes records to w as text, or with json as one JSON object a line. The scrubber sees each before it is written.
func NewLogger(w io.Writer, json bool, level slog.Leveler, scrubber *redact.Scrubber) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if json {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(redact.NewHandler(handler, scrubber))
}
