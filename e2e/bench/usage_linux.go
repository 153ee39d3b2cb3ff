package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A usage is what a process has used so far, as the kernel accounts it.
type usage struct {
	CPU        time.Duration // user and system, of all threads, those that have ended among them
	PeakMemory int64         // the most that was resident, bytes
}

// usage is what the process has used, and where it is a family, its children too.
func (p *process) usage() (usage, error) {
	var sum usage
	for _, pid := range p.pids() {
		u, err := processUsage(pid)
		if err != nil {
			if dead := p.alive(); dead != nil {
				return usage{}, dead
			}
			return usage{}, fmt.Errorf("asking what %s has used: %w", p.name, err)
		}
		sum.CPU += u.CPU
		sum.PeakMemory += u.PeakMemory
	}
	return sum, nil
}

// pids are those whose use counts as the process's own.
func (p *process) pids() []int {
	pids := []int{p.cmd.Process.Pid}
	if p.family {
		pids = append(pids, children(p.cmd.Process.Pid)...)
	}
	return pids
}

// forgetPeak makes what is resident now the most that was (proc_pid_clear_refs(5)).
func (p *process) forgetPeak() error {
	for _, pid := range p.pids() {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
			return fmt.Errorf("resetting the peak memory of %s: %w", p.name, err)
		}
	}
	return nil
}

func processUsage(pid int) (usage, error) {
	var used usage
	var at unix.Timespec
	// The clock of a process has the complement of its pid above three bits, of which 2 says user and system time
	// (clock_getcpuclockid(3), and CPUCLOCK_SCHED in the kernel's posix-timers_types.h).
	if err := unix.ClockGettime(int32(^pid<<3|2), &at); err != nil {
		return usage{}, fmt.Errorf("the process clock of %d: %w", pid, err)
	}
	used.CPU = time.Duration(at.Nano())
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	for line := range bytes.Lines(status) {
		name, value, _ := strings.Cut(string(line), ":")
		number, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		if name == "VmHWM" {
			n, _ := strconv.ParseInt(number, 10, 64)
			used.PeakMemory = n << 10
		}
	}
	return used, nil
}

// children are the processes that pid has started and that still run.
func children(pid int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	var found []int
	for _, file := range files {
		if parent(file) == pid {
			child, _ := strconv.Atoi(strings.Split(file, "/")[2])
			found = append(found, child)
		}
	}
	return found
}

func parent(status string) int {
	file, err := os.Open(status)
	if err != nil {
		return 0 // it has ended
	}
	defer file.Close()
	for in := bufio.NewScanner(file); in.Scan(); {
		if value, is := strings.CutPrefix(in.Text(), "PPid:"); is {
			pid, _ := strconv.Atoi(strings.TrimSpace(value))
			return pid
		}
	}
	return 0
}
