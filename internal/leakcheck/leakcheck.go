// Package leakcheck ends a test run in failure if the tests left a goroutine or a child process
// behind. A package that starts either calls Main from its TestMain; only test files import it.
package leakcheck

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// grace is how long what the tests started may take to end after the last of them.
const grace = 5 * time.Second

// Main runs the tests and ends the process with their exit code, or with 1 where the tests
// passed and something that they started still runs. Children are looked for on Linux only.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if left := wait(grace); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "FAIL: the tests left running:\n\n%s\n", strings.Join(left, "\n\n"))
			code = 1
		}
	}
	os.Exit(code)
}

// wait returns what is left after at most d, and returns at once when nothing is.
func wait(d time.Duration) []string {
	deadline := time.Now().Add(d)
	for {
		left := slices.Concat(goroutines(), children())
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// lasting names the functions whose goroutines live as long as the process by design.
var lasting = []string{
	"os/signal.loop(",
	"os/signal.signal_recv(",
	"runtime.ensureSigM",
	"mcp-gateway/internal/process.(*spawner).serve(", // the thread that starts all children
	"mcp-gateway/internal/process.(*spawner).sweep(", // reaps orphans
}

// goroutines returns the stack of each goroutine that should have ended. The calling one comes
// first in the dump and is left out.
func goroutines() []string {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := strings.Split(strings.TrimSpace(string(buf)), "\n\n")
	return slices.DeleteFunc(stacks[1:], func(stack string) bool {
		return slices.ContainsFunc(lasting, func(name string) bool { return strings.Contains(stack, "\n"+name) })
	})
}
