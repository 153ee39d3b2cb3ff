package gateway

import (
	"slices"

	"mcp-gateway/gateway/config"
	"mcp-gateway/redact"
)

// A setting is one that a reload may have given another value.
type setting struct {
	name string
	same bool
}

// changedSettings names the settings that have other values and need no other engine; those of an upstream as id.setting.
func changedSettings(a, b *config.Config) []string {
	names := changed(nil, "", []setting{
		{"listen", a.Listen == b.Listen},
		{"path", a.Path == b.Path},
		{"hosts", slices.Equal(a.Hosts, b.Hosts)},
		{"origins", slices.Equal(a.Origins, b.Origins)},
		{"insecure", a.Insecure == b.Insecure},
		{"callers", a.Callers.Equal(b.Callers)},
		{"start_grace", a.StartGrace == b.StartGrace},
		{"shutdown_delay", a.ShutdownDelay == b.ShutdownDelay},
		{"shutdown_timeout", a.ShutdownTimeout == b.ShutdownTimeout},
		{"keepalive", a.Keepalive == b.Keepalive},
		{"stream_after", a.StreamAfter == b.StreamAfter},
		{"watch", a.Watch == b.Watch},
		{"log_level", a.LogLevel == b.LogLevel},
		{"pprof", a.Pprof == b.Pprof},
		{"admin_key", a.AdminKey.Equal(b.AdminKey)},
		{"seal.keys", slices.EqualFunc(a.SealKeys, b.SealKeys, sameSecret)},
	})
	for _, now := range b.Upstreams {
		i := slices.IndexFunc(a.Upstreams, func(u config.Upstream) bool { return u.ID == now.ID })
		if i < 0 {
			continue
		}
		was := a.Upstreams[i]
		names = changed(names, now.ID+".", []setting{
			{"prefix", was.Prefix == now.Prefix},
			{"timeout", was.Timeout == now.Timeout},
			{"input_timeout", was.InputTimeout == now.InputTimeout},
			{"rounds", was.Rounds == now.Rounds},
			{"poll", was.Poll == now.Poll},
			{"required", was.Required == now.Required},
			{"tools.allow", slices.Equal(was.Tools.Allow, now.Tools.Allow) && (was.Tools.Allow == nil) == (now.Tools.Allow == nil)},
			{"tools.deny", slices.Equal(was.Tools.Deny, now.Tools.Deny)},
			{"tools.timeouts", slices.Equal(was.ToolTimeouts, now.ToolTimeouts)},
			{"forward_headers", slices.Equal(was.ForwardHeaders, now.ForwardHeaders)},
			{"redact.results", was.ResultsVerbatim == now.ResultsVerbatim},
		})
	}
	return names
}

func changed(names []string, prefix string, settings []setting) []string {
	for _, s := range settings {
		if !s.same {
			names = append(names, prefix+s.name)
		}
	}
	return names
}

func sameSecret(a, b redact.Secret) bool { return a.Reveal() == b.Reveal() }
