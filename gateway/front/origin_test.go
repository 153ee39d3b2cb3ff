package front

import (
	"net/http"
	"strings"
	"testing"

	"mcp-gateway/internal/mcp"
)

func TestHostsAndOrigins(t *testing.T) {
	const listed = "https://app.example"
	loopback := Config{Loopback: true, Origins: []string{listed, "http://Plain.example:80", "null"}}
	open := Config{}
	named := Config{Hosts: []string{"gw.example", "other.example:8443"}}
	behind := Config{Loopback: true, Hosts: []string{"gw.example"}}
	tests := []struct {
		name    string
		cfg     Config
		host    string
		origins []string
		want    int
	}{
		{"loopback address", loopback, "127.0.0.1:8080", nil, 200},
		{"the whole block", loopback, "127.8.9.10", nil, 200},
		{"IPv6", loopback, "[::1]:8080", nil, 200},
		{"IPv4-mapped", loopback, "[::ffff:127.0.0.1]:1", nil, 200},
		{"localhost", loopback, "localhost:8080", nil, 200},
		{"upper case", loopback, "LOCALHOST", nil, 200},
		{"trailing dot", loopback, "localhost.:8080", nil, 200},
		{"two trailing dots", loopback, "localhost..", nil, 403},
		// DNS rebinding: the page's own name resolves to this machine, and its origin is its own host.
		{"rebinding", loopback, "evil.example:8080", []string{"http://evil.example:8080"}, 403},
		{"rebinding, GET-like without an origin", loopback, "evil.example", nil, 403},
		{"looks like loopback", loopback, "127.0.0.1.evil.example", nil, 403},
		{"subdomain of localhost", loopback, "evil.localhost", nil, 403},
		{"localhost as a label", loopback, "localhost.evil.example", nil, 403},
		{"unspecified address", loopback, "0.0.0.0:8080", nil, 403},
		{"private address", loopback, "192.168.0.1", nil, 403},
		{"mapped, not loopback", loopback, "[::ffff:10.0.0.1]", nil, 403},
		{"brackets around a name", loopback, "[localhost]", nil, 403},
		{"foreign origin", loopback, "localhost", []string{"http://evil.example"}, 403},
		{"own origin, not listed", loopback, "localhost:8080", []string{"http://localhost:8080"}, 403},
		{"null, even where it is listed", loopback, "localhost", []string{"null"}, 403},
		{"empty origin", loopback, "localhost", []string{""}, 403},
		{"listed origin", loopback, "localhost", []string{listed}, 200},
		{"listed origin, its default port", loopback, "localhost", []string{"https://APP.example:443"}, 200},
		{"listed origin, default port of the list", loopback, "localhost", []string{"http://plain.example"}, 200},
		{"listed origin, other port", loopback, "localhost", []string{listed + ":8443"}, 403},
		{"listed origin, other scheme", loopback, "localhost", []string{"http://app.example"}, 403},
		{"listed origin as a prefix", loopback, "localhost", []string{listed + ".evil.example"}, 403},
		{"listed origin twice", loopback, "localhost", []string{listed, listed}, 403},
		{"two origins in one header", loopback, "localhost", []string{listed + " http://evil.example"}, 403},
		{"listed origin on a foreign host", loopback, "evil.example", []string{listed}, 403},
		{"any host elsewhere", open, "what.ever:1", nil, 200},
		{"any host elsewhere, but no origin", open, "what.ever", []string{"http://what.ever"}, 403},
		{"named host", named, "GW.example.:9000", nil, 200},
		{"named host and port", named, "other.example:8443", nil, 200},
		{"named host, other port", named, "other.example:1", nil, 403},
		{"named host, no port", named, "other.example", nil, 403},
		{"another host", named, "localhost", nil, 403},
		{"on loopback behind a proxy that keeps the name", behind, "gw.example", nil, 200},
		{"on loopback behind a proxy, itself", behind, "localhost", nil, 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, server := start(t, tt.cfg)
			h := header("Host", tt.host)
			if tt.origins != nil {
				h["Origin"] = tt.origins
			}
			got := send(t, http.MethodPost, server.URL+"/mcp", h, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			if got.status != tt.want {
				t.Errorf("status %d, want %d: %s", got.status, tt.want, got.body)
			}
			if tt.want == http.StatusForbidden && (!strings.Contains(got.body, `"error"`) || strings.Contains(got.body, `"id"`)) {
				t.Errorf("body %q, want a JSON-RPC error without id", got.body)
			}
		})
	}
}

func TestCORS(t *testing.T) {
	const page = "https://app.example"
	asked := 0
	_, server := start(t, Config{Origins: []string{page}, Authenticate: func(*http.Request) (Caller, error) {
		asked++
		return Caller{Name: "a"}, nil
	}})
	got := send(t, http.MethodOptions, server.URL+"/mcp", http.Header{
		"Origin": {page}, "Access-Control-Request-Method": {"POST"},
		"Access-Control-Request-Headers": {"authorization, mcp-param-Region,x-evil,Mcp-Param-A(b,mcp-param-"},
	}, "")
	got.want(t, http.StatusNoContent)
	if asked != 0 {
		t.Error("a preflight, which carries no key, was asked for one")
	}
	for key, want := range map[string]string{
		"Access-Control-Allow-Origin":  page,
		"Access-Control-Allow-Methods": "POST, GET, DELETE",
		"Access-Control-Allow-Headers": "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Mcp-Param-Region, Mcp-Param-",
		"Vary":                         "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
	} {
		if got := got.header.Get(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	got = send(t, http.MethodPost, server.URL+"/mcp", modernHeader(mcp.MethodToolsList, "", "Origin", page), `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+testMeta+`}}`)
	got.want(t, http.StatusOK)
	if got.header.Get("Access-Control-Allow-Origin") != page || got.header.Get("Access-Control-Expose-Headers") != "Mcp-Session-Id, WWW-Authenticate" || got.header.Get("Vary") != "Origin" {
		t.Errorf("headers %v", got.header)
	}
	got = send(t, http.MethodPost, server.URL+"/mcp", header(), `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if got.header.Get("Vary") != "Origin" || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without an Origin: headers %v", got.header)
	}
	got = send(t, http.MethodOptions, server.URL+"/mcp", http.Header{"Origin": {"https://evil.example"}, "Access-Control-Request-Method": {"POST"}}, "")
	got.want(t, http.StatusForbidden)
}

func FuzzLoopbackHost(f *testing.F) {
	for _, seed := range []string{"localhost", "127.0.0.1:1", "[::1]", "localhost.", "[::1%25lo]", "a:b:c", ""} {
		f.Add(seed)
	}
	set := newHostSet(true, nil)
	f.Fuzz(func(t *testing.T, host string) {
		if !set.allows(host) {
			return
		}
		name := strings.ToLower(host)
		if !strings.HasPrefix(name, "localhost") && !strings.HasPrefix(name, "127.") && !strings.HasPrefix(name, "[") {
			t.Errorf("%q passes as a loopback host", host)
		}
	})
}
