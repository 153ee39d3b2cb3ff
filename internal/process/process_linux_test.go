package process

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// release ends a process that left its group and became the test's own child, which is then reaped.
func release(t *testing.T, pid int) {
	t.Helper()
	syscall.Kill(pid, syscall.SIGKILL)
	eventually(t, "the runaway is reaped", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
}

func TestWhatLeftTheGroupDoesNotKeepItsOutputOpen(t *testing.T) {
	p, out := start(t, play("launcher", "NEXT=stubborn", "LEAVE=1", "APART=1"))
	runaway := expectPID(t, out)
	defer release(t, runaway)
	expect(t, out, "ready")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("read %q, %v; want the end", rest, err)
	}
	if p.Stdout.rest != 0 {
		t.Error("a further Read would wait once more")
	}
}

func TestWhatLeftTheGroupIsNotReadForEver(t *testing.T) {
	p, out := start(t, play("launcher", "NEXT=chatter", "LEAVE=1", "APART=1"))
	runaway := expectPID(t, out)
	defer release(t, runaway)
	<-p.Exited()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
}

func TestWhatLeftTheGroupAndTricklesIsNotReadForEver(t *testing.T) {
	p, out := start(t, play("launcher", "NEXT=trickler", "LEAVE=1", "APART=1"))
	runaway := expectPID(t, out)
	defer release(t, runaway)
	<-p.Exited()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, out)
		read <- err
	}()
	select {
	case err := <-read:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("each word of the runaway's was waited for anew")
	}
}

func TestAGrandchildThatCannotBeEndedIsHeld(t *testing.T) {
	mortal := false
	cfg := play("launcher", "NEXT=stubborn", "LEAVE=1")
	cfg.Grace.Kill = cfg.Grace.Term
	cfg.Kill = func(group int, signal syscall.Signal) error {
		if mortal {
			return syscall.Kill(-group, signal)
		}
		return nil
	}
	p, out := start(t, cfg)
	grandchild := expectPID(t, out)
	expect(t, out, "ready")
	<-p.Exited()
	var held *HeldError
	if err := p.Close(); !errors.As(err, &held) || held.PID != p.PID() || !slices.Equal(held.Left, []int{grandchild}) {
		t.Errorf("Close: %v, want a HeldError for %d", err, grandchild)
	}
	mortal = true
	p.grace.Kill = time.Minute
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	expectGone(t, grandchild)
}

func TestAStartThatWaitsForItsTurnEndsWithItsContext(t *testing.T) {
	turn := make(chan struct{})
	theSpawner().starts <- func() { <-turn }
	defer close(turn)
	why := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := make(chan struct{})
	result := make(chan error)
	go func() {
		_, err := Start(waiting{ctx, sync.OnceFunc(func() { close(asked) })}, play("brief"))
		result <- err
	}()
	<-asked
	cancel(why)
	if err := <-result; !errors.Is(err, why) {
		t.Errorf("Start: %v", err)
	}
}

// waiting tells when somebody begins to wait for the end of a context.
type waiting struct {
	context.Context
	asked func()
}

func (w waiting) Done() <-chan struct{} {
	w.asked()
	return w.Context.Done()
}

// An idle Go program gives up threads that were locked to goroutines which ended: were children
// started from such a one, they would die with it.
func TestAChildOutlivesTheThreadThatAskedForIt(t *testing.T) {
	type result struct {
		p   *Process
		err error
	}
	started := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		p, err := Start(t.Context(), play("echo"))
		started <- result{p, err}
	}()
	r := <-started
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() { r.p.Close(); r.p.Stdout.Close(); r.p.Stderr.Close() })
	out := bufio.NewReader(r.p.Stdout)
	for range 20 {
		gone := make(chan struct{})
		go func() { defer close(gone); runtime.LockOSThread() }()
		<-gone
		if _, err := r.p.Stdin.WriteString("hello\n"); err != nil {
			t.Fatal(err)
		}
		expect(t, out, "hello")
	}
}

// A running server that forgets a helper leaves the gateway a zombie to reap.
func TestOrphansAreReapedWhileTheServerRuns(t *testing.T) {
	cfg := play("polite")
	cfg.Args = []string{"-c", `(sh -c 'echo pid $$; read line' <&3 &) 3<&0; exec "$0"`, cfg.Command}
	cfg.Command = "/bin/sh"
	p, out := start(t, cfg)
	first, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if first == "ready\n" {
		first, _ = out.ReadString('\n')
	}
	orphan := expectPID(t, bufio.NewReader(strings.NewReader(first)))
	if _, err := p.Stdin.WriteString("end\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the orphan is reaped", func() bool { return syscall.Kill(orphan, 0) == syscall.ESRCH })
	select {
	case <-p.Exited():
		t.Error("the leader has ended with its orphan")
	default:
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if watched(p.PID()) {
		t.Error("the group is still watched after its Close")
	}
}

func watched(group int) bool {
	theReaper.mu.Lock()
	defer theReaper.mu.Unlock()
	return theReaper.groups[group]
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestStartsAndStopsLeaveNothingOpen(t *testing.T) {
	cycle := func() {
		p, err := Start(t.Context(), play("brief"))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		p.Stdout.Close()
		p.Stderr.Close()
		for _, cfg := range []Config{
			{Command: "/no/such/command"}, {Command: "nowhere", Env: []string{"PATH=/bin"}},
			{Command: "/bin/sh", Dir: "/no/such/dir"}, {Command: "/bin/sh", Args: []string{"a\x00b"}},
		} {
			if _, err := Start(t.Context(), cfg); err == nil {
				t.Fatalf("%q was started", cfg.Command)
			}
		}
	}
	cycle()
	files, goroutines := descriptors(t), runtime.NumGoroutine()
	for range 30 {
		cycle()
	}
	// The sweep opens files of its own now and then.
	eventually(t, "no descriptor is left", func() bool { return descriptors(t) == files })
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
}

func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
