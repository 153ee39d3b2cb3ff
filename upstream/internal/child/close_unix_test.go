//go:build unix

package child

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// runaway leaves its session to one that writes to stdout and stderr as long as somebody reads, says its pid and ends.
func init() {
	parts["runaway"] = func() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PLAY=trickler")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		fmt.Printf("\n[%d]\n", cmd.Process.Pid)
	}
	parts["trickler"] = func() {
		for range time.Tick(10 * time.Millisecond) {
			fmt.Println("noise")
			fmt.Fprintln(os.Stderr, "noise")
		}
	}
}

func TestARunawayThatKeepsWritingHoldsUpNeitherReadNorClose(t *testing.T) {
	c := start(t, play("runaway"))
	line, err := c.Read()
	var runaway int
	if fmt.Sscanf(string(line), "[%d]", &runaway); runaway == 0 {
		t.Fatalf("read %q, %v; want a pid", line, err)
	}
	t.Cleanup(func() { syscall.Kill(runaway, syscall.SIGKILL) })
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read() // no Close has been called
		ended <- err
		ended <- c.Close()
	}()
	for _, want := range []error{io.EOF, nil} {
		select {
		case err := <-ended:
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("the end waits for one that left the group")
		}
	}
}

func TestClosingEndsGrandchildrenToo(t *testing.T) {
	for _, script := range []string{
		`"$0" & echo "[$!]"; wait`,   // a launcher that stays
		`"$0" & echo "[$!]"; exit 0`, // one that leaves
		`exec 3<&0; "$0" <&3 & echo "[$!]"; wait`,
		`trap '' TERM; "$0" & echo "[$!]"; wait`,
	} {
		t.Run(script, func(t *testing.T) {
			cfg := play("deaf", "PATH=/bin")
			cfg.Command, cfg.Args = "sh", []string{"-c", script, os.Args[0]}
			c := start(t, cfg)
			var grandchild int
			for range 2 { // its own line comes before or after
				line, err := c.Read()
				if errors.Is(err, io.EOF) && grandchild != 0 && strings.HasSuffix(script, "exit 0") {
					break // the end of the leader may end the grandchild before it has written
				}
				if err != nil {
					t.Fatal(err)
				}
				fmt.Sscanf(string(line), "[%d]", &grandchild)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			for _, pid := range []int{grandchild, c.PID()} {
				if err := syscall.Kill(pid, 0); pid == 0 || !errors.Is(err, syscall.ESRCH) {
					t.Errorf("process %d is still there (%v)", pid, err)
				}
			}
		})
	}
}

func TestReadEndsWhenTheLeaderLeavesItsStdoutToAnother(t *testing.T) {
	cfg := play("deaf", "PATH=/bin")
	cfg.Command, cfg.Args = "sh", []string{"-c", `"$0" & exit 0`, os.Args[0]}
	c := start(t, cfg)
	<-c.Exited()
	for {
		if line, err := c.Read(); err != nil { // no Close has been called
			expectEnd(t, c)
			return
		} else if string(line) != `{"ready":true}` {
			t.Fatalf("read %q", line)
		}
	}
}

func TestWhatWasSaidBeforeAnExitIsRead(t *testing.T) {
	c := start(t, play("say", "SAY={\"last\":1}\n{\"words\":2}", "MUTTER=cannot go on\n", "EXIT=3"))
	<-c.Exited()
	expect(t, c, `{"last":1}`)
	expect(t, c, `{"words":2}`)
	expectEnd(t, c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if c.Exit() != "exit status 3" || c.Tail() != "cannot go on" {
		t.Errorf("exit %q, tail %q", c.Exit(), c.Tail())
	}
}

func TestAServerThatClosesItsStdoutLivesUntilClose(t *testing.T) {
	c := start(t, play("mute"))
	expectEnd(t, c)
	if _, err := c.Write([]byte(`{"still":"there"}`)); err != nil {
		t.Errorf("write: %v", err)
	}
	if c.Exit() != "" {
		t.Errorf("exit %q of a child that runs", c.Exit())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if c.Exit() != "exit status 0" {
		t.Errorf("exit %q", c.Exit())
	}
}

func TestCloseEndsAReadThatWaits(t *testing.T) {
	c := start(t, play("echo"))
	read := make(chan error)
	go func() {
		_, err := c.Read()
		read <- err
	}()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err == nil || err.Error() != "EOF" {
		t.Errorf("read: %v, want EOF", err)
	}
}

func TestCloseIsSharedAndMayBeRepeated(t *testing.T) {
	var sent []syscall.Signal // by one attempt, so by one goroutine
	cfg := play("deaf")
	cfg.Kill = func(group int, signal syscall.Signal) error {
		sent = append(sent, signal)
		return syscall.Kill(-group, signal)
	}
	c := start(t, cfg)
	expect(t, c, `{"ready":true}`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := c.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if c.Exit() != "signal: killed" {
				t.Errorf("exit %q when Close has returned", c.Exit())
			}
		})
	}
	all.Wait()
	if err := c.Close(); err != nil {
		t.Errorf("Close once more: %v", err)
	}
	if !slices.Equal(sent, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}) {
		t.Errorf("sent %v, want SIGTERM and SIGKILL once", sent)
	}
}

func TestAHeldChildIsReportedAndReleasedByALaterClose(t *testing.T) {
	var mortal atomic.Bool
	cfg := play("shut")
	cfg.Grace.Kill = cfg.Grace.Stdin
	cfg.Kill = func(group int, signal syscall.Signal) error {
		if !mortal.Load() {
			return nil
		}
		return syscall.Kill(-group, signal)
	}
	c := start(t, cfg)
	expect(t, c, `{"ready":true}`)
	pending := make(chan error) // a call that waits for its answer
	go func() {
		_, err := c.Read()
		pending <- err
	}()
	if n, err := c.Write([]byte(`{"call":1}`)); n != 0 || err == nil {
		t.Fatalf("wrote %d, %v to a stdin that is shut", n, err)
	}
	for range 2 {
		var held *HeldError
		if err := c.Close(); !errors.As(err, &held) || held.PID != c.PID() {
			t.Fatalf("Close: %v, want a HeldError with pid %d", err, c.PID())
		}
	}
	if err := <-pending; err == nil {
		t.Error("a held child still answers")
	}
	if c.Exit() != "" {
		t.Errorf("exit %q of a held child", c.Exit())
	}
	mortal.Store(true)
	for c.Close() != nil { // its grace is short
	}
	if c.Exit() != "signal: killed" {
		t.Errorf("exit %q", c.Exit())
	}
}

func TestAHeldChildThatEndsByItselfIsReleased(t *testing.T) {
	cfg := play("deaf")
	cfg.Grace.Kill = cfg.Grace.Stdin
	cfg.Kill = func(int, syscall.Signal) error { return syscall.EPERM }
	c := start(t, cfg)
	expect(t, c, `{"ready":true}`)
	var held *HeldError
	if err := c.Close(); !errors.As(err, &held) || !errors.Is(err, syscall.EPERM) {
		t.Fatalf("Close: %v, want a HeldError for EPERM", err)
	}
	if err := syscall.Kill(c.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.Exited()
	if err := c.Close(); err != nil {
		t.Errorf("Close of one that is gone: %v", err)
	}
}

func TestAFailedStartSaysWhy(t *testing.T) {
	_, err := Start(t.Context(), Config{Command: "no-such-server", Env: []string{"PATH=/bin"}})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `"no-such-server"`) {
		t.Errorf("Start: %v", err)
	}
}
