package front

import (
	"net/http"
	"net/netip"
	"strings"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// checkOrigin keeps out web pages that nobody listed. A page that has its own name point at this machine (DNS
// rebinding) is told by the Host it sends, and every page by its Origin. Pages of the listed origins get CORS.
func checkOrigin(loopback bool, hosts, origins []string) func(http.Handler) http.Handler {
	allowedHosts := newHostSet(loopback, hosts)
	allowedOrigins := make(map[string]struct{}, len(origins))
	for _, o := range origins {
		if o != "null" {
			allowedOrigins[plainOrigin(o)] = struct{}{}
		}
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !allowedHosts.allows(r.Host) {
				refuse(w, http.StatusForbidden, nil, fault(wire.CodeInvalidRequest, "this Host is not served here; whoever runs the gateway can list it under hosts"))
				return
			}
			h := w.Header()
			if len(allowedOrigins) > 0 {
				// A cache must not give one origin the answer for another, nor for none.
				h["Vary"] = []string{"Origin"}
			}
			sent := r.Header["Origin"]
			if len(sent) == 0 {
				next.ServeHTTP(w, r)
				return
			}
			if _, ok := allowedOrigins[plainOrigin(sent[0])]; !ok || len(sent) > 1 {
				refuse(w, http.StatusForbidden, nil, fault(wire.CodeInvalidRequest, "this Origin may not ask here; whoever runs the gateway can list it under origins"))
				return
			}
			h["Access-Control-Allow-Origin"] = sent
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				preflight(h, r.Header)
				w.WriteHeader(http.StatusNoContent)
				return
			}
			h["Access-Control-Expose-Headers"] = []string{"Mcp-Session-Id, WWW-Authenticate"}
			next.ServeHTTP(w, r)
		})
	}
}

// preflight says what a page of a listed origin may send.
func preflight(h, asked http.Header) {
	h["Vary"] = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
	h["Access-Control-Allow-Methods"] = []string{"POST, GET, DELETE"}
	h["Access-Control-Max-Age"] = []string{"600"}
	allowed := "Authorization, Content-Type, Accept, Last-Event-ID, " + mcp.HeaderVersion + ", " + mcp.HeaderSession + ", " +
		mcp.HeaderMethod + ", " + mcp.HeaderName
	for _, line := range asked["Access-Control-Request-Headers"] {
		for name := range strings.SplitSeq(line, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			// Which arguments ride in headers depends on the tool, so that these cannot be listed.
			if strings.HasPrefix(name, mcp.HeaderParamPrefix) && isToken(name) {
				allowed += ", " + name
			}
		}
	}
	h["Access-Control-Allow-Headers"] = []string{allowed}
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// plainOrigin writes an origin as browsers do: lower case, without the scheme's own port.
func plainOrigin(origin string) string {
	origin = strings.ToLower(origin)
	if strings.HasPrefix(origin, "https:") {
		return strings.TrimSuffix(origin, ":443")
	}
	if strings.HasPrefix(origin, "http:") {
		return strings.TrimSuffix(origin, ":80")
	}
	return origin
}

// A hostSet says which Host headers pass.
type hostSet struct {
	loopback bool
	listed   map[string]struct{} // name or name:port
}

func newHostSet(loopback bool, hosts []string) hostSet {
	s := hostSet{loopback: loopback, listed: make(map[string]struct{}, len(hosts))}
	for _, h := range hosts {
		if name, port, ok := splitHost(h); ok {
			s.listed[joinHost(name, port)] = struct{}{}
		}
	}
	return s
}

func (s hostSet) allows(host string) bool {
	if !s.loopback && len(s.listed) == 0 {
		return true
	}
	name, port, ok := splitHost(host)
	if !ok {
		return false
	}
	if s.loopback && isLoopback(name) {
		return true
	}
	if _, ok := s.listed[name]; ok {
		return true
	}
	_, ok = s.listed[joinHost(name, port)]
	return ok
}

func joinHost(name, port string) string {
	if port == "" {
		return name
	}
	return name + ":" + port
}

// splitHost takes a Host apart, and its name in lower case without a trailing dot or brackets. It reports false for
// one that is no host.
func splitHost(host string) (name, port string, ok bool) {
	host = strings.ToLower(host)
	if rest, bracketed := strings.CutPrefix(host, "["); bracketed {
		name, rest, ok = strings.Cut(rest, "]")
		if addr, err := netip.ParseAddr(name); !ok || err != nil || !addr.Is6() {
			return "", "", false
		}
		if rest == "" {
			return name, "", true
		}
		port, ok = strings.CutPrefix(rest, ":")
		return name, port, ok && isPort(port)
	}
	name, port, found := strings.Cut(host, ":")
	name = strings.TrimSuffix(name, ".")
	return name, port, name != "" && (!found || isPort(port))
}

func isPort(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && len(s) <= 5
}

func isLoopback(name string) bool {
	if name == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Zone() == "" && addr.IsLoopback()
}
