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

// newEngine is the one place that picks an engine.
func newEngine(u config.Upstream, log *slog.Logger, scrubber *redact.Scrubber) (engine, error) {
	switch u.Engine {
	case config.LegacyStdio:
		cfg := legacy.Config{
			ID: u.ID, Command: u.Command.Reveal(), Dir: u.Cwd, Revision: u.Revision, Version: Version,
			StartTimeout: u.StartTimeout, ReconnectMin: u.Reconnect.Min, ReconnectMax: u.Reconnect.Max,
			Concurrency: pipeConcurrency, Log: log, Scrub: scrubber.String,
		}
		for _, arg := range u.Args {
			cfg.Args = append(cfg.Args, arg.Reveal())
		}
		var set []string
		for _, v := range u.Env {
			set = append(set, v.Name+"="+v.Value.Reveal())
		}
		cfg.Env, cfg.InheritEnv = set, u.InheritEnv
		return legacy.New(cfg), nil
	case config.ModernHTTP:
		target, err := url.Parse(u.URL.Reveal())
		if err != nil {
			return nil, fmt.Errorf("building upstream %q: its url cannot be read", u.ID)
		}
		cfg := modern.Config{
			ID: u.ID, URL: target, Header: http.Header{}, Version: Version,
			StartTimeout: u.StartTimeout, ReconnectMin: u.Reconnect.Min, ReconnectMax: u.Reconnect.Max, Log: log,
		}
		for _, h := range u.Headers {
			cfg.Header.Add(h.Name, h.Value.Reveal())
		}
		if u.Credential != nil {
			cfg.Credential = auth.NewBearer(u.Credential.Bearer)
		}
		return modern.New(cfg), nil
	}
	return nil, fmt.Errorf("building upstream %q: this version has no engine for %s", u.ID, u.Engine)
}
