package exchange

import (
	"context"
	"sync"
)

// An either is a context that ends with its Context or with life. Most that are asked for a token have one and never wait, so
// that what the second end takes is made only once somebody does.
type either struct {
	context.Context
	life context.Context

	mu   sync.Mutex
	both context.Context // nil until somebody waits
	end  func()
}

// Done is closed at whichever end comes first.
func (e *either) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.both == nil {
		both, cancel := context.WithCancelCause(e.Context)
		unhook := context.AfterFunc(e.life, func() { cancel(errClosed) })
		e.both, e.end = both, func() {
			unhook()
			cancel(nil)
		}
	}
	return e.both.Done()
}

// Err is nil until Done is closed, or would be by the end of Context.
func (e *either) Err() error { return e.now().Err() }

// Value finds also what context.Cause looks for.
func (e *either) Value(key any) any { return e.now().Value(key) }

func (e *either) now() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.both != nil {
		return e.both
	}
	return e.Context
}

// stop frees what a wait has taken.
func (e *either) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.end != nil {
		e.end()
	}
}
