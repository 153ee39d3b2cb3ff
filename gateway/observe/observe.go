// Package observe turns what the gateway does into what a person or a machine reads.
//
// [Observer.Record] takes one [Record] for each call, after its caller has been answered: a log line, metrics, the recent
// failures. [Observer.Handler] is what whoever runs the gateway asks: whether it is alive and ready, its metrics, its status,
// a reload. Log lines go through a [Sink], which never keeps its writer waiting: a stuck standard output stops no call.
// Start with [New]; metrics.go names every metric, access.go says who may ask for what.
package observe

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mcp-gateway/redact"
)

// ErrUnknown is the error of Config.Restart for an upstream that the configuration does not have.
var ErrUnknown = errors.New("no upstream has this id")

// An Upstream is what is shown of one upstream. Its values are of one moment.
type Upstream struct {
	ID, Prefix string
	Transport  string // stdio, websocket, sse or http
	State      string // one of connecting, live, backoff, verdict, held, closing, closed
	Revision   string // what the live session speaks, "" without one
	Since      time.Time
	Until      time.Time // of the next attempt, in backoff
	Reason     string    // why nothing is listed, from the closed list that clients see; "" where something is
	LastError  string    // why the last attempt or session ended; redacted before it is shown
	Required   bool
	WasLive    bool // a session with it has begun

	Sessions, Failures         uint64 // sessions begun; attempts to connect that failed
	Looping                    bool   // its sessions end as soon as they have begun
	Refreshes, RefreshFailures uint64 // of its credential
	Tools, Denied, Invalid     int    // listed and shown, denied by policy, left out because they cannot be offered
	InFlight, Waiting          int    // calls that are running, and in its queue
	Shed                       uint64 // calls refused since its queue was full
}

// A Config is what an Observer shows of the gateway. Its functions are called from many goroutines, answer at once but for
// Reload and Restart, and must all be there before a handler serves.
type Config struct {
	Log       *slog.Logger
	Scrubber  *redact.Scrubber // cleans what the handler shows
	Version   string
	Upstreams func() []Upstream // in file order, no id twice
	Effective func() []byte     // the configuration in force as JSON, redacted
	Ready     func() error      // nil from when requests are taken until the end begins; the text is shown
	// Reload returns what has changed, as JSON. The error's text is shown.
	Reload     func(ctx context.Context) (diff []byte, err error)
	Restart    func(ctx context.Context, id string) error // ErrUnknown for an id that is not there; another error's text is shown
	Dropped    func() uint64                              // lines that the log has lost
	Streams    func() int                                 // streams that clients hold open to listen
	Redactions func() uint64                              // secrets taken out of what went to a client or into a record
}

// An Observer makes records and shows them. It outlives every reload. It starts no goroutine.
type Observer struct {
	cfg      Config
	started  time.Time
	registry *prometheus.Registry
	metrics  *metrics

	mu       sync.Mutex        // guards what follows, and keeps a series from being counted on while it is deleted
	tallies  map[string]*tally // by upstream
	tools    map[string]string // names that are a label of their own; the upstream of each
	failures failures
	reload   *reload // the last one; nil before the first
}

// A reload is what became of one.
type reload struct {
	at  time.Time
	err error
}

// New makes an observer with a registry of its own.
func New(cfg Config) *Observer {
	o := &Observer{cfg: cfg, started: time.Now(), tallies: map[string]*tally{}, tools: map[string]string{}}
	o.registry = prometheus.NewRegistry()
	o.metrics = newMetrics(o)
	o.registry.MustRegister(o.metrics.all()...)
	return o
}

// Reloaded records the end of a reload, the first load of all included. Hash stands for the configuration's text, and counts
// only where err is nil.
func (o *Observer) Reloaded(at time.Time, hash string, err error) {
	o.mu.Lock()
	o.reload = &reload{at: at, err: err}
	o.mu.Unlock()
	o.metrics.reloaded(at, hash, err)
}

// upstreams is what there is now. Whatever was counted of one that is no more is forgotten: a reload has taken it out.
func (o *Observer) upstreams() []Upstream {
	list := o.cfg.Upstreams()
	there := make(map[string]bool, len(list))
	for i := range list {
		there[list[i].ID] = true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.tallies {
		if !there[id] {
			o.forget(id)
		}
	}
	return list
}

// forget deletes an upstream's series. o.mu must be held.
func (o *Observer) forget(id string) {
	delete(o.tallies, id)
	o.metrics.forget(id)
	for name, upstream := range o.tools {
		if upstream == id {
			delete(o.tools, name)
		}
	}
}

// unready is why the gateway takes no requests, "" where it does. A required upstream counts only until it was live for the
// first time: one dead server must not take every replica out.
func (o *Observer) unready(list []Upstream) string {
	if err := o.cfg.Ready(); err != nil {
		return err.Error()
	}
	for i := range list {
		if u := &list[i]; u.Required && !u.WasLive {
			return `the upstream "` + u.ID + `" is required, and has not been live yet`
		}
	}
	return ""
}

// maxText bounds each text that is kept or shown, in bytes: it may come from a server or a client.
const maxText = 2 << 10

// text is s as it may be shown. It is cut after it was redacted, so that no half of a secret stays.
func (o *Observer) text(s string) string {
	return redact.Printable(redact.Cut(o.cfg.Scrubber.String(s), maxText))
}
