package process

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttr gives the child a group of its own, and SIGKILL should the gateway die: one that
// ignores SIGTERM must not outlive it either.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// A leader is the process that was started, and names its group.
type leader struct{ *os.Process }

func (l *leader) signalGroup(group int, signal syscall.Signal) error {
	return syscall.Kill(-group, signal)
}

// adopt makes the gateway the reaper of its descendants' orphans: else they go to process 1, and
// where that is no init they stay zombies for ever. Kernels without it leave that as it was.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// await waits for the leader's end but leaves it a zombie, so that its pid goes on naming the
// group until the group is gone.
func (l *leader) await() {
	for {
		err := unix.Waitid(unix.P_PID, l.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (l *leader) reap() (*os.ProcessState, error) { return l.Wait() }
