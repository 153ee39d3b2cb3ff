package gateway

import (
	"strings"
	"time"

	"mcp-gateway/gateway/catalog"
	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

// A snapshot is all that one request needs to know of the configuration. It is immutable.
type snapshot struct {
	policy  *policy.Policy
	catalog *catalog.Catalog
	routes  []route // prefixes never meet, so at most one of them begins a name
	byID    map[string]*route
}

// A route leads to one upstream.
type route struct {
	id, prefix string
	upstream   upstream.Upstream
	timeout    time.Duration
}

// route finds the upstream of a public tool name, and the tool's own name. It is nil where there is none.
func (s *snapshot) route(name string) (*route, string) {
	for i := range s.routes {
		if r := &s.routes[i]; strings.HasPrefix(name, r.prefix) {
			return r, name[len(r.prefix):]
		}
	}
	if id, ok := s.catalog.View().Owner(name); ok {
		return s.byID[id], name
	}
	return nil, ""
}
