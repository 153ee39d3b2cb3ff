package gateway

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"mcp-gateway/gateway/catalog"
	"mcp-gateway/redact"
)

// statusLines writes one line for each upstream when it has listed or failed, and again on change.
type statusLines struct {
	scrubber *redact.Scrubber

	mu sync.Mutex // guards w
	w  io.Writer
}

func (l *statusLines) report(r catalog.Report) {
	line := fmt.Sprintf("%-12s %s", r.ID, r.State)
	if r.Listed {
		line += fmt.Sprintf(", %s, as %s*, %s", r.Revision, r.Prefix, tools(r.Shown))
		if r.Denied > 0 {
			line += fmt.Sprintf(", %d denied", r.Denied)
		}
		if r.Invalid > 0 {
			line += fmt.Sprintf(", %d left out as invalid (see the log)", r.Invalid)
		}
	} else {
		line += ", no tools: " + r.Reason
	}
	if r.Err != nil {
		line += ": " + r.Err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.w, redact.Printable(strings.TrimSpace(l.scrubber.String(line))))
}

func tools(n int) string {
	if n == 1 {
		return "1 tool"
	}
	return fmt.Sprintf("%d tools", n)
}
