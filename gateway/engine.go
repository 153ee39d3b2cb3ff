package gateway

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"mcp-gateway/auth"
	"mcp-gateway/gateway/config"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/legacy"
	"mcp-gateway/upstream/modern"
)

// pipeConcurrency is how many calls one message pipe carries at a time.
const pipeConcurrency = 32

// An engine is an upstream that has to be started.
type engine interface {
	upstream.Upstream
	Start()
}

type engineMaker func(config.Upstream, *slog.Logger, *redact.Scrubber) (engine, error)

// newEngine is the one place that picks an engine and its transport.
func newEngine(u config.Upstream, log *slog.Logger, scrubber *redact.Scrubber) (engine, error) {
	switch u.Engine {
	case config.ModernStdio, config.ModernHTTP:
		cfg := modern.Config{
			ID: u.ID, Version: Version, StartTimeout: u.StartTimeout, ReconnectMin: u.Reconnect.Min, ReconnectMax: u.Reconnect.Max,
			Concurrency: pipeConcurrency, Log: log, Scrub: scrubber.String,
		}
		if u.Engine == config.ModernStdio {
			cfg.Stdio = childOf(u)
			return modern.New(cfg), nil
		}
		remote, err := remoteOf(u)
		if err != nil {
			return nil, err
		}
		cfg.URL, cfg.Header, cfg.Credential = remote.URL, remote.Header, remote.Credential
		return modern.New(cfg), nil
	}
	cfg := legacy.Config{
		ID: u.ID, Revision: u.Revision, Version: Version,
		StartTimeout: u.StartTimeout, ReconnectMin: u.Reconnect.Min, ReconnectMax: u.Reconnect.Max,
		Concurrency: pipeConcurrency, Log: log, Scrub: scrubber.String,
	}
	if u.Engine == config.LegacyStdio {
		cfg.Stdio = childOf(u)
		return legacy.New(cfg), nil
	}
	remote, err := remoteOf(u)
	if err != nil {
		return nil, err
	}
	switch u.Engine {
	case config.LegacyWebSocket:
		cfg.WebSocket = remote
	case config.LegacySSE:
		cfg.SSE = remote
	default:
		cfg.HTTP = remote
	}
	return legacy.New(cfg), nil
}

// childOf is the server that u starts.
func childOf(u config.Upstream) *legacy.Stdio {
	child := &legacy.Stdio{Command: u.Command.Reveal(), InheritEnv: u.InheritEnv, Dir: u.Cwd}
	for _, arg := range u.Args {
		child.Args = append(child.Args, arg.Reveal())
	}
	for _, v := range u.Env {
		child.Env = append(child.Env, v.Name+"="+v.Value.Reveal())
	}
	return child
}

// remoteOf is the server that u reaches.
func remoteOf(u config.Upstream) (*legacy.Remote, error) {
	target, err := url.Parse(u.URL.Reveal())
	if err != nil {
		// The error of the parser quotes the url, which may hold a credential.
		return nil, fmt.Errorf("building upstream %q: its url cannot be read", u.ID)
	}
	remote := &legacy.Remote{URL: target, Header: http.Header{}}
	for _, h := range u.Headers {
		remote.Header.Add(h.Name, h.Value.Reveal())
	}
	if u.Credential != nil {
		remote.Credential = auth.NewBearer(u.Credential.Bearer)
	}
	return remote, nil
}
