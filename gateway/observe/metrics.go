package observe

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

const (
	namespace = "mcp_gateway"

	// A label of its own is for the first maxTools tools that are called, with names of at most maxToolName bytes.
	maxTools    = 1000
	maxToolName = 128
	otherTool   = "other"
)

// seconds are the bounds of the histograms: from what a fast server needs up to the default time limit of a call.
var seconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// limitOf is the setting, or the bound of the gateway's own, that a failure's cause says was reached.
var limitOf = map[string]string{
	"queue-full":              "queue",
	"deadline":                "timeout",
	"deadline-unsent":         "timeout",
	"deadline-between-rounds": "timeout",
	"state-used-up":           "timeout",
	"state-expired":           "input_timeout",
	"rounds-exhausted":        "rounds",
	"too-large":               "result",
}

// metrics are what is counted as it happens. What the gateway can be asked for is read at each scrape (scrape.go).
type metrics struct {
	o         *Observer
	requests  *prometheus.CounterVec
	whole     *prometheus.HistogramVec
	upstreams *prometheus.HistogramVec
	limits    *prometheus.CounterVec

	reloads     *prometheus.CounterVec
	loaded      prometheus.Gauge
	lastWorked  prometheus.Gauge
	fingerprint *prometheus.GaugeVec
}

func newMetrics(o *Observer) *metrics {
	m := &metrics{
		o: o,
		requests: counters("requests_total", "Calls by their public tool name and by what became of them.",
			"method", "upstream", "tool", "outcome"),
		whole: histograms("request_duration_seconds", "From a call's arrival until its answer was ready.",
			"method", "upstream"),
		upstreams: histograms("upstream_duration_seconds", "What the upstream took of a call that was sent to it: its queue, its connect, its answer.",
			"method", "upstream"),
		limits: counters("limits_hit_total", "Calls that ended at a limit, by the setting that says where it is.",
			"upstream", "limit"),
		reloads: counters("reloads_total", "Loads of the configuration, the first included.", "result"),
		loaded:  gauge("reload_last_success_timestamp_seconds", "When the configuration in force was loaded."),
		lastWorked: gauge("reload_last_successful",
			"Whether the last load of the configuration succeeded; 0 says that the one before is still in force."),
		fingerprint: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "config_info", Help: "The hash of the configuration in force.",
		}, []string{"hash"}),
	}
	for _, result := range []string{"success", "failure"} {
		m.reloads.WithLabelValues(result)
	}
	m.lastWorked.Set(1)
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: seconds}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
}

// all is everything that one scrape shows.
func (m *metrics) all() []prometheus.Collector {
	cfg := &m.o.cfg
	return []prometheus.Collector{
		&scrape{m},
		m.reloads, m.loaded, m.lastWorked, m.fingerprint,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "build_info", Help: "The gateway's version, and that of the Go that it was built with.",
			ConstLabels: prometheus.Labels{"version": cfg.Version, "goversion": runtime.Version()},
		}, func() float64 { return 1 }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: "streams", Help: "Streams that clients hold open to listen.",
		}, func() float64 { return float64(cfg.Streams()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: namespace, Name: "redactions_total", Help: "Secrets taken out of what went to a client or into a record.",
		}, func() float64 { return float64(cfg.Redactions()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: namespace, Name: "log_lines_dropped_total", Help: "Log lines lost because nobody took them in time.",
		}, func() float64 { return float64(cfg.Dropped()) }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
}

// A kind is what calls to one upstream have in common for their metrics.
type kind struct{ method, tool, outcome string }

// The series of a kind, kept since to look one up by its labels costs more than to count.
type series struct {
	requests        prometheus.Counter
	whole, upstream prometheus.Observer // upstream is nil before a call has been sent
}

// count counts one call in t, which is that of its upstream. o.mu must be held, so that the series is not deleted in between.
func (m *metrics) count(t *tally, r *Record, tool, outcome string) {
	s := t.series[kind{r.Method, tool, outcome}]
	if s == nil {
		s = &series{
			requests: m.requests.WithLabelValues(r.Method, r.Upstream, tool, outcome),
			whole:    m.whole.WithLabelValues(r.Method, r.Upstream),
		}
		t.series[kind{r.Method, tool, outcome}] = s
	}
	s.requests.Inc()
	s.whole.Observe(r.Duration.Seconds())
	if r.sent() {
		if s.upstream == nil {
			s.upstream = m.upstreams.WithLabelValues(r.Method, r.Upstream)
		}
		s.upstream.Observe(r.UpstreamDuration.Seconds())
	}
	if limit := limitOf[r.Cause]; limit != "" {
		m.limits.WithLabelValues(r.Upstream, limit).Inc()
	}
}

func (m *metrics) forget(upstream string) {
	of := prometheus.Labels{"upstream": upstream}
	m.requests.DeletePartialMatch(of)
	m.whole.DeletePartialMatch(of)
	m.upstreams.DeletePartialMatch(of)
	m.limits.DeletePartialMatch(of)
}

func (m *metrics) reloaded(at time.Time, hash string, err error) {
	if err != nil {
		m.reloads.WithLabelValues("failure").Inc()
		m.lastWorked.Set(0)
		return
	}
	m.reloads.WithLabelValues("success").Inc()
	m.lastWorked.Set(1)
	m.loaded.Set(float64(at.UnixNano()) / float64(time.Second))
	m.fingerprint.Reset()
	m.fingerprint.WithLabelValues(hash).Set(1)
}
