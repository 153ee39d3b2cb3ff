package observe

import (
	"context"
	"log/slog"
	"time"
)

// A Record is one call that reached an upstream, or failed to.
type Record struct {
	Request    string // the request's id
	Caller     string
	Method     string
	Name       string // public
	Upstream   string
	Target     string // in the upstream's own words
	Outcome    string // "ok", "tool-error", or the outcome of a failure
	Cause      string // of a failure that is the gateway's to explain
	Code       int64  // of a JSON-RPC error, else 0
	HTTPStatus int    // the upstream's, where it says why
	Err        error  // what is behind a failure

	Duration         time.Duration // from the call's arrival until its answer was ready
	UpstreamDuration time.Duration // of it, what the upstream took: its queue, its connect, its answer
	Canceled         bool          // the caller gave the call up
}

// An Observer makes records.
type Observer struct{ log *slog.Logger }

// New makes an observer that writes to log.
func New(log *slog.Logger) *Observer { return &Observer{log: log} }

// Record logs one line: a warning for a call that failed, less for one that its caller gave up or that the server answered with an
// error of its own, and everything else for whoever debugs. It never waits for whoever reads the log.
func (o *Observer) Record(r Record) {
	level, text := slog.LevelDebug, "called"
	switch {
	case r.Canceled:
		level, text = slog.LevelInfo, "a call was cancelled"
	case r.Cause != "":
		level, text = slog.LevelWarn, "a call failed"
	case r.Outcome != "ok" && r.Outcome != "tool-error":
		level, text = slog.LevelInfo, "the server answered a call with an error"
	}
	if !o.log.Enabled(context.Background(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request", r.Request), slog.String("method", r.Method), slog.String("name", r.Name),
		slog.String("upstream", r.Upstream), slog.String("target", r.Target), slog.String("outcome", r.Outcome),
		slog.Duration("duration", r.Duration), slog.Duration("upstreamDuration", r.UpstreamDuration),
	}
	if r.Caller != "" {
		attrs = append(attrs, slog.String("caller", r.Caller))
	}
	if r.Cause != "" {
		attrs = append(attrs, slog.String("cause", r.Cause))
	}
	if r.Code != 0 {
		attrs = append(attrs, slog.Int64("code", r.Code))
	}
	if r.HTTPStatus != 0 {
		attrs = append(attrs, slog.Int("httpStatus", r.HTTPStatus))
	}
	if r.Err != nil {
		attrs = append(attrs, slog.Any("error", r.Err))
	}
	o.log.LogAttrs(context.Background(), level, text, attrs...)
}
