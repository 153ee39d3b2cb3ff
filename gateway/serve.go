package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/wire"
)

const (
	streamAfter = 10 * time.Second
	// answerTime is how long calls that were cut off have to get their answer out.
	answerTime = 2 * time.Second

	maxHeaderBytes    = 32 << 10
	readHeaderTimeout = 30 * time.Second
	idleTimeout       = 2 * time.Minute
)

// The stages of the way to the end.
const (
	serving  = iota
	draining // new calls are still taken; answers ask for the connection to be closed
	closing  // no new calls
)

// Run starts every upstream, serves on ln as soon as each has listed or failed or start_grace has passed, and when ctx
// ends drains: new calls for shutdown_delay, running ones for shutdown_timeout, then everything is torn down. A closed cut
// ends the drain early. It returns when nothing runs any more; an error names each process that could not be ended.
func (g *Gateway) Run(ctx context.Context, ln net.Listener, cut <-chan struct{}) error {
	for _, e := range g.engines {
		e.Start()
	}
	snap := g.snapshot.Load()
	snap.catalog.Start()
	grace, cancel := context.WithTimeout(ctx, g.cfg.StartGrace)
	snap.catalog.Settled(grace)
	cancel()

	server := &http.Server{
		Handler:           g.gate(g.front),
		BaseContext:       g.front.BaseContext,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	// As the lines of the upstreams, it goes out on its own: a terminal that takes nothing holds up no call, and no end.
	_, _ = g.lines.Write([]byte(g.banner))
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	var failed error
	select {
	case err := <-served:
		failed = fmt.Errorf("serving on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
		g.drain(server, cut)
	}
	// A client that takes nothing must not hold up the ending of the children.
	_ = server.Close()
	err := errors.Join(failed, g.teardown())
	if err != nil {
		g.log.Error("stopped, but not as it should be", "error", err)
	} else {
		g.log.Info("stopped")
	}
	// A log that nobody reads is no reason to fail.
	_ = g.closeLog()
	return err
}

// Log is where everything of the gateway is recorded, redacted.
func (g *Gateway) Log() *slog.Logger { return g.log }

// RefuseReload says in the log that the configuration stays as it is.
func (g *Gateway) RefuseReload() {
	g.log.Warn("this version cannot reload its configuration; restart it instead")
}

// drain ends the serving: whoever sends requests here is told to stop, then the door closes, then the running calls finish.
func (g *Gateway) drain(server *http.Server, cut <-chan struct{}) {
	g.log.Info("stopping: running calls may finish", "shutdown_delay", g.cfg.ShutdownDelay, "shutdown_timeout", g.cfg.ShutdownTimeout)
	g.stage.Store(draining)
	wait(g.cfg.ShutdownDelay, cut)
	g.stage.Store(closing)
	g.snapshot.Load().catalog.Close()

	ctx, cancel := context.WithTimeout(context.Background(), g.cfg.ShutdownTimeout)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-cut:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(); <-watched }()
	if server.Shutdown(ctx) == nil {
		return
	}
	g.log.Warn("cutting off the calls that still run")
	g.front.Cut(front.ErrShutdown)
	last, done := context.WithTimeout(context.Background(), answerTime)
	defer done()
	// Who has not taken the answer by then does not get it: the connections are closed next.
	_ = server.Shutdown(last)
}

// teardown ends everything that New and Run have started.
func (g *Gateway) teardown() error {
	g.snapshot.Load().catalog.Close()
	g.front.Close(front.ErrShutdown)
	errs := make([]error, len(g.engines))
	var ending sync.WaitGroup
	for i, e := range g.engines {
		ending.Go(func() { errs[i] = e.Close() })
	}
	ending.Wait()
	return errors.Join(errs...)
}

var shuttingDown = wire.AppendError(nil, nil, &wire.Error{
	Code: wire.CodeInternal, Message: "The gateway is shutting down: nothing was done. Try again in a moment.",
})

// gate turns requests away, or asks for their connection to be closed, when the gateway is on its way to the end.
func (g *Gateway) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stage := g.stage.Load(); stage >= draining {
			w.Header().Set("Connection", "close")
			if stage == closing {
				w.Header().Set("Retry-After", "1")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusServiceUnavailable)
				// A client that has gone needs no answer.
				_, _ = w.Write(shuttingDown)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// wait returns after d, or as soon as cut is closed.
func wait(d time.Duration, cut <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-cut:
	}
}
