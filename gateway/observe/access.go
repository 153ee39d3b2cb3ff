package observe

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// adminHeader must be in each POST, with any value: a web page can send it nowhere without asking first.
const adminHeader = "X-Mcp-Gateway-Admin"

// An Access is who may ask an admin listener for more than whether the gateway is alive and ready, and its metrics.
type Access struct {
	Loopback bool                     // the listener is on a loopback address, so whoever reaches it may
	Key      func(*http.Request) bool // whoever's request it takes may, wherever the listener is; nil is nobody
	Hosts    []string                 // names, or name:port, that a Host may have; on loopback beside the loopback names, elsewhere none is any
	Pprof    bool                     // profiles are served as well
}

const wrongHost = "this Host may not ask: name it in hosts, or ask by the address itself"

// guard lets through to next who may ask for everything.
func (a Access) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case a.Loopback:
		case a.Key == nil:
			refuse(w, http.StatusForbidden, "this is served on a loopback address, or to whoever shows the key: set admin to 127.0.0.1:PORT, or set admin_key")
			return
		case !a.Key(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "this needs the key of admin_key, as Authorization: Bearer")
			return
		}
		if !a.allowsHost(r.Host) {
			refuse(w, http.StatusForbidden, wrongHost)
			return
		}
		if r.Method == http.MethodPost && r.Header.Get(adminHeader) == "" {
			refuse(w, http.StatusForbidden, "this needs the header "+adminHeader+", with any value, so that no web page can ask for it")
			return
		}
		next(w, r)
	}
}

// allowsHost keeps out a web page whose own name was made to lead here: its requests carry that name.
func (a Access) allowsHost(host string) bool {
	host = strings.ToLower(host)
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	name = strings.TrimSuffix(name, ".")
	if a.Loopback && loopback(name) || !a.Loopback && len(a.Hosts) == 0 {
		return true
	}
	return slices.ContainsFunc(a.Hosts, func(listed string) bool {
		return strings.EqualFold(listed, name) || strings.EqualFold(listed, host)
	})
}

func loopback(name string) bool {
	addr, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && addr.IsLoopback()
}
