//go:build unix && !linux

package process

import (
	"os"
	"syscall"
)

// groupAttr gives the child a group of its own. There is no parent-death signal outside Linux:
// children of a killed gateway see their stdin end, and no more.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// A leader is the process that was started, and names its group.
type leader struct {
	*os.Process
	state *os.ProcessState
	err   error
}

func (l *leader) signalGroup(group int, signal syscall.Signal) error {
	return syscall.Kill(-group, signal)
}

// await reaps the leader at once. While any of the group lives its id cannot be given to
// another process; after that, a signal to the group could in theory meet a new one.
func (l *leader) await() { l.state, l.err = l.Wait() }

func (l *leader) reap() (*os.ProcessState, error) { return l.state, l.err }

// members tells only whether any of the group is left. Orphans go to process 1, which reaps them.
func members(group int) []int {
	if syscall.Kill(-group, 0) != nil {
		return nil
	}
	return []int{group}
}

func adopt()      {}
func watch(int)   {}
func unwatch(int) {}

func (s *spawner) sweep() {}
