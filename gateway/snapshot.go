package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"strings"
	"time"

	"mcp-gateway/gateway/catalog"
	"mcp-gateway/gateway/config"
	"mcp-gateway/policy"
	"mcp-gateway/upstream"
)

// A snapshot is all that one request needs to know of the configuration. It is immutable.
type snapshot struct {
	cfg     *config.Config
	members []*member // in config order
	forget  func()    // takes the configuration's secrets out of the live set
	policy  *policy.Policy
	catalog *catalog.Catalog
	routes  []route // prefixes never meet, so at most one of them begins a name
	byID    map[string]*route
}

// member is the upstream of that id, nil where there is none.
func (s *snapshot) member(id string) *member {
	for _, m := range s.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

// A route leads to one upstream.
type route struct {
	id, prefix   string
	upstream     upstream.Upstream
	timeout      time.Duration        // of a whole call
	timeouts     []config.ToolTimeout // the first that matches counts in place of timeout
	inputTimeout time.Duration        // of a round that waits for a person
	rounds       int                  // of one call
	forward      []forwarded
	verbatim     bool              // what the server says passes as it is
	identity     [sha256.Size]byte // of the server that the upstream's id stands for
}

// A forwarded header goes from the client's request to the upstream.
type forwarded struct {
	name     string // canonical
	required bool
}

func newRoute(u config.Upstream, e upstream.Upstream) route {
	r := route{
		id: u.ID, prefix: u.Prefix, upstream: e, timeout: u.Timeout, timeouts: u.ToolTimeouts,
		inputTimeout: u.InputTimeout, rounds: u.Rounds, verbatim: u.ResultsVerbatim, identity: identity(u),
	}
	for _, h := range u.ForwardHeaders {
		r.forward = append(r.forward, forwarded{http.CanonicalHeaderKey(h.Name), h.Required})
	}
	return r
}

// identity tells one server from another: by its url, or by its command and arguments.
func identity(u config.Upstream) [sha256.Size]byte {
	text := appendField(appendField(nil, u.URL.Reveal()), u.Command.Reveal())
	for _, arg := range u.Args {
		text = appendField(text, arg.Reveal())
	}
	return sha256.Sum256(text)
}

// appendField appends s so that no two lists of fields have the same text.
func appendField(dst []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(len(s))), s...)
}

// timeoutOf is how long a whole call of the tool, named in the upstream's own words, may take.
func (r *route) timeoutOf(tool string) time.Duration {
	for i := range r.timeouts {
		if t := &r.timeouts[i]; policy.Match(t.Pattern, tool) {
			return t.Timeout
		}
	}
	return r.timeout
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
