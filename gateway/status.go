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
	w        io.Writer // takes lines of several goroutines, and never waits

	advised sync.Once // of what to do about an upstream that cannot be used
}

func (l *statusLines) report(r catalog.Report) {
	line := fmt.Sprintf("%-12s ", r.ID)
	if r.Listed {
		line += fmt.Sprintf("%s, %s, as %s*, %s", r.State, r.Revision, r.Prefix, tools(r.Shown))
		if r.Denied > 0 {
			line += fmt.Sprintf(", %d denied", r.Denied)
		}
		if r.Invalid > 0 {
			line += fmt.Sprintf(", %d left out (see the log)", r.Invalid)
		}
	} else {
		line += r.Reason + ", no tools"
	}
	if r.Err != nil {
		line += ": " + r.Err.Error()
	}
	fmt.Fprintln(l.w, redact.Printable(redact.Cut(strings.TrimSpace(l.scrubber.String(line)), maxLine)))
	if !r.Listed && r.Err != nil {
		l.advised.Do(func() { fmt.Fprintln(l.w, "             (what to do about it says: mcp-gateway check --dial -c FILE)") })
	}
}

// maxLine bounds a line, in bytes: what went wrong is told in a server's words.
const maxLine = 2 << 10

func tools(n int) string {
	if n == 1 {
		return "1 tool"
	}
	return fmt.Sprintf("%d tools", n)
}
