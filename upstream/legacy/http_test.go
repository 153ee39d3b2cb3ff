package legacy

import (
	"net/url"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

func TestContractOverHTTP(t *testing.T) {
	for name, events := range map[string]bool{"JSON": false, "SSE": true} {
		t.Run(name, func(t *testing.T) {
			upstreamtest.Run(t, upstreamtest.Transport{
				Revision: mcp.LegacyLatest, Alone: true,
				Start: func(t *testing.T, h upstreamtest.Handler) upstream.Upstream {
					u, _ := overHTTP(t, upstreamtest.Streamable(t, events, h).URL, func(c *Config) { c.HTTP.Credential = new(upstreamtest.Credential) })
					return u
				},
				Mute: func(t *testing.T) (upstream.Upstream, <-chan struct{}) {
					address, taken := upstreamtest.Mute(t)
					u, _ := overHTTP(t, "http://"+address)
					return u, taken
				},
			})
		})
	}
}

// overHTTP is an upstream at address that has begun to connect, and is closed when the test ends.
func overHTTP(t *testing.T, address string, change ...func(*Config)) (*Upstream, *logged) {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	cfg, out := config(t)
	cfg.Stdio, cfg.HTTP = nil, &Remote{URL: at}
	for _, f := range change {
		f(&cfg)
	}
	return begin(t, cfg), out
}
