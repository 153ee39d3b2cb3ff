//go:build !unix

package process

import (
	"os"
	"syscall"
)

// groupAttr asks for nothing: there are no process groups to signal here. Only the process that
// was started is ended; its descendants see their stdin end, and no more.
func groupAttr() *syscall.SysProcAttr { return nil }

// A leader is the process that was started.
type leader struct {
	*os.Process
	state *os.ProcessState
	err   error
}

// signalGroup ends the process for SIGKILL. There is no gentler signal, so SIGTERM is none.
func (l *leader) signalGroup(_ int, signal syscall.Signal) error {
	if signal != syscall.SIGKILL {
		return nil
	}
	return l.Kill()
}

func (l *leader) await() { l.state, l.err = l.Wait() }

func (l *leader) reap() (*os.ProcessState, error) { return l.state, l.err }

func members(int) []int { return nil }

func adopt()      {}
func watch(int)   {}
func unwatch(int) {}

func (s *spawner) sweep() {}
