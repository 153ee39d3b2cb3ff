// Package gateway answers the requests of MCP clients by calling the upstream that each is for.
//
// [New] wires a checked configuration into a [Gateway], [Gateway.Run] serves it until its context ends, and drains. One request is
// read aloud in dispatch.go; outcome.go and words.go say what became of it. Nothing here knows the revision of a
// client or of a server: the fronts and the engines do.
package gateway

import (
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

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
	Log      io.Writer // of the log's lines; a slow one loses lines and stops nothing
	LogJSON  bool      // one JSON object a line, else text
	LogLevel slog.Level
	Banner   string    // for Status, when requests are about to be taken
	Status   io.Writer // as Log is written; gets a line for each upstream when it has listed or failed, and at each change
}

// A Gateway serves one configuration.
type Gateway struct {
	cfg        *config.Config
	scrubber   *redact.Scrubber // knows the configuration's secrets
	sink       *observe.Sink    // of the log
	lines      *observe.Sink    // of Options.Status
	log        *slog.Logger
	ring       *seal.Ring
	serverInfo []byte
	engines    []engine
	front      *front.Front
	observer   *observe.Observer
	banner     string
	snapshot   atomic.Pointer[snapshot]
	stage      atomic.Int32 // of the way to the end
}

// New builds a gateway. It starts no process and opens no connection; it may make the key file in the state directory.
func New(cfg *config.Config, opts Options) (*Gateway, error) { return assemble(cfg, opts, newEngine) }

// assemble is New with a choice of what makes the engines.
func assemble(cfg *config.Config, opts Options, makeEngine engineMaker) (*Gateway, error) {
	scrubber := redact.NewScrubber(cfg.Secrets()...)
	ring, keyErr, err := ring(cfg, scrubber)
	if err != nil {
		return nil, err
	}
	sink := observe.NewSink(opts.Log)
	log := observe.NewLogger(sink, opts.LogJSON, opts.LogLevel, scrubber)
	g := &Gateway{cfg: cfg, scrubber: scrubber, sink: sink, lines: observe.NewSink(opts.Status), log: log, ring: ring, observer: observe.New(log), serverInfo: serverInfo(), banner: opts.Banner}
	if keyErr != nil {
		log.Warn("sessions and cursors will not outlive this process, and no other replica can take them", "error", keyErr)
	}
	if err := g.wire(opts, makeEngine); err != nil {
		return nil, errors.Join(err, g.closeLog())
	}
	return g, nil
}

// wire makes the engines, and all that stands between them and the clients.
func (g *Gateway) wire(opts Options, makeEngine engineMaker) error {
	snap := &snapshot{byID: map[string]*route{}}
	tools := map[string]policy.Tools{}
	var sources []catalog.Source
	for _, u := range g.cfg.Upstreams {
		tools[u.ID] = u.Tools
		source := catalog.Source{ID: u.ID, Prefix: u.Prefix, OverHTTP: !u.Engine.Stdio(), Timeout: u.Timeout}
		e, err := makeEngine(u, g.log, g.scrubber)
		if err != nil {
			return err
		}
		g.engines = append(g.engines, e)
		g.log.Debug("upstream configured", "upstream", u.ID, "engine", u.Engine, "prefix", u.Prefix, "url", shown(u.URL))
		source.Upstream = e
		sources = append(sources, source)
		snap.routes = append(snap.routes, route{id: u.ID, prefix: u.Prefix, upstream: e, timeout: u.Timeout})
	}
	for i := range snap.routes {
		snap.byID[snap.routes[i].id] = &snap.routes[i]
	}
	snap.policy = policy.New(tools)
	snap.catalog = catalog.New(catalog.Config{
		Sources: sources, Policy: snap.policy, ServerInfo: g.serverInfo, Log: g.log,
		Changed: (&statusLines{w: g.lines, scrubber: g.scrubber}).report,
	})
	g.snapshot.Store(snap)
	g.front = front.New(g.frontConfig())
	return nil
}

// shown is a url for the log; "" for a server that is a command.
func shown(u redact.Secret) string {
	if u.IsZero() {
		return ""
	}
	return redact.URL(u.Reveal())
}

func (g *Gateway) frontConfig() front.Config {
	return front.Config{
		Dispatch: g.dispatch,
		Ring:     g.ring,
		Authenticate: func(r *http.Request) (string, error) {
			caller, err := g.cfg.Callers.Authenticate(r)
			return caller.Name, err
		},
		Path: g.cfg.Path, Hosts: g.cfg.Hosts, Origins: g.cfg.Origins, Loopback: config.Loopback(g.cfg.Listen),
		Keepalive: g.cfg.Keepalive, StreamAfter: streamAfter,
		ServerInfo: g.serverInfo, Log: g.log,
	}
}

func serverInfo() []byte {
	return wire.Object{}.AppendEdited(nil,
		wire.Edit{Name: "name", Value: wire.AppendString(nil, mcp.GatewayName)},
		wire.Edit{Name: "version", Value: wire.AppendString(nil, mcp.GatewayVersion)})
}

// ring takes the configured keys, or the one that is kept in the state directory. Where that cannot be kept, keyErr says why.
func ring(cfg *config.Config, scrubber *redact.Scrubber) (r *seal.Ring, keyErr, err error) {
	var keys [][]byte
	for _, secret := range cfg.SealKeys {
		key, err := base64.StdEncoding.DecodeString(secret.Reveal())
		if err != nil {
			return nil, nil, errors.New("reading seal.keys: one of them is not Base64; make them with `openssl rand -base64 32`")
		}
		keys = append(keys, key)
	}
	if keys == nil {
		var key []byte
		if key, keyErr = seal.StateKey(cfg.StateDir); key == nil {
			return nil, nil, keyErr
		}
		scrubber.Add(redact.NewSecret(base64.StdEncoding.EncodeToString(key)))
		keys = [][]byte{key}
	}
	r, err = seal.NewRing(keys)
	return r, keyErr, err
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
