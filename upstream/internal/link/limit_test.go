package link

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
)

// A limited is a limit with the status that its test gives it.
type limited struct {
	*Limit
	state   upstream.State
	changed chan struct{}
}

func newLimited(concurrency, queue int) *limited {
	l := &limited{state: upstream.Live, changed: make(chan struct{})}
	l.Limit = NewLimit(concurrency, queue, func() (upstream.Status, <-chan struct{}) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return upstream.Status{State: l.state, Err: errors.New("why")}, l.changed
	})
	return l
}

func (l *limited) become(state upstream.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = state
	close(l.changed)
	l.changed = make(chan struct{})
}

// ask asks for a place, and gives the channel of what came of it.
func (l *limited) ask(ctx context.Context) <-chan error {
	asked := make(chan error, 1)
	go func() { asked <- l.Acquire(ctx, mcp.MethodToolsCall) }()
	synctest.Wait()
	return asked
}

func (l *limited) want(t *testing.T, want upstream.Load) {
	t.Helper()
	synctest.Wait()
	if got := l.Load(); got != want {
		t.Errorf("load %+v, want %+v", got, want)
	}
}

func given(t *testing.T, asked <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-asked:
		if err != nil {
			t.Fatalf("no place: %v", err)
		}
	default:
		t.Fatal("it still waits")
	}
}

func wantNotSent(t *testing.T, err error, cause upstream.Cause) {
	t.Helper()
	if e, ok := errors.AsType[*upstream.Error](err); !ok || e.Outcome != upstream.NotSent || e.Cause != cause {
		t.Errorf("error %v, want not-sent (%s)", err, cause)
	}
}

func TestPlacesAreBoundedAndGivenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting = 1000
		l := newLimited(1, waiting)
		given(t, l.ask(t.Context()))
		var order []int
		for i := range waiting {
			go func() {
				if err := l.Acquire(t.Context(), mcp.MethodToolsCall); err != nil {
					t.Errorf("call %d: %v", i, err)
				}
				order = append(order, i) // by who has the only place
				l.Release(mcp.MethodToolsCall)
			}()
			synctest.Wait()
		}
		l.want(t, upstream.Load{InFlight: 1, Waiting: waiting})
		for range 3 {
			wantNotSent(t, <-l.ask(t.Context()), upstream.QueueFull)
		}
		l.become(upstream.Live) // a change that ends nothing costs nobody its turn
		synctest.Wait()
		l.Release(mcp.MethodToolsCall)
		l.want(t, upstream.Load{Shed: 3})
		if len(order) != waiting || !slices.IsSorted(order) {
			t.Errorf("%d calls had the place, in order: %v", len(order), slices.IsSorted(order))
		}
	})
}

func TestNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(0, 0)
		for range 1000 {
			given(t, l.ask(t.Context()))
		}
		l.want(t, upstream.Load{InFlight: 1000})
		for range 1000 {
			l.Release(mcp.MethodToolsCall)
		}
		l.want(t, upstream.Load{})
	})
}

func TestACallThatWaitsForAPlaceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(1, 3)
		given(t, l.ask(t.Context()))
		late, cancelLate := context.WithTimeout(t.Context(), time.Second)
		defer cancelLate()
		ctx, cancel := context.WithCancel(t.Context())
		canceled, timed, next := l.ask(ctx), l.ask(late), l.ask(t.Context())
		cancel()
		wantNotSent(t, <-canceled, upstream.CanceledUnsent)
		wantNotSent(t, <-timed, upstream.DeadlineUnsent)
		l.want(t, upstream.Load{InFlight: 1, Waiting: 1})
		l.Release(mcp.MethodToolsCall)
		given(t, next)
		l.want(t, upstream.Load{InFlight: 1})
	})
}

// A place that is given to a call at the moment at which it gives up goes to the next.
func TestAPlaceIsNotLostWithTheCallThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 { // the two meet in either order
			l := newLimited(1, 2)
			given(t, l.ask(t.Context()))
			ctx, cancel := context.WithCancel(t.Context())
			first, second := l.ask(ctx), l.ask(t.Context())
			cancel()
			l.Release(mcp.MethodToolsCall)
			if <-first == nil {
				l.Release(mcp.MethodToolsCall)
			}
			given(t, second)
			l.Release(mcp.MethodToolsCall)
			l.want(t, upstream.Load{})
		}
	})
}

func TestNoCallWaitsForWhatIsGivenUp(t *testing.T) {
	for state, cause := range map[upstream.State]upstream.Cause{
		upstream.Verdict: upstream.GivenUp, upstream.Held: upstream.HeldProcess,
		upstream.Closing: upstream.ClosedByGateway, upstream.Closed: upstream.ClosedByGateway,
	} {
		t.Run(string(state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimited(1, 8)
				given(t, l.ask(t.Context()))
				waits := l.ask(t.Context())
				l.become(upstream.Backoff) // which may pass, and where those in flight end by themselves
				l.want(t, upstream.Load{InFlight: 1, Waiting: 1})
				l.become(state)
				wantNotSent(t, <-waits, cause)
				wantNotSent(t, <-l.ask(t.Context()), cause)
				l.want(t, upstream.Load{InFlight: 1})
			})
		})
	}
}

func TestNoCallWaitsAfterQuiesce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(2, 8)
		given(t, l.ask(t.Context()))
		given(t, l.ask(t.Context()))
		waits := l.ask(t.Context())
		l.Quiesce()
		l.Quiesce()
		wantNotSent(t, <-waits, upstream.ClosedByGateway)
		wantNotSent(t, <-l.ask(t.Context()), upstream.ClosedByGateway)
		l.want(t, upstream.Load{InFlight: 2})
		l.Release(mcp.MethodToolsCall)
		given(t, l.ask(t.Context())) // the live session goes on
	})
}

// A list has a place of its own, so that calls which fill the queue do not hide a server's tools, and takes none of theirs.
func TestOnePlaceIsKeptForTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(1, 1)
		given(t, l.ask(t.Context()))
		waits := l.ask(t.Context())
		if err := l.Acquire(t.Context(), mcp.MethodToolsList); err != nil {
			t.Fatalf("no place for the list: %v", err)
		}
		wantNotSent(t, l.Acquire(t.Context(), mcp.MethodToolsList), upstream.QueueFull)
		l.want(t, upstream.Load{InFlight: 2, Waiting: 1, Shed: 1})
		l.Release(mcp.MethodToolsCall)
		given(t, waits)
		l.want(t, upstream.Load{InFlight: 2, Shed: 1})
		l.Release(mcp.MethodToolsList)
		l.want(t, upstream.Load{InFlight: 1, Shed: 1})
		l.Release(mcp.MethodToolsCall)
		l.want(t, upstream.Load{Shed: 1})
	})
}

// A second list at the same time has a place as any call.
func TestTwoLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(1, 1)
		for range 2 {
			if err := l.Acquire(t.Context(), mcp.MethodToolsList); err != nil {
				t.Fatal(err)
			}
		}
		waits := l.ask(t.Context())
		l.want(t, upstream.Load{InFlight: 2, Waiting: 1})
		l.Release(mcp.MethodToolsList)
		l.want(t, upstream.Load{InFlight: 1, Waiting: 1})
		l.Release(mcp.MethodToolsList)
		given(t, waits)
	})
}
