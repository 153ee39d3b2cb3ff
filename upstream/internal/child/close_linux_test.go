package child

import (
	"os"
	"runtime"
	"testing"
	"time"
)

func TestStartsAndStopsLeaveNothingOpen(t *testing.T) {
	cycle := func(part string) {
		c, err := Start(t.Context(), play(part, "MUTTER=hello\n", "EXIT=1"))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for name, done := range map[string]chan struct{}{"stderr": c.stderr, "notes": c.notes.done, "leader": c.leader} {
			select {
			case <-done:
			default:
				t.Errorf("the goroutine of %s runs on after Close", name)
			}
		}
		if _, err := Start(t.Context(), Config{Command: "/no/such/server"}); err == nil {
			t.Fatal("nothing was started")
		}
	}
	cycle("echo")
	files, goroutines := descriptors(t), runtime.NumGoroutine()
	for range 15 {
		cycle("echo")
		cycle("say")
	}
	// The last goroutine is on its way out, and orphans are looked for in /proc now and then.
	deadline := time.After(20 * time.Second)
	for descriptors(t) != files || runtime.NumGoroutine() > goroutines {
		select {
		case <-deadline:
			t.Fatalf("%d descriptors and %d goroutines, %d and %d before",
				descriptors(t), runtime.NumGoroutine(), files, goroutines)
		default:
			runtime.Gosched()
		}
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
