package observe

import "github.com/prometheus/client_golang/prometheus"

// states are those of an upstream. Each has a series, so that an alert can wait for one of them.
var states = []string{"connecting", "live", "backoff", "verdict", "held", "closing", "closed"}

// A reading is one metric that is read of each upstream.
type reading struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*Upstream) float64
}

func counterOf(name, help string, value func(*Upstream) uint64) reading {
	return reading{describe(name, help), prometheus.CounterValue, func(u *Upstream) float64 { return float64(value(u)) }}
}

func gaugeOf(name, help string, value func(*Upstream) int) reading {
	return reading{describe(name, help), prometheus.GaugeValue, func(u *Upstream) float64 { return float64(value(u)) }}
}

// describe names a metric of an upstream.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_upstream_"+name, help, append([]string{"upstream"}, labels...), nil)
}

var readings = []reading{
	counterOf("sessions_total", "Sessions begun; each after the first is a reconnect, or the restart of a command.",
		func(u *Upstream) uint64 { return u.Sessions }),
	counterOf("connect_failures_total", "Attempts to connect that failed.", func(u *Upstream) uint64 { return u.Failures }),
	counterOf("refreshes_total", "Refreshes of the credential.", func(u *Upstream) uint64 { return u.Refreshes }),
	counterOf("refresh_failures_total", "Refreshes of the credential that failed.", func(u *Upstream) uint64 { return u.RefreshFailures }),
	counterOf("shed_total", "Calls refused because the queue was full.", func(u *Upstream) uint64 { return u.Shed }),
	gaugeOf("in_flight", "Calls that are running.", func(u *Upstream) int { return u.InFlight }),
	gaugeOf("queued", "Calls that wait in the queue.", func(u *Upstream) int { return u.Waiting }),
	gaugeOf("crash_looping", "Whether its sessions end as soon as they have begun.", func(u *Upstream) int { return int(truth(u.Looping)) }),
}

var (
	stateDesc = describe("state", "1 for the state that the upstream is in.", "state")
	infoDesc  = describe("info", "What the upstream is reached by, and what it speaks.", "prefix", "transport", "revision")
	toolsDesc = describe("tools", "Tools of the last listing: shown, denied by policy, or left out because they cannot be offered.", "listing")
	readyDesc = prometheus.NewDesc(namespace+"_ready", "Whether the gateway takes requests, as /readyz says.", nil, nil)
)

// A scrape collects all that is known by upstream, of one moment.
type scrape struct{ m *metrics }

// Describe implements prometheus.Collector.
func (s *scrape) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range s.counted() {
		c.Describe(ch)
	}
	for _, r := range readings {
		ch <- r.desc
	}
	for _, desc := range []*prometheus.Desc{stateDesc, infoDesc, toolsDesc, readyDesc} {
		ch <- desc
	}
}

func (s *scrape) counted() []prometheus.Collector {
	return []prometheus.Collector{s.m.requests, s.m.whole, s.m.upstreams, s.m.limits}
}

// Collect implements prometheus.Collector. The upstreams come first: asking for them deletes the series of those that are
// no more.
func (s *scrape) Collect(ch chan<- prometheus.Metric) {
	list := s.m.o.upstreams()
	for _, c := range s.counted() {
		c.Collect(ch)
	}
	for i := range list {
		collect(ch, &list[i])
	}
	send(ch, readyDesc, prometheus.GaugeValue, truth(s.m.o.unready(list) == ""))
}

func collect(ch chan<- prometheus.Metric, u *Upstream) {
	for _, r := range readings {
		send(ch, r.desc, r.kind, r.value(u), u.ID)
	}
	for _, state := range states {
		send(ch, stateDesc, prometheus.GaugeValue, truth(u.State == state), u.ID, state)
	}
	send(ch, infoDesc, prometheus.GaugeValue, 1, u.ID, u.Prefix, u.Transport, u.Revision)
	for _, tools := range []struct {
		listing string
		n       int
	}{{"shown", u.Tools}, {"denied", u.Denied}, {"left-out", u.Invalid}} {
		send(ch, toolsDesc, prometheus.GaugeValue, float64(tools.n), u.ID, tools.listing)
	}
}

// send fails the scrape for a label that is no text, which a panic in the registry's goroutine would not survive.
func send(ch chan<- prometheus.Metric, desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
	metric, err := prometheus.NewConstMetric(desc, kind, value, labels...)
	if err != nil {
		metric = prometheus.NewInvalidMetric(desc, err)
	}
	ch <- metric
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
