package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
)

// status is what /proc says of one process.
type status struct {
	pid, parent, group, session int
	zombie                      bool
}

// processes reads /proc. Without one it finds nothing; the group was sent SIGKILL all the same.
func processes() []status {
	var all []status
	for _, name := range names("/proc") {
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

// handles gives the processes that this one has a pidfd of.
func handles() map[int]bool {
	held := make(map[int]bool)
	for _, fd := range names("/proc/self/fd") {
		if target, err := os.Readlink("/proc/self/fd/" + fd); err != nil || !strings.HasSuffix(target, "[pidfd]") {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + fd)
		if err != nil {
			continue // it has just been closed
		}
		if pid, ok := parsePidfd(info); ok {
			held[pid] = true
		}
	}
	return held
}

// names lists a directory in no order.
func names(path string) []string {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	return names
}

// parseStat reads the first fields of proc_pid_stat(5): "pid (name) state ppid pgrp session". The name
// is the program's to choose and may hold spaces and parentheses.
func parseStat(stat []byte) (status, bool) {
	open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || shut < open {
		return status{}, false
	}
	fields := bytes.Fields(stat[shut+1:])
	if len(fields) < 4 {
		return status{}, false
	}
	pid, err1 := strconv.Atoi(string(bytes.TrimSpace(stat[:open])))
	parent, err2 := strconv.Atoi(string(fields[1]))
	group, err3 := strconv.Atoi(string(fields[2]))
	session, err4 := strconv.Atoi(string(fields[3]))
	if errors.Join(err1, err2, err3, err4) != nil {
		return status{}, false
	}
	state := fields[0][0]
	return status{pid, parent, group, session, state == 'Z' || state == 'X'}, true
}

// parsePidfd reads whom a pidfd names (pidfd_open(2), proc_pid_fdinfo(5)); one that was waited for is -1.
func parsePidfd(info []byte) (pid int, ok bool) {
	for line := range bytes.Lines(info) {
		if value, found := bytes.CutPrefix(line, []byte("Pid:")); found {
			pid, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			return pid, err == nil && pid > 0
		}
	}
	return 0, false
}
