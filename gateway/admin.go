package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"mcp-gateway/auth"
	"mcp-gateway/gateway/config"
	"mcp-gateway/gateway/observe"
	"mcp-gateway/redact"
)

// observerConfig is what the observer asks of the gateway.
func (g *Gateway) observerConfig() observe.Config {
	return observe.Config{
		Log: g.log, Scrubber: g.scrubber, Version: Version,
		Upstreams: g.upstreams, Effective: g.effective, Ready: g.ready,
		Reload: func(context.Context) ([]byte, error) {
			diff, err := g.Reload()
			if err != nil {
				return nil, err
			}
			return json.Marshal(diff)
		},
		Restart: func(_ context.Context, id string) error {
			_, err := g.Reload(id)
			if errors.Is(err, ErrUnknownUpstream) {
				return observe.ErrUnknown
			}
			return err
		},
		Dropped:    func() uint64 { return g.sink.Dropped() + g.lines.Dropped() },
		Streams:    func() int { return g.front.Load().Listening() },
		Redactions: g.scrubber.Replaced,
	}
}

// ready is why no requests are taken, nil where they are.
func (g *Gateway) ready() error {
	switch {
	case g.stage.Load() != serving:
		return errStopping
	case !g.opened.Load():
		return errors.New("the gateway is starting")
	}
	return nil
}

// upstreams is what there is to say of each upstream now.
func (g *Gateway) upstreams() []observe.Upstream {
	snap := g.snapshot.Load()
	reports := snap.catalog.Reports()
	list := make([]observe.Upstream, len(snap.members))
	for i, m := range snap.members {
		u, r := snap.cfg.Upstreams[i], reports[i]
		status, _ := m.Status()
		load := m.Load()
		o := observe.Upstream{
			ID: u.ID, Prefix: u.Prefix, Transport: transportOf(u.Engine), State: string(status.State), Revision: status.Revision,
			Since: status.Since, Until: status.Until, Reason: r.Reason, Required: u.Required, WasLive: m.wasLive(),
			Sessions: status.Session, Failures: status.Failures, Looping: status.Looping,
			Tools: r.Shown, Denied: r.Denied, Invalid: r.Invalid, InFlight: load.InFlight, Waiting: load.Waiting, Shed: load.Shed,
		}
		if err := errors.Join(status.Err, r.Err); err != nil {
			o.LastError = err.Error()
		}
		if c, ok := m.engine.(*credentialed); ok {
			o.Refreshes, o.RefreshFailures = c.credential.Counts()
		}
		list[i] = o
	}
	return list
}

func transportOf(e config.Engine) string {
	switch e {
	case config.LegacyStdio, config.ModernStdio:
		return "stdio"
	case config.LegacyWebSocket:
		return "websocket"
	case config.LegacySSE:
		return "sse"
	}
	return "http"
}

// effective is the configuration in force, without what may be a secret.
func (g *Gateway) effective() []byte {
	cfg := g.snapshot.Load().cfg
	upstreams := make([]map[string]any, len(cfg.Upstreams))
	for i, u := range cfg.Upstreams {
		upstreams[i] = g.effectiveUpstream(u)
	}
	text, err := json.Marshal(map[string]any{
		"hash": cfg.Hash, "listen": cfg.Listen, "path": cfg.Path, "hosts": cfg.Hosts, "origins": cfg.Origins, "insecure": cfg.Insecure,
		"callers": cfg.Callers.Names(), "startGrace": cfg.StartGrace.String(), "shutdownDelay": cfg.ShutdownDelay.String(),
		"shutdownTimeout": cfg.ShutdownTimeout.String(), "streamAfter": cfg.StreamAfter.String(), "keepalive": cfg.Keepalive.String(),
		"watch": cfg.Watch, "logLevel": g.level.Level().String(), "admin": cfg.Admin, "stateDir": cfg.StateDir, "sealKeys": len(cfg.SealKeys),
		"upstreams": upstreams,
	})
	if err != nil {
		return []byte(`null`) // it is made of texts and numbers alone
	}
	return text
}

func (g *Gateway) effectiveUpstream(u config.Upstream) map[string]any {
	shown := map[string]any{
		"id": u.ID, "prefix": u.Prefix, "engine": u.Engine.String(), "required": u.Required, "timeout": u.Timeout.String(),
		"inputTimeout": u.InputTimeout.String(), "rounds": u.Rounds, "startTimeout": u.StartTimeout.String(),
		"reconnect":   map[string]string{"min": u.Reconnect.Min.String(), "max": u.Reconnect.Max.String()},
		"concurrency": u.Concurrency, "queue": u.Queue, "poll": u.Poll.String(), "redactResults": !u.ResultsVerbatim,
		"allow": u.Tools.Allow, "deny": u.Tools.Deny, "revision": u.Revision,
	}
	if u.Engine.Stdio() {
		args := make([]string, len(u.Args))
		for i, arg := range u.Args {
			args[i] = g.scrubber.String(arg.Reveal())
		}
		names := make([]string, len(u.Env))
		for i, v := range u.Env {
			names[i] = v.Name
		}
		shown["command"], shown["args"], shown["env"], shown["inheritEnv"], shown["cwd"] = g.scrubber.String(u.Command.Reveal()), args, names, u.InheritEnv, u.Cwd
		return shown
	}
	names := make([]string, len(u.Headers))
	for i, h := range u.Headers {
		names[i] = h.Name
	}
	forwarded := make([]string, len(u.ForwardHeaders))
	for i, h := range u.ForwardHeaders {
		forwarded[i] = h.Name
	}
	shown["url"], shown["headers"], shown["forwardHeaders"], shown["credential"] = redact.URL(u.URL.Reveal()), names, forwarded, credentialKind(u.Credential)
	return shown
}

// credentialKind is where a credential comes from; "" is none.
func credentialKind(c *config.Credential) string {
	switch {
	case c == nil:
		return ""
	case c.BearerFile != "":
		return "file"
	case c.Command != nil:
		return "command"
	case c.OAuth2 != nil:
		return "oauth2"
	}
	return "bearer"
}

// openAdmin serves whoever runs the gateway, until the end. It does nothing without a listener.
func (g *Gateway) openAdmin(ln net.Listener) (end func()) {
	if ln == nil {
		return func() {}
	}
	g.admit(g.snapshot.Load().cfg)
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			(*g.admin.Load()).ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			g.log.Error("the admin listener is gone", "error", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		<-served
	}
}

// admit lets in to the admin listener whom the configuration does.
func (g *Gateway) admit(cfg *config.Config) {
	access := observe.Access{Loopback: config.Loopback(cfg.Admin), Hosts: cfg.Hosts, Pprof: cfg.Pprof}
	if !cfg.AdminKey.None() {
		access.Key = keyOf(cfg.AdminKey)
	}
	handler := g.observer.Handler(access)
	g.admin.Store(&handler)
}

func keyOf(callers auth.Callers) func(*http.Request) bool {
	return func(r *http.Request) bool {
		_, err := callers.Authenticate(r)
		return err == nil
	}
}
