package observe

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// writeTimeout bounds how long a reader may take over one answer, profiles aside: they begin late.
	writeTimeout = 30 * time.Second
	// maxScrapes bounds the scrapes that run at once.
	maxScrapes = 4
)

// Handler serves one admin listener. It sets the deadlines of its answers itself: the server must have no WriteTimeout, which
// would cut off a reload and a profile, and no ReadTimeout, which would end a reload's context.
func (o *Observer) Handler(access Access) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]bool{"alive": true})
	})
	mux.HandleFunc("GET /readyz", o.serveReady)
	mux.HandleFunc("GET /metrics", o.serveMetrics())
	mux.HandleFunc("GET /status", access.guard(o.serveStatus))
	mux.HandleFunc("POST /-/reload", access.guard(o.serveReload))
	mux.HandleFunc("POST /-/upstreams/{id}/restart", access.guard(o.serveRestart))
	if access.Pprof {
		// What pprof tells of the command line is left out: a path there may be a credential.
		mux.HandleFunc("GET /debug/pprof/", access.guard(pprof.Index))
		mux.HandleFunc("GET /debug/pprof/profile", access.guard(pprof.Profile))
		mux.HandleFunc("GET /debug/pprof/symbol", access.guard(pprof.Symbol))
		mux.HandleFunc("GET /debug/pprof/trace", access.guard(pprof.Trace))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case access.Loopback && !access.allowsHost(r.Host):
			refuse(w, http.StatusForbidden, wrongHost)
		case r.ContentLength != 0:
			refuseBody(w)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

func (o *Observer) serveMetrics() http.HandlerFunc {
	metrics := promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		ErrorLog:            slog.NewLogLogger(o.cfg.Log.Handler(), slog.LevelWarn),
	})
	return func(w http.ResponseWriter, r *http.Request) {
		bound(w)
		metrics.ServeHTTP(w, r)
	}
}

func (o *Observer) serveReload(w http.ResponseWriter, r *http.Request) {
	diff, err := o.cfg.Reload(r.Context())
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, o.text(err.Error()))
		return
	}
	answer(w, http.StatusOK, o.raw(diff))
}

func (o *Observer) serveRestart(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	switch err := o.cfg.Restart(r.Context(), id); {
	case errors.Is(err, ErrUnknown):
		refuse(w, http.StatusNotFound, "no upstream has this id; /status names those that there are")
	case err != nil:
		refuse(w, http.StatusConflict, o.text(err.Error()))
	default:
		answer(w, http.StatusOK, map[string]string{"restarted": id})
	}
}

// raw is JSON of the gateway's own making as it may be shown; null where it cannot be redacted.
func (o *Observer) raw(text []byte) json.RawMessage {
	clean, err := o.cfg.Scrubber.JSON(text)
	if err != nil || len(clean) == 0 {
		return json.RawMessage("null")
	}
	return clean
}

// bound gives the reader until writeTimeout from now.
func bound(w http.ResponseWriter) {
	// A connection without deadlines is none of net/http's own.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// refuseBody refuses a request that has a body. Nobody waits for the rest of it, as net/http would when the handler has returned.
func refuseBody(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	w.Header().Set("Connection", "close")
	refuse(w, http.StatusRequestEntityTooLarge, "no body is taken here: send the request without one")
}

// refuse answers in words that a person can act on.
func refuse(w http.ResponseWriter, status int, text string) {
	answer(w, status, map[string]string{"error": text})
}

// answer writes v as JSON, which must be possible.
func answer(w http.ResponseWriter, status int, v any) {
	bound(w)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	// Who has gone needs no answer.
	_ = encoder.Encode(v)
}
