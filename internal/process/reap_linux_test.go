package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// zombie waits until pid has ended, and leaves it to be reaped.
func zombie(t *testing.T, pid int) {
	t.Helper()
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return // ECHILD where it was reaped at once
		}
	}
}

// A helper that leaves its server's group for a session of its own, and then ends, stays nobody's zombie.
func TestWhatLeftTheGroupIsReapedOnceItEnds(t *testing.T) {
	p, out := start(t, play("launcher", "NEXT=stubborn", "LEAVE=1", "APART=1"))
	runaway := expectPID(t, out)
	expect(t, out, "ready")
	<-p.Exited()
	release(t, runaway) // while the server is there
	p, out = start(t, play("launcher", "NEXT=stubborn", "LEAVE=1", "APART=1"))
	runaway = expectPID(t, out)
	expect(t, out, "ready")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	release(t, runaway) // and afterwards
}

// A zombie that only another may reap keeps no server from having ended, and is reaped once that other has ended too.
func TestAZombieOfAnotherIsNotWaitedFor(t *testing.T) {
	p, out := start(t, play("launcher", "NEXT=keeper", "LEAVE=1"))
	keeper := expectPID(t, out)
	child := expectPID(t, out)
	if err := p.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := syscall.Kill(child, 0); err != nil {
		t.Errorf("the zombie is gone (%v), so that this test shows nothing", err)
	}
	release(t, keeper)
	eventually(t, "its child is reaped too", func() bool { return syscall.Kill(child, 0) == syscall.ESRCH })
}

// Children of this program's other code are left to it, in whatever group or session they are.
func TestNoChildOfOtherCodeIsReaped(t *testing.T) {
	start(t, play("echo")) // which shows that there are handles
	if !theReaper.handles {
		t.Fatal("Go has no handles of its children here")
	}
	for _, attr := range []*syscall.SysProcAttr{nil, {Setpgid: true}, {Setsid: true}} {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = attr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		zombie(t, cmd.Process.Pid)
		theReaper.look()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%+v: wait for a child that nobody else may reap: %v", attr, err)
		}
	}
}

// Where Go has no handles of its children, only what cannot be one of them is reaped.
func TestWithoutHandlesOnlyProvenStraysAreReaped(t *testing.T) {
	for _, test := range []struct {
		name    string
		handles bool
		attr    *syscall.SysProcAttr
		session func(pid int) int
		reaped  bool
	}{
		{"its own session, with handles", true, apart(), func(pid int) int { return pid }, true},
		{"its own session", false, apart(), func(pid int) int { return pid }, false},
		{"its own group", false, &syscall.SysProcAttr{Setpgid: true}, func(int) int { s, _ := unix.Getsid(0); return s }, false},
		{"another's session", false, apart(), func(pid int) int { return pid + 1 }, true},
		{"the gateway's group", true, nil, func(int) int { s, _ := unix.Getsid(0); return s }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: test.attr}) // without a handle
			if err != nil {
				t.Fatal(err)
			}
			zombie(t, pid)
			r := &reaper{handles: test.handles}
			group := pid
			if test.attr == nil {
				group = syscall.Getpgrp()
			}
			r.reapStrays([]status{{pid: pid, parent: os.Getpid(), group: group, session: test.session(pid), zombie: true}})
			_, err = syscall.Wait4(pid, nil, 0, nil)
			if reaped := errors.Is(err, syscall.ECHILD); reaped != test.reaped {
				t.Errorf("reaped %v (%v), want %v", reaped, err, test.reaped)
			}
		})
	}
}

// However many servers are ended at once, one look serves all who ask before it begins.
func TestALookIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reaper{groups: map[int]bool{}, after: time.Now().Add(time.Minute)}
		looks := make(chan *look, 100)
		for range cap(looks) {
			go func() { looks <- r.look() }()
		}
		synctest.Wait() // the first waits for the pause to end
		first := <-looks
		for range cap(looks) - 1 {
			if l := <-looks; l != first {
				t.Fatal("two looks for those who asked at the same time")
			}
		}
		if r.look() == first {
			t.Error("a look from before it was asked for")
		}
	})
}

func TestLooksAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reaper{groups: map[int]bool{}}
		began := time.Now()
		for range 10 {
			r.look()
		}
		if took := time.Since(began); took < 9*minLookPause {
			t.Errorf("ten looks within %v", took)
		}
	})
}

// A gateway that is killed takes the servers with it that it started, and what they started sees its stdin end.
func TestAKilledGatewayLeavesNoDirectChild(t *testing.T) {
	p, _ := start(t, play("echo")) // the test becomes the reaper of the orphans
	defer p.Close()
	file := t.TempDir() + "/witness"
	for _, child := range []string{"stubborn", "launcher"} {
		t.Run(child, func(t *testing.T) {
			gateway, out := start(t, play("gateway", "CHILD="+child, "NEXT=witness", "FILE="+file))
			pids := []int{expectPID(t, out)}
			if child == "launcher" {
				pids = append(pids, expectPID(t, out))
			}
			if err := syscall.Kill(gateway.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for _, pid := range pids {
				eventually(t, "it has ended with the gateway", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
			}
		})
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "stdin ended" {
		t.Errorf("the grandchild did not see the end of its stdin: %q, %v", text, err)
	}
}
