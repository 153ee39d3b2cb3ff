package gateway

import (
	"errors"
	"strings"
	"testing"

	"mcp-gateway/gateway/catalog"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

// Each upstream has its line, and what to do about those that cannot be used is said once.
func TestStatusLines(t *testing.T) {
	var out strings.Builder
	l := &statusLines{w: &out, scrubber: redact.NewScrubber()}
	l.report(catalog.Report{ID: "good", Prefix: "good__", State: upstream.Live, Revision: "2025-11-25", Listed: true, Shown: 1, Denied: 2, Invalid: 3})
	l.report(catalog.Report{ID: "away", State: upstream.Backoff, Listed: true, Prefix: "away__", Revision: "2025-11-25", Err: errors.New("refused")})
	l.report(catalog.Report{ID: "bad", Reason: "reconnecting", Err: errors.New("refused")})
	l.report(catalog.Report{ID: "worse", Reason: "given-up", Err: errors.New("set it\nright")})
	const want = `good         live, 2025-11-25, as good__*, 1 tool, 2 denied, 3 left out (see the log)
away         backoff, 2025-11-25, as away__*, 0 tools: refused
bad          reconnecting, no tools: refused
             (what to do about it says: mcp-gateway check --dial -c FILE)
worse        given-up, no tools: set it␊right
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
