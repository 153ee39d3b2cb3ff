package observe

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

type statusPage struct {
	Version   string           `json:"version"`
	Started   time.Time        `json:"started"`
	Reload    *reloadStatus    `json:"reload,omitempty"`
	Upstreams []upstreamStatus `json:"upstreams"`
	Failures  []failure        `json:"failures"`
	Config    json.RawMessage  `json:"config"`
}

type reloadStatus struct {
	At    time.Time `json:"at"`
	OK    bool      `json:"ok"`
	Error string    `json:"error,omitempty"`
}

type upstreamStatus struct {
	ID        string    `json:"id"`
	Prefix    string    `json:"prefix"`
	Transport string    `json:"transport"`
	State     string    `json:"state"`
	Revision  string    `json:"revision,omitempty"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until,omitzero"`
	Reason    string    `json:"reason,omitempty"`
	LastError string    `json:"lastError,omitempty"`
	Required  bool      `json:"required"`
	Looping   bool      `json:"looping"`

	Restarts        uint64 `json:"restarts"`
	ConnectFailures uint64 `json:"connectFailures"`
	Refreshes       uint64 `json:"refreshes"`
	RefreshFailures uint64 `json:"refreshFailures"`

	Tools struct {
		Shown   int `json:"shown"`
		Denied  int `json:"denied"`
		LeftOut int `json:"leftOut"`
	} `json:"tools"`

	Calls    uint64            `json:"calls"`
	InFlight int               `json:"inFlight"`
	Queued   int               `json:"queued"`
	Shed     uint64            `json:"shed"`
	Outcomes map[string]uint64 `json:"outcomes"`
	Latency  latency           `json:"latency"`
}

// A latency is how long the upstream took over the last count calls that were sent to it.
type latency struct {
	Count int      `json:"count"`
	P50Ms *float64 `json:"p50Ms,omitempty"` // none without a call
	P99Ms *float64 `json:"p99Ms,omitempty"`
}

func (o *Observer) serveStatus(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, o.status())
}

func (o *Observer) status() statusPage {
	list := o.upstreams()
	page := statusPage{Version: o.cfg.Version, Started: o.started, Config: o.raw(o.cfg.Effective())}
	tallies := make([]tally, len(list))
	o.mu.Lock()
	for i := range list {
		if t := o.tallies[list[i].ID]; t != nil {
			tallies[i] = t.copy()
		}
	}
	page.Failures = o.failures.latest()
	last := o.reload
	o.mu.Unlock()

	if last != nil {
		page.Reload = &reloadStatus{At: last.at, OK: last.err == nil}
		if last.err != nil {
			page.Reload.Error = o.text(last.err.Error())
		}
	}
	// Secrets may have become known since they were kept.
	for i := range page.Failures {
		f := &page.Failures[i]
		f.Name, f.Words = o.text(f.Name), o.text(f.Words)
	}
	page.Upstreams = make([]upstreamStatus, len(list))
	for i := range list {
		page.Upstreams[i] = o.upstreamStatus(&list[i], &tallies[i])
	}
	return page
}

func (o *Observer) upstreamStatus(u *Upstream, t *tally) upstreamStatus {
	s := upstreamStatus{
		ID: u.ID, Prefix: u.Prefix, Transport: u.Transport, State: u.State, Revision: u.Revision, Since: u.Since, Until: u.Until,
		Reason: u.Reason, LastError: o.text(u.LastError), Required: u.Required, Looping: u.Looping,
		ConnectFailures: u.Failures, Refreshes: u.Refreshes, RefreshFailures: u.RefreshFailures,
		InFlight: u.InFlight, Queued: u.Waiting, Shed: u.Shed, Outcomes: t.outcomes, Latency: latencyOf(t.latencies),
	}
	if u.Sessions > 1 {
		s.Restarts = u.Sessions - 1
	}
	s.Tools.Shown, s.Tools.Denied, s.Tools.LeftOut = u.Tools, u.Denied, u.Invalid
	for _, n := range t.outcomes {
		s.Calls += n
	}
	if s.Outcomes == nil {
		s.Outcomes = map[string]uint64{}
	}
	return s
}

func latencyOf(of []time.Duration) latency {
	if len(of) == 0 {
		return latency{}
	}
	slices.Sort(of)
	ms := func(d time.Duration) *float64 {
		v := float64(d.Microseconds()) / 1000
		return &v
	}
	return latency{len(of), ms(percentile(of, 0.5)), ms(percentile(of, 0.99))}
}

type readyPage struct {
	Ready     bool            `json:"ready"`
	Reason    string          `json:"reason,omitempty"`
	Upstreams []readyUpstream `json:"upstreams"`
}

// A readyUpstream says where an upstream stands in words from closed lists only: whoever reaches the port may read them.
type readyUpstream struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Required bool   `json:"required"`
}

func (o *Observer) serveReady(w http.ResponseWriter, _ *http.Request) {
	list := o.upstreams()
	page := readyPage{Reason: o.unready(list), Upstreams: make([]readyUpstream, len(list))}
	page.Ready = page.Reason == ""
	for i := range list {
		u := &list[i]
		page.Upstreams[i] = readyUpstream{u.ID, u.State, u.Reason, u.Required}
	}
	status := http.StatusOK
	if !page.Ready {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, page)
}
