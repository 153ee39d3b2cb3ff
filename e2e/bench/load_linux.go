package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A target is one call of one server, ready to be made many times. It is used by one load at a time.
type target struct {
	name    string // of the server and the call, for errors
	address string
	request template // the whole HTTP request
	answer  template // the body of its answer
	// sameSize says that answers differ, and are compared by their size alone.
	sameSize bool

	open []*connection // kept between loads
	used time.Time
}

// prepare makes the call once, holds the answer against check, and takes it as the template of all later ones: they must
// be the same bytes but for their id.
func prepare(ctx context.Context, name, address string, request []byte, check func(i id, body []byte) error) (*target, error) {
	t := &target{name: name, address: address, request: newTemplate(request, hole)}
	i := nextID()
	c, err := dial(address, t.request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer c.conn.Close()
	defer context.AfterFunc(ctx, func() { c.conn.Close() })()
	var body []byte
	if err := c.call(i, func(part []byte) error { body = append(body, part...); return nil }); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := check(i, body); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t.answer = newTemplate(body, i.String())
	return t, nil
}

// close closes the connections that are kept.
func (t *target) close() {
	for _, c := range t.open {
		c.conn.Close()
	}
	t.open = nil
}

// A limit ends a load: a time, or a number of calls, whichever comes first; zero is none.
type limit struct {
	time  time.Duration
	calls int
}

// A result is what came of a load.
type result struct {
	calls     int
	elapsed   time.Duration
	latencies histogram
}

// perSecond is the throughput.
func (r *result) perSecond() float64 { return float64(r.calls) / r.elapsed.Seconds() }

// kept is how long a connection may have been idle and still be used: servers close those that are idle.
const kept = 30 * time.Second

// load makes the call again and again on a number of connections, each with one call at a time, until the limit. The first
// answer that is not the one due ends it with an error.
func load(ctx context.Context, t *target, connections int, until limit) (*result, error) {
	if time.Since(t.used) > kept {
		t.close()
	}
	defer func() { t.used = time.Now() }()
	for len(t.open) > connections {
		last := len(t.open) - 1
		t.open[last].conn.Close()
		t.open = t.open[:last]
	}
	for len(t.open) < connections {
		c, err := dial(t.address, t.request)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		t.open = append(t.open, c)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		calls   atomic.Int64
		workers sync.WaitGroup
		all     = make([]histogram, connections)
		began   = time.Now()
	)
	for n := range t.open {
		workers.Go(func() {
			w := worker{t, t.open[n], &all[n]}
			if err := w.repeat(ctx, until, &calls, began); err != nil {
				cancel(fmt.Errorf("%s: %w", t.name, err))
			}
			t.open[n] = w.connection
		})
	}
	workers.Wait()
	r := &result{elapsed: time.Since(began)}
	if err := context.Cause(ctx); err != nil {
		t.close()
		return nil, err
	}
	for n := range all {
		r.latencies.add(&all[n])
	}
	r.calls = r.latencies.count()
	return r, nil
}

// A worker makes calls on one connection.
type worker struct {
	target     *target
	connection *connection
	latencies  *histogram
}

// repeat makes calls until the limit or the end of ctx, which breaks off the last one.
func (w *worker) repeat(ctx context.Context, until limit, calls *atomic.Int64, began time.Time) error {
	defer w.breakOff(ctx)()
	var compare comparison
	for ctx.Err() == nil {
		if n := calls.Add(1); until.calls > 0 && n > int64(until.calls) {
			return nil
		}
		if w.connection.closing {
			next, err := dial(w.target.address, w.target.request)
			if err != nil {
				return err
			}
			w.connection.conn.Close()
			w.connection = next
			defer w.breakOff(ctx)()
		}
		i := nextID()
		compare.begin(w.target.answer, i)
		take, end := compare.feed, compare.end
		if w.target.sameSize {
			take, end = compare.count, compare.sameSize
		}
		sent := time.Now()
		err := w.connection.call(i, take)
		took := time.Since(sent)
		if err == nil {
			err = end()
		}
		if err != nil {
			return fmt.Errorf("call %v: %w", i, err)
		}
		w.latencies.record(took)
		if until.time > 0 && time.Since(began) >= until.time {
			return nil
		}
	}
	return nil
}

// breakOff closes the connection at the end of ctx, until what it returns is called.
func (w *worker) breakOff(ctx context.Context) (undo func() bool) {
	c := w.connection
	return context.AfterFunc(ctx, func() { c.conn.Close() })
}
