package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"mcp-gateway/auth"
	"mcp-gateway/gateway/config"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/legacy"
	"mcp-gateway/upstream/modern"
)

// An engine is an upstream that has to be started.
type engine interface {
	upstream.Upstream
	// Start begins to connect, and Refuse is in its place where another process holds the upstream's, as err says.
	Start()
	Refuse(err error)
	// Quiesce begins no connection any more. The calls on the one that there is go on.
	Quiesce()
	Load() upstream.Load
}

// parts are what every engine is made with.
type parts struct {
	log      *slog.Logger
	scrubber *redact.Scrubber
	stateDir string
	stops    bool // a server that works is ended for it, so that what it needs is looked for before

	// For who watches a connect: what sends HTTP in place of the engine's own, and what is told of each process that was started.
	transport http.RoundTripper
	started   func(pid int)
}

type engineMaker func(config.Upstream, parts) (engine, error)

// newEngine is the one place that picks an engine and its transport.
func newEngine(u config.Upstream, with parts) (engine, error) {
	if u.Engine.Stdio() {
		if with.stops {
			if err := findable(u); err != nil {
				return nil, fmt.Errorf("nothing is stopped for upstream %q, which could not be started: %w", u.ID, err)
			}
		}
		return engineOf(u, with, nil), nil
	}
	target, err := url.Parse(u.URL.Reveal())
	if err != nil {
		// The error of the parser quotes the url, which may hold a credential.
		return nil, fmt.Errorf("building upstream %q: its url cannot be read", u.ID)
	}
	remote := &legacy.Remote{URL: target, Header: http.Header{}, Transport: with.transport}
	for _, h := range u.Headers {
		remote.Header.Add(h.Name, h.Value.Reveal())
	}
	if u.Credential == nil {
		return engineOf(u, with, remote), nil
	}
	tokens := with.scrubber.Tokens()
	credential := credentialOf(u.ID, u.Credential, with, tokens)
	remote.Credential = credential
	return &credentialed{engineOf(u, with, remote), credential, tokens}, nil
}

func engineOf(u config.Upstream, with parts, remote *legacy.Remote) engine {
	switch u.Engine {
	case config.ModernStdio, config.ModernHTTP:
		cfg := modern.Config{
			ID: u.ID, Version: Version, StartTimeout: u.StartTimeout, ReconnectMin: u.Reconnect.Min, ReconnectMax: u.Reconnect.Max,
			Concurrency: u.Concurrency, Queue: u.Queue, Log: with.log, Scrub: with.scrubber.String,
		}
		if remote == nil {
			cfg.Stdio = childOf(u, with)
		} else {
			cfg.URL, cfg.Header, cfg.Credential, cfg.Transport = remote.URL, remote.Header, remote.Credential, remote.Transport
		}
		return modern.New(cfg)
	}
	cfg := legacy.Config{
		ID: u.ID, Revision: u.Revision, Version: Version,
		StartTimeout: u.StartTimeout, ReconnectMin: u.Reconnect.Min, ReconnectMax: u.Reconnect.Max,
		Concurrency: u.Concurrency, Queue: u.Queue, Log: with.log, Scrub: with.scrubber.String,
	}
	switch u.Engine {
	case config.LegacyStdio:
		cfg.Stdio = childOf(u, with)
	case config.LegacyWebSocket:
		cfg.WebSocket = remote
	case config.LegacySSE:
		cfg.SSE = remote
	default:
		cfg.HTTP = remote
	}
	return legacy.New(cfg)
}

// A credentialed engine ends with the source of what it shows its server.
type credentialed struct {
	engine
	credential *auth.Credential
	tokens     *redact.Tokens
}

// Close ends the source first: what it has still signs, and nothing waits for what it has not.
func (c *credentialed) Close() error {
	err := errors.Join(c.credential.Close(), c.engine.Close())
	if err == nil {
		c.tokens.Close()
	}
	return err
}

func credentialOf(id string, c *config.Credential, with parts, tokens *redact.Tokens) *auth.Credential {
	cfg := auth.Config{
		Bearer: c.Bearer, BearerFile: c.BearerFile, Command: c.Command, Query: c.Query,
		Known: tokens.Add, StateDir: with.stateDir, Log: with.log.With("upstream", id),
	}
	if c.BearerFile != "" {
		cfg.Bearer = redact.Secret{}
	}
	if o := c.OAuth2; o != nil {
		cfg.OAuth2 = &auth.OAuth2{
			TokenURL: o.TokenURL, ClientID: o.ClientID, ClientSecret: o.ClientSecret, RefreshToken: o.RefreshToken,
			Scopes: o.Scopes, Resource: o.Resource,
		}
	}
	return auth.New(cfg)
}

// findable is why the server that u starts cannot be, as far as that can be known without starting it.
func findable(u config.Upstream) error {
	path, err := childOf(u, parts{}).Find()
	if err != nil {
		return err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(u.Cwd, path)
	}
	_, err = os.Stat(path)
	return err
}

// childOf is the server that u starts.
func childOf(u config.Upstream, with parts) *legacy.Stdio {
	child := &legacy.Stdio{Command: u.Command.Reveal(), InheritEnv: u.InheritEnv, Dir: u.Cwd, Started: with.started}
	for _, arg := range u.Args {
		child.Args = append(child.Args, arg.Reveal())
	}
	for _, v := range u.Env {
		child.Env = append(child.Env, v.Name+"="+v.Value.Reveal())
	}
	return child
}
