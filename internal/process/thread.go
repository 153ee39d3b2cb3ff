package process

import (
	"context"
	"os"
	"runtime"
	"sync"
)

// A spawner is the one thread that starts every child. Linux sends a child its parent-death
// signal when the thread that started it ends, and Go ends threads as it likes: this one is
// locked to a goroutine that lives as long as the process.
type spawner struct {
	starts chan func()
}

// theSpawner is the process's own, since threads, reaping and SIGCHLD belong to a process.
var theSpawner = sync.OnceValue(func() *spawner {
	s := &spawner{starts: make(chan func())}
	adopt()
	go s.serve()
	go s.sweep()
	return s
})

func (s *spawner) serve() {
	runtime.LockOSThread()
	for start := range s.starts {
		start()
	}
}

// onThread runs start on the thread, unless ctx is done before its turn comes.
func onThread(ctx context.Context, start func() (*os.Process, error)) (*os.Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var p *os.Process
	var err error
	done := make(chan struct{})
	select {
	case theSpawner().starts <- func() { defer close(done); p, err = start() }:
		<-done
		return p, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
