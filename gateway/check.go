package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"mcp-gateway/gateway/catalog"
	"mcp-gateway/gateway/config"
	"mcp-gateway/gateway/observe"
	"mcp-gateway/policy"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

// A Phase is one step of the way to a server. Its texts are redacted.
type Phase struct {
	Name   string  `json:"phase"`
	OK     bool    `json:"ok"`
	TookMs float64 `json:"tookMs"` // with one digit after the point
	Detail string  `json:"detail,omitempty"`
	Error  string  `json:"error,omitempty"` // what is wrong
	Fix    string  `json:"fix,omitempty"`   // what to do about it
}

// A Reached is what became of an attempt to reach one upstream.
type Reached struct {
	ID       string  `json:"id"`
	Engine   string  `json:"engine"`  // in words, such as "legacy over stdio"
	Address  string  `json:"address"` // its url as it may be shown, or its command without arguments
	OK       bool    `json:"ok"`      // it is connected and has listed
	Revision string  `json:"revision,omitempty"`
	Tools    int     `json:"tools"`   // that callers see
	Denied   int     `json:"denied"`  // by the configuration
	LeftOut  int     `json:"leftOut"` // that cannot be offered
	Phases   []Phase `json:"phases"`  // up to the one that failed
}

// Failed is the phase that has failed; it is zero where none has.
func (r *Reached) Failed() Phase {
	for _, p := range r.Phases {
		if !p.OK {
			return p
		}
	}
	return Phase{}
}

// DialOptions are what an attempt takes from the program around it.
type DialOptions struct {
	Log     io.Writer          // of what the servers and the engines have to say beside; nil drops it
	Waiting func(ids []string) // told of the upstreams that are still on their way, whenever there are fewer; nil tells nobody
}

// Dial tries to reach every upstream, all at once, each within its start_timeout: it connects as serving would, lists the
// tools, and ends everything again. It returns when nothing runs any more, in the order of the configuration. The end of ctx
// ends the attempts.
func Dial(ctx context.Context, cfg *config.Config, opts DialOptions) []Reached {
	d := newDialer(cfg, opts.Log)
	out := make([]Reached, len(cfg.Upstreams))
	wait := newWaiting(cfg.Upstreams, opts.Waiting)
	var running sync.WaitGroup
	for i, u := range cfg.Upstreams {
		running.Go(func() {
			out[i] = d.reach(ctx, u)
			wait.done(u.ID)
		})
	}
	running.Wait()
	return out
}

// A dialer has what all attempts share.
type dialer struct {
	parts parts
	proxy func(*http.Request) (*url.URL, error)
}

func newDialer(cfg *config.Config, log io.Writer) *dialer {
	if log == nil {
		log = io.Discard
	}
	scrubber := redact.NewScrubber()
	scrubber.Learn(cfg.Secrets()...)
	return &dialer{
		parts: parts{log: observe.NewLogger(log, false, slog.LevelInfo, scrubber), scrubber: scrubber, stateDir: cfg.StateDir},
		proxy: http.ProxyFromEnvironment,
	}
}

// reach makes one attempt.
func (d *dialer) reach(ctx context.Context, u config.Upstream) Reached {
	r := d.blank(u)
	w, e, err := d.connect(u)
	if err != nil {
		r.Phases = []Phase{w.failure(phaseHandshake, err)}
		return r
	}
	status := settled(ctx, e)
	r.Phases = w.phases(ctx, status)
	if status.State == upstream.Live {
		r.Revision = status.Revision
		d.list(ctx, w, e, status, &r)
	}
	if err := e.Close(); err != nil {
		r.OK = false
		r.Phases = append(r.Phases, w.failure("stop", err))
	}
	return r
}

// blank is an upstream of which nothing is known yet.
func (d *dialer) blank(u config.Upstream) Reached {
	return Reached{ID: u.ID, Engine: u.Engine.String(), Address: d.shown(address(u)), Phases: []Phase{}}
}

// address is where the upstream is, for a person. Arguments may hold anything.
func address(u config.Upstream) string {
	if u.Engine.Stdio() {
		return u.Command.Reveal()
	}
	return redact.URL(u.URL.Reveal())
}

// connect starts an engine, watched.
func (d *dialer) connect(u config.Upstream) (*watched, engine, error) {
	w := d.watch(u)
	e, err := newEngine(u, w.parts(d.parts))
	if err != nil {
		return w, nil, err
	}
	e.Start()
	return w, e, nil
}

var (
	errSlow     = errors.New("it took longer than start_timeout")
	errUnlisted = errors.New("the connection was lost")
)

// list lists the tools over a connection that stands.
func (d *dialer) list(ctx context.Context, w *watched, e engine, status upstream.Status, r *Reached) {
	var mu sync.Mutex
	var last catalog.Report
	c := catalog.New(catalog.Config{
		Sources: []catalog.Source{{
			ID: w.u.ID, Prefix: w.u.Prefix, Upstream: e, OverHTTP: !w.u.Engine.Stdio(), Verbatim: w.u.ResultsVerbatim, Timeout: w.u.Timeout,
		}},
		Policy: policy.New(map[string]policy.Tools{w.u.ID: w.u.Tools}), ServerInfo: serverInfo(), Log: d.parts.log,
		Redact: d.parts.scrubber.Definition, Secrets: d.parts.scrubber.Version,
		Changed: func(report catalog.Report) {
			mu.Lock()
			defer mu.Unlock()
			last = report
		},
	})
	ctx, cancel := context.WithTimeoutCause(ctx, w.u.StartTimeout, errSlow)
	defer cancel()
	c.Start()
	c.Settled(ctx, w.u.ID)
	took := time.Since(status.Since)
	c.Close()
	mu.Lock()
	defer mu.Unlock()
	if !last.Listed {
		err := last.Err
		if ctx.Err() != nil || err == nil {
			err = fmt.Errorf("no answer to tools/list: %w", cmp.Or(context.Cause(ctx), errUnlisted))
		}
		p := w.failure(phaseList, err)
		p.TookMs = millis(took)
		r.Phases = append(r.Phases, p)
		return
	}
	r.OK, r.Tools, r.Denied, r.LeftOut = true, last.Shown, last.Denied, last.Invalid
	r.Phases = append(r.Phases, Phase{Name: phaseList, OK: true, TookMs: millis(took), Detail: contribution(last)})
}

// contribution says in words what an upstream has listed.
func contribution(r catalog.Report) string {
	text := tools(r.Shown)
	if r.Denied > 0 {
		text += fmt.Sprintf(", %d denied", r.Denied)
	}
	if r.Invalid > 0 {
		text += fmt.Sprintf(", %d left out (--verbose says why)", r.Invalid)
	}
	return text
}

// shown is a text as anybody may read it, in one line.
func (d *dialer) shown(text string) string {
	return redact.Printable(redact.Cut(d.parts.scrubber.String(text), maxLine))
}

func millis(d time.Duration) float64 {
	return float64(d.Round(100*time.Microsecond)) / float64(time.Millisecond)
}

// A waiting tells which of the upstreams are still on their way.
type waiting struct {
	mu   sync.Mutex // guards ids, and keeps what is told in order
	ids  []string
	tell func([]string)
}

func newWaiting(list []config.Upstream, tell func([]string)) *waiting {
	w := &waiting{tell: tell}
	if tell == nil {
		w.tell = func([]string) {}
	}
	for _, u := range list {
		w.ids = append(w.ids, u.ID)
	}
	w.tell(w.ids)
	return w
}

func (w *waiting) done(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := make([]string, 0, len(w.ids))
	for _, other := range w.ids {
		if other != id {
			rest = append(rest, other)
		}
	}
	w.ids = rest
	w.tell(rest)
}
