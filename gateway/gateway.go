// Package gateway answers the requests of MCP clients by calling the upstream that each is for.
//
// [New] wires a checked configuration into a [Gateway], [Gateway.Run] serves it until its context ends, and drains. One request is
// read aloud in dispatch.go; outcome.go and words.go say what became of it. Nothing here knows the revision of a
// client or of a server: the fronts and the engines do.
package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcp-gateway/auth"
	"mcp-gateway/gateway/catalog"
	"mcp-gateway/gateway/config"
	"mcp-gateway/gateway/front"
	"mcp-gateway/gateway/observe"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/seal"
	"mcp-gateway/internal/wire"
	"mcp-gateway/policy"
	"mcp-gateway/redact"
)

// Version is the version of the program.
const Version = mcp.GatewayVersion

// Options are what a gateway takes from the program around it.
type Options struct {
	Log      io.Writer   // of the log's lines; a slow one loses lines and stops nothing
	LogJSON  bool        // one JSON object a line, else text
	LogLevel *slog.Level // in place of the configuration's; nil is that
	Banner   string      // for Status, when requests are about to be taken
	Status   io.Writer   // as Log is written; gets a line for each upstream when it has listed or failed, and at each change
	// Admin is where whoever runs the gateway reaches it, by the configuration's admin; nil is nowhere.
	Admin net.Listener
	// Load reads the configuration anew, for a reload, and gives its warnings as well. Nil makes reloads fail.
	Load func() (*config.Config, []config.Problem, error)
}

// A Gateway serves one configuration at a time.
type Gateway struct {
	opts       Options
	makeEngine engineMaker
	scrubber   *redact.Scrubber // knows the configuration's secrets
	sink       *observe.Sink    // of the log
	lines      *observe.Sink    // of Options.Status
	log        *slog.Logger
	level      slog.LevelVar // of log
	ring       *seal.Ring
	serverInfo []byte
	observer   *observe.Observer
	snapshot   atomic.Pointer[snapshot]
	front      atomic.Pointer[front.Front]
	stage      atomic.Int32 // of the way to the end
	opened     atomic.Bool  // requests have been taken
	admin      atomic.Pointer[http.Handler]
	read       atomic.Pointer[config.Reading] // for the last configuration, whether or not it is served

	life   context.Context // ends when the drain begins, and a reload with it
	end    context.CancelFunc
	wanted chan struct{} // capacity 1: a reload
	failed chan error    // capacity 1: why requests cannot come in any more

	reloading sync.Mutex         // one at a time; guards doors and leaving
	doors     []*door            // where requests come in, the last, and those before it that finish their calls; none before Run
	leaving   map[string]*member // by id: the last with a process that a reload has had no place for
	retiring  sync.WaitGroup     // what reloads have no place for

	mu   sync.Mutex           // guards held
	held map[string][]*member // by id: those whose processes could not be ended
}

// New builds a gateway. It starts no process and opens no connection; it may make the key file in the state directory.
func New(cfg *config.Config, opts Options) (*Gateway, error) { return assemble(cfg, opts, newEngine) }

// assemble is New with a choice of what makes the engines.
func assemble(cfg *config.Config, opts Options, makeEngine engineMaker) (*Gateway, error) {
	g := &Gateway{
		opts: opts, makeEngine: makeEngine, scrubber: redact.NewScrubber(), serverInfo: serverInfo(),
		wanted: make(chan struct{}, 1), failed: make(chan error, 1), leaving: map[string]*member{}, held: map[string][]*member{},
	}
	keys, keyErr, err := keysOf(cfg)
	if err == nil {
		g.learn(keys)
		g.ring, err = seal.NewRing(keys)
	}
	if err != nil {
		return nil, err
	}
	g.sink, g.lines = observe.NewSink(opts.Log), observe.NewSink(opts.Status)
	g.setLevel(cfg)
	g.log = observe.NewLogger(g.sink, opts.LogJSON, &g.level, g.scrubber)
	g.observer = observe.New(g.observerConfig())
	g.life, g.end = context.WithCancel(context.Background())
	if keyErr != nil {
		g.log.Warn("sessions and cursors will not outlive this process, and no other replica can take them", "error", keyErr)
	}
	snap, err := g.build(cfg, nil, nil)
	if err != nil {
		return nil, errors.Join(err, g.closeLog())
	}
	g.snapshot.Store(snap)
	g.read.Store(&cfg.Read)
	g.front.Store(front.New(g.frontConfig(cfg)))
	g.observer.Reloaded(time.Now(), cfg.Hash, nil)
	return g, nil
}

func (g *Gateway) setLevel(cfg *config.Config) {
	var level slog.Level
	if g.opts.LogLevel != nil {
		level = *g.opts.LogLevel
	} else if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		level = slog.LevelInfo // of a configuration that was not loaded
	}
	g.level.Set(level)
}

// build makes what the configuration wants, and starts nothing. An upstream whose settings are the same as before is taken over
// from there, unless it has given up or its id is among anew.
func (g *Gateway) build(cfg *config.Config, before *snapshot, anew []string) (*snapshot, error) {
	next := &snapshot{cfg: cfg, byID: map[string]*route{}, forget: g.scrubber.Learn(cfg.Secrets()...)}
	tools := map[string]policy.Tools{}
	var sources []catalog.Source
	for _, u := range cfg.Upstreams {
		var m *member
		if before != nil {
			m = before.member(u.ID)
		}
		if m == nil || m.spec != spec(u) || m.givenUp() || slices.Contains(anew, u.ID) {
			e, err := g.makeEngine(u, parts{log: g.log, scrubber: g.scrubber, stateDir: cfg.StateDir, stops: m != nil && m.child && m.live()})
			if err != nil {
				g.discard(before, next)
				return nil, err
			}
			heir := newMember(u, e)
			heir.lived = m != nil && m.wasLive()
			m = heir
			g.log.Debug("upstream configured", "upstream", u.ID, "engine", u.Engine, "prefix", u.Prefix, "url", shown(u.URL))
		}
		tools[u.ID] = u.Tools
		sources = append(sources, catalog.Source{
			ID: u.ID, Prefix: u.Prefix, Upstream: m.engine, OverHTTP: !u.Engine.Stdio(), Verbatim: u.ResultsVerbatim,
			Timeout: u.Timeout, Poll: u.Poll,
		})
		next.members = append(next.members, m)
		next.routes = append(next.routes, newRoute(u, m))
	}
	for i := range next.routes {
		next.byID[next.routes[i].id] = &next.routes[i]
	}
	next.policy = policy.New(tools)
	wanted := catalog.Config{
		Sources: sources, Policy: next.policy, ServerInfo: g.serverInfo, Log: g.log,
		Redact: g.scrubber.Definition, Secrets: g.scrubber.Version,
		Changed: (&statusLines{w: g.lines, scrubber: g.scrubber}).report,
	}
	if before != nil {
		wanted.Before = before.catalog
	}
	next.catalog = catalog.New(wanted)
	return next, nil
}

// shown is a url for the log; "" for a server that is a command.
func shown(u redact.Secret) string {
	if u.IsZero() {
		return ""
	}
	return redact.URL(u.Reveal())
}

func (g *Gateway) frontConfig(cfg *config.Config) front.Config {
	return front.Config{
		Dispatch: g.dispatch,
		Ring:     g.ring,
		Authenticate: func(r *http.Request) (front.Caller, error) {
			caller, err := g.snapshot.Load().cfg.Callers.Authenticate(r)
			return front.Caller(caller), err
		},
		Admits: func(caller front.Caller) bool { return g.snapshot.Load().cfg.Callers.Has(auth.Caller(caller)) },
		Changes: func(caller string) (uint64, <-chan struct{}) {
			return g.snapshot.Load().catalog.Changes(caller)
		},
		Path: cfg.Path, Hosts: cfg.Hosts, Origins: cfg.Origins, Loopback: config.Loopback(cfg.Listen),
		Keepalive: cfg.Keepalive, StreamAfter: cfg.StreamAfter,
		ServerInfo: g.serverInfo, Log: g.log,
	}
}

func serverInfo() []byte {
	return wire.Object{}.AppendEdited(nil,
		wire.Edit{Name: "name", Value: wire.AppendString(nil, mcp.GatewayName)},
		wire.Edit{Name: "version", Value: wire.AppendString(nil, mcp.GatewayVersion)})
}

// keysOf are the configured keys, or the one that is kept in the state directory. Where that cannot be kept, keyErr says why.
func keysOf(cfg *config.Config) (keys [][]byte, keyErr, err error) {
	for _, secret := range cfg.SealKeys {
		key, err := base64.StdEncoding.DecodeString(secret.Reveal())
		if err != nil {
			return nil, nil, errors.New("reading seal.keys: one of them is not Base64; make them with `openssl rand -base64 32`")
		}
		keys = append(keys, key)
	}
	if keys == nil {
		key, keyErr := seal.StateKey(cfg.StateDir)
		if key == nil {
			return nil, nil, keyErr
		}
		return [][]byte{key}, keyErr, nil
	}
	return keys, nil, nil
}

// learn makes the keys known to what redacts, for good.
func (g *Gateway) learn(keys [][]byte) {
	for _, key := range keys {
		g.scrubber.Add(redact.NewSecret(base64.StdEncoding.EncodeToString(key)))
	}
}

// keys are those that the ring is to have. Without configured ones it keeps the key that it has.
func (g *Gateway) keys(cfg *config.Config) ([][]byte, error) {
	if len(cfg.SealKeys) == 0 && len(g.snapshot.Load().cfg.SealKeys) == 0 {
		return nil, nil
	}
	keys, _, err := keysOf(cfg)
	if err != nil {
		return nil, err
	}
	g.learn(keys)
	return keys, nil
}

// closeLog gives the last lines of the log a moment to be written, and no more: whoever reads them may be stuck.
func (g *Gateway) closeLog() error {
	late := time.After(time.Second)
	for _, sink := range []*observe.Sink{g.sink, g.lines} {
		select {
		case <-sink.Close():
		case <-late:
			return errors.New("writing the log: nobody takes its last lines")
		}
	}
	return nil
}
