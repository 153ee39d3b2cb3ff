package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"mcp-gateway/gateway/front"
)

const (
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

// A door is a listener and the server behind it.
type door struct {
	server *http.Server
	served chan struct{} // closed when the server takes no connections any more
	ended  chan struct{} // closed when a reload has done with it
}

// open serves requests that come in on ln.
func (g *Gateway) open(ln net.Listener) *door {
	d := &door{served: make(chan struct{}), ended: make(chan struct{})}
	d.server = &http.Server{
		Handler:           http.HandlerFunc(g.serveHTTP),
		BaseContext:       g.front.Load().BaseContext,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(d.served)
		if err := d.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			select {
			case g.failed <- fmt.Errorf("serving on %s: %w", ln.Addr(), err):
			default:
			}
		}
	}()
	return d
}

// move serves at another address from here on. At the one before no connection is taken any more, and its calls finish.
func (g *Gateway) move(ln net.Listener) {
	before := g.doors[len(g.doors)-1]
	g.doors = slices.DeleteFunc(g.doors, func(d *door) bool {
		select {
		case <-d.ended:
			return true
		default:
			return false
		}
	})
	g.doors = append(g.doors, g.open(ln))
	limit := g.snapshot.Load().cfg.ShutdownTimeout
	g.retiring.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		before.shut(ctx)
		_ = before.server.Close()
		close(before.ended)
	})
}

// shut takes no connection any more and waits for the calls that run. It reports whether all have finished.
func (d *door) shut(ctx context.Context) bool {
	finished := d.server.Shutdown(ctx) == nil
	<-d.served
	return finished
}

// shutAll is shut for each.
func shutAll(ctx context.Context, doors []*door) bool {
	finished := make([]bool, len(doors))
	var shutting sync.WaitGroup
	for i, d := range doors {
		shutting.Go(func() { finished[i] = d.shut(ctx) })
	}
	shutting.Wait()
	return !slices.Contains(finished, false)
}

// Run starts every upstream, serves on ln as soon as each has listed or failed or start_grace has passed, and when ctx
// ends drains: new calls for shutdown_delay, running ones for shutdown_timeout, then everything is torn down. A closed cut
// ends the drain early. It returns when nothing runs any more; an error names each process that could not be ended.
func (g *Gateway) Run(ctx context.Context, ln net.Listener, cut <-chan struct{}) error {
	endAdmin := g.openAdmin(g.opts.Admin)
	snap := g.snapshot.Load()
	for _, m := range snap.members {
		m.Start()
	}
	snap.catalog.Start()
	grace, cancel := context.WithTimeout(ctx, snap.cfg.StartGrace)
	snap.catalog.Settled(grace)
	cancel()

	g.reloading.Lock()
	g.doors = []*door{g.open(ln)}
	g.reloading.Unlock()
	g.opened.Store(true)
	g.retiring.Go(g.reloads)
	g.retiring.Go(g.watch)
	// As the lines of the upstreams, it goes out on its own: a terminal that takes nothing holds up no call, and no end.
	_, _ = g.lines.Write([]byte(g.opts.Banner))
	var failed error
	select {
	case failed = <-g.failed:
	case <-ctx.Done():
	}
	// A reload ends in whatever phase it is; the door that it leaves is the one that is closed.
	g.end()
	g.reloading.Lock()
	doors := g.doors
	g.reloading.Unlock()
	if failed == nil {
		g.drain(doors, cut)
	}
	// A client that takes nothing must not hold up the ending of the children.
	for _, d := range doors {
		_ = d.server.Close()
		<-d.served
	}
	err := errors.Join(failed, g.teardown())
	endAdmin()
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

// drain ends the serving: whoever sends requests here is told to stop, then the door closes, then the running calls finish.
func (g *Gateway) drain(doors []*door, cut <-chan struct{}) {
	snap := g.snapshot.Load()
	g.log.Info("stopping: running calls may finish", "shutdown_delay", snap.cfg.ShutdownDelay, "shutdown_timeout", snap.cfg.ShutdownTimeout)
	g.stage.Store(draining)
	wait(snap.cfg.ShutdownDelay, cut)
	g.stage.Store(closing)
	snap.catalog.Close()
	for _, m := range snap.members {
		m.Quiesce()
	}
	f := g.front.Load()
	f.EndStreams()

	ctx, cancel := context.WithTimeout(context.Background(), snap.cfg.ShutdownTimeout)
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
	if shutAll(ctx, doors) {
		return
	}
	g.log.Warn("cutting off the calls that still run")
	f.Cut(front.ErrShutdown)
	last, done := context.WithTimeout(context.Background(), answerTime)
	defer done()
	// Who has not taken the answer by then does not get it: the connections are closed next.
	_ = shutAll(last, doors)
}

// teardown ends everything that New, Run and the reloads have started.
func (g *Gateway) teardown() error {
	snap := g.snapshot.Load()
	snap.catalog.Close()
	g.front.Load().Close(front.ErrShutdown)
	errs := make([]error, len(snap.members))
	var ending sync.WaitGroup
	for i, m := range snap.members {
		ending.Go(func() { errs[i] = m.Close() })
	}
	ending.Wait()
	g.retiring.Wait()
	return errors.Join(append(errs, g.release())...)
}

// serveHTTP gives a request to the front, unless the gateway is at its end: on the way there it asks for the connection to be closed.
func (g *Gateway) serveHTTP(w http.ResponseWriter, r *http.Request) {
	switch g.stage.Load() {
	case draining:
		w.Header().Set("Connection", "close")
	case closing:
		front.RefuseShutdown(w)
		return
	}
	g.front.Load().ServeHTTP(w, r)
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
