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
	Target     string        // in the upstream's own words
	Outcome    string        // "ok", "tool-error", or the outcome of a failure
	Cause      string        // of a failure
	Code       int64         // of a JSON-RPC error, else 0
	HTTPStatus int           // the upstream's, where it says why
	Duration   time.Duration // from the call's arrival
	Err        error         // what is behind a failure
}

// An Observer makes records.
type Observer struct{ log *slog.Logger }

// New makes an observer that writes to log.
func New(log *slog.Logger) *Observer { return &Observer{log: log} }

// Record logs a failure as a warning, and everything else for whoever debugs.
func (o *Observer) Record(r Record) {
	level, text := slog.LevelDebug, "called"
	if r.Cause != "" {
		level, text = slog.LevelWarn, "a call failed"
	}
	if !o.log.Enabled(context.Background(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request", r.Request), slog.String("method", r.Method), slog.String("name", r.Name),
		slog.String("upstream", r.Upstream), slog.String("target", r.Target), slog.String("outcome", r.Outcome),
		slog.Duration("duration", r.Duration),
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
