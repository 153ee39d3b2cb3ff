package process

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

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

// reaping holds the groups whose orphans are reaped. The lock also covers a look at /proc and
// the waits that follow from it, so that no pid seen there is reaped, and used again, between.
var reaping = struct {
	sync.Mutex
	groups map[int]bool
}{groups: make(map[int]bool)}

func watch(group int) {
	reaping.Lock()
	defer reaping.Unlock()
	reaping.groups[group] = true
}

func unwatch(group int) {
	reaping.Lock()
	defer reaping.Unlock()
	delete(reaping.groups, group)
}

// sweep reaps the orphans of running servers: one that starts helpers and forgets them would
// otherwise fill the process table. It never waits for just any child, since others of the
// program wait for theirs.
func (s *spawner) sweep() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for range ended {
		reaping.Lock()
		reapOrphans(func(group int) bool { return reaping.groups[group] })
		reaping.Unlock()
		time.Sleep(time.Second) // a burst of deaths costs one look
	}
}

// members reaps the dead orphans of a group and returns who is alive in it, its leader aside.
// Zombies whose parent is not the gateway are not counted: nobody else can reap them.
func members(group int) []int {
	reaping.Lock()
	defer reaping.Unlock()
	return reapOrphans(func(g int) bool { return g == group })
}

func reapOrphans(in func(group int) bool) []int {
	var alive []int
	self := os.Getpid()
	for _, s := range processes() {
		switch {
		case !in(s.group) || s.pid == s.group:
		case !s.zombie:
			alive = append(alive, s.pid)
		case s.parent == self:
			// Not reaped means that threads of it still run although its first one has ended.
			if pid, err := syscall.Wait4(s.pid, nil, syscall.WNOHANG, nil); err == nil && pid == 0 {
				alive = append(alive, s.pid)
			}
		}
	}
	return alive
}

// status is what /proc says of one process.
type status struct {
	pid, parent, group int
	zombie             bool
}

// processes reads /proc. Without one it finds nothing; the group was sent SIGKILL all the same.
func processes() []status {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []status
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has just ended
		}
		if s, ok := parseStat(stat); ok {
			all = append(all, s)
		}
	}
	return all
}

// parseStat reads the first fields of proc_pid_stat(5): "pid (name) state ppid pgrp". The name
// is the program's to choose and may hold spaces and parentheses.
func parseStat(stat []byte) (status, bool) {
	open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || shut < open {
		return status{}, false
	}
	fields := bytes.Fields(stat[shut+1:])
	if len(fields) < 3 {
		return status{}, false
	}
	pid, err1 := strconv.Atoi(string(bytes.TrimSpace(stat[:open])))
	parent, err2 := strconv.Atoi(string(fields[1]))
	group, err3 := strconv.Atoi(string(fields[2]))
	if errors.Join(err1, err2, err3) != nil {
		return status{}, false
	}
	state := fields[0][0]
	return status{pid, parent, group, state == 'Z' || state == 'X'}, true
}
