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
	Listed     bool   // Name is a tool's in the listing of a live upstream: only then is it a label
	Upstream   string
	Target     string // in the upstream's own words
	Outcome    string // "ok", "tool-error", or the outcome of a failure
	Cause      string // of a failure that is the gateway's to explain
	Retry      string // what the caller may do after such a failure: safe, check or no
	Words      string // what the caller reads of a failure
	Code       int64  // of a JSON-RPC error, else 0
	HTTPStatus int    // the upstream's, where it says why
	Err        error  // what is behind a failure

	Duration         time.Duration // from the call's arrival until its answer was ready
	UpstreamDuration time.Duration // of it, what the upstream took: its queue, its connect, its answer
	Canceled         bool          // the caller gave the call up

	Status int   // of HTTP, that the caller was sent; 0 where it was sent nothing
	Bytes  int64 // of the body that it was sent
}

// The outcomes that are not in Record.Outcome as a label says them, or that decide what is kept of a call.
const (
	outcomeOK        = "ok"
	outcomeToolError = "tool-error"
	outcomeNotSent   = "not-sent"
	outcomeCanceled  = "canceled"
)

// sent reports whether anything of the call may have reached the upstream: how long the others took says nothing about it.
func (r *Record) sent() bool { return r.Outcome != outcomeNotSent }

// failed reports whether the call came to no result, and not because its caller gave it up.
func (r *Record) failed() bool {
	return !r.Canceled && r.Outcome != outcomeOK && r.Outcome != outcomeToolError
}

// Record counts the call, keeps it if it failed, and logs a line. It never waits for whoever reads the log or asks for a
// status.
func (o *Observer) Record(r Record) {
	o.count(&r)
	o.write(&r)
}

func (o *Observer) count(r *Record) {
	outcome := r.Outcome
	if r.Canceled {
		outcome = outcomeCanceled
	}
	var failed failure
	if r.failed() {
		failed = failure{
			Outcome: outcomeObject{r.Outcome, r.Cause, r.Upstream, r.Method, r.Retry, r.Code, r.HTTPStatus},
			Time:    time.Now(), Request: r.Request, Name: o.text(r.Name), Words: o.text(r.Words),
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.failed() {
		o.failures.add(failed)
	}
	t := o.tallies[r.Upstream]
	if t == nil {
		t = &tally{outcomes: map[string]uint64{}, series: map[kind]*series{}}
		o.tallies[r.Upstream] = t
	}
	t.add(r, outcome)
	o.metrics.count(t, r, o.label(r), outcome)
}

// label is the call's tool as a label. Whoever calls names that are not there, or lists more tools than anyone can want, does
// not fill the memory with series. o.mu must be held.
func (o *Observer) label(r *Record) string {
	if _, known := o.tools[r.Name]; known {
		return r.Name
	}
	if !r.Listed || len(r.Name) > maxToolName || len(o.tools) >= maxTools {
		return otherTool
	}
	o.tools[r.Name] = r.Upstream
	return r.Name
}

// write logs one line: a warning for a call that failed, less for one that its caller gave up or that the server answered with
// an error of its own, and everything else for whoever debugs.
func (o *Observer) write(r *Record) {
	log := o.cfg.Log
	level, text := slog.LevelDebug, "called"
	switch {
	case r.Canceled:
		level, text = slog.LevelInfo, "a call was cancelled"
	case r.Cause != "":
		level, text = slog.LevelWarn, "a call failed"
	case r.failed():
		level, text = slog.LevelInfo, "the server answered a call with an error"
	}
	ctx := context.Background()
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 15)
	attrs = append(attrs,
		slog.String("request", r.Request), slog.String("method", r.Method), slog.String("name", r.Name),
		slog.String("upstream", r.Upstream), slog.String("target", r.Target), slog.String("outcome", r.Outcome),
		slog.Duration("duration", r.Duration), slog.Duration("upstreamDuration", r.UpstreamDuration),
	)
	if r.Status != 0 {
		attrs = append(attrs, slog.Int("status", r.Status), slog.Int64("bytes", r.Bytes))
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
	line := slog.NewRecord(time.Now(), level, text, 0) // without the stack that a Logger looks through for what is not shown
	line.AddAttrs(attrs...)
	_ = log.Handler().Handle(ctx, line) // a sink, which never fails
}
