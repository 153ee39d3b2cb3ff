//go:build unix

package process

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestACommandTalksOverItsPipesAndEndsWithItsStdin(t *testing.T) {
	cfg := play("echo")
	cfg.Grace.Stdin = time.Minute
	cfg.Kill = func(group int, signal syscall.Signal) error {
		if signal == syscall.SIGTERM {
			t.Error("SIGTERM was sent to a command that ended with its stdin")
		}
		return nil
	}
	p, out := start(t, cfg)
	if _, err := io.WriteString(p.Stdin, "hello\n"); err != nil {
		t.Fatal(err)
	}
	expect(t, out, "hello")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if state := p.State(); state == nil || !state.Success() {
		t.Errorf("state %v, want success", state)
	}
	expectGone(t, p.PID())
}

func TestTheEnvironmentIsTheGivenOneAlone(t *testing.T) {
	t.Setenv("GATEWAY_SECRET", "do-not-inherit")
	cfg := play("environ")
	cfg.Dir = t.TempDir()
	_, out := start(t, cfg)
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(text), "PLAY=environ\nGORACE=atexit_sleep_ms=0\n"; !strings.HasPrefix(got, want) || strings.Contains(got, "SECRET") {
		t.Errorf("the child saw %q", got)
	}
	if !strings.Contains(string(text), "cwd "+cfg.Dir+"\n") {
		t.Errorf("the child ran elsewhere: %q", text)
	}
}

func TestNoEnvironmentIsNone(t *testing.T) {
	p, out := start(t, Config{Command: "/usr/bin/env"})
	text, err := io.ReadAll(out)
	if err != nil || len(text) > 0 {
		t.Errorf("env printed %q, %v; want nothing", text, err)
	}
	<-p.Exited()
}

func TestSIGTERMComesBeforeSIGKILL(t *testing.T) {
	cfg := play("polite")
	cfg.Grace.Term = time.Minute
	p, out := start(t, cfg)
	expect(t, out, "ready")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, out, "asked to end")
	if !p.State().Success() {
		t.Errorf("state %v, want success", p.State())
	}
}

func TestOneThatIgnoresSIGTERMIsKilled(t *testing.T) {
	p, out := start(t, play("stubborn"))
	expect(t, out, "ready")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if status, ok := p.State().Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("ended as %v, want SIGKILL", p.State())
	}
	expectGone(t, p.PID())
}

func TestAGrandchildEndsWithTheGroup(t *testing.T) {
	for _, leave := range []string{"", "LEAVE=1"} {
		for _, next := range []string{"echo", "polite", "stubborn"} {
			t.Run(next+leave, func(t *testing.T) {
				p, out := start(t, play("launcher", "NEXT="+next, leave))
				grandchild := expectPID(t, out)
				if next != "echo" {
					expect(t, out, "ready")
				}
				if leave != "" {
					<-p.Exited()
				}
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
				expectGone(t, grandchild)
				expectGone(t, p.PID())
			})
		}
	}
}

func TestWhatWasWrittenBeforeTheEndIsStillRead(t *testing.T) {
	p, out := start(t, play("polite"))
	expect(t, out, "ready")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err != nil || string(rest) != "asked to end\n" {
		t.Errorf("read %q, %v", rest, err)
	}
}

func TestAnOutputEndsWithItsClose(t *testing.T) {
	p, _ := start(t, play("echo"))
	p.Stdout.Close()
	if n, err := p.Stdout.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d, %v; want the end", n, err)
	}
}

func TestOneThatCannotBeEndedIsHeldUntilALaterClose(t *testing.T) {
	var alive atomic.Bool
	alive.Store(true)
	var sent []syscall.Signal
	cfg := play("stubborn")
	cfg.Grace.Kill = 50 * time.Millisecond
	cfg.Kill = func(group int, signal syscall.Signal) error {
		sent = append(sent, signal)
		if alive.Load() {
			return nil
		}
		return syscall.Kill(-group, signal)
	}
	p, out := start(t, cfg)
	expect(t, out, "ready")
	for range 2 {
		var held *HeldError
		if err := p.Close(); !errors.As(err, &held) {
			t.Fatalf("Close: %v, want a HeldError", err)
		}
		if held.PID != p.PID() || len(held.Left) != 1 || held.Left[0] != p.PID() {
			t.Errorf("held %+v, want pid %d", held, p.PID())
		}
	}
	if p.State() != nil {
		t.Errorf("state %v of a process that runs", p.State())
	}
	if _, err := io.ReadAll(out); err != nil {
		t.Errorf("the output of a held process: %v, want its end", err)
	}
	alive.Store(false)
	p.grace.Kill = time.Minute
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close once more: %v", err)
	}
	want := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGKILL}
	if len(sent) != len(want) {
		t.Fatalf("sent %v, want %v", sent, want)
	}
	for i := range want {
		if sent[i] != want[i] {
			t.Fatalf("sent %v, want %v", sent, want)
		}
	}
}

func TestClosesAtTheSameTimeShareOneAttempt(t *testing.T) {
	var terms atomic.Int32
	cfg := play("stubborn")
	cfg.Kill = func(group int, signal syscall.Signal) error {
		if signal == syscall.SIGTERM {
			terms.Add(1)
		}
		return syscall.Kill(-group, signal)
	}
	p, out := start(t, cfg)
	expect(t, out, "ready")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := p.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			expectGone(t, p.PID())
		})
	}
	all.Wait()
	if n := terms.Load(); n != 1 {
		t.Errorf("SIGTERM was sent %d times, want once", n)
	}
}

func TestCloseReleasesAWriteToAFullPipe(t *testing.T) {
	p, out := start(t, play("stubborn"))
	expect(t, out, "ready")
	written := make(chan error)
	began := make(chan struct{})
	go func() {
		close(began)
		_, err := p.Stdin.Write(make([]byte, 4<<20))
		written <- err
	}()
	<-began
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err == nil {
		t.Error("4 MiB were written to a process that reads nothing")
	}
}

func TestAContextEndsTheStartOnly(t *testing.T) {
	why := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(context.Background())
	p, err := Start(ctx, play("echo"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stderr.Close()
	defer p.Stdout.Close()
	cancel(why)
	io.WriteString(p.Stdin, "still here\n")
	expect(t, bufio.NewReader(p.Stdout), "still here")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if p, err := Start(ctx, play("echo")); p != nil || !errors.Is(err, why) {
		t.Errorf("Start with a context that is done: %v, %v", p, err)
	}
}
