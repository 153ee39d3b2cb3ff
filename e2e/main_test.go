package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Names of the environment variables between this test and what it starts.
const (
	roleEnv   = "E2E_ROLE"   // what the test binary is when it runs again
	recordEnv = "E2E_RECORD" // the file in which a canned server notes each line that it reads
	runEnv    = "E2E_RUN"    // marks every process of this run
	markEnv   = "E2E_MARK"   // marks the processes of one upstream
)

// run is what all tests share.
var run struct {
	dir string // temporary, removed at the end
	id  string // in the environment of every process that the run starts
}

func TestMain(m *testing.M) {
	// Most of what the tests do is to wait for other processes.
	_ = flag.Set("test.parallel", "4")
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcp-gateway-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	run.dir, run.id = dir, filepath.Base(dir)

	code := m.Run()
	if left := leftGoroutines(); left != "" {
		fmt.Fprintf(os.Stderr, "e2e: goroutines are left over:\n%s\n", left)
		code = 1
	}
	if left := processes(runEnv, run.id); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "e2e: processes are left over: %s\n", describe(left))
		code = 1
	}
	return code
}

// leftGoroutines gives those that run this package's code, a child's pipes or a connection end a moment, and then their stacks.
func leftGoroutines() string {
	var left string
	ended := eventually(10*time.Second, func() bool {
		buf := make([]byte, 1<<20)
		var stacks []string
		// The first one is this goroutine.
		for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")[1:] {
			if !strings.Contains(stack, "os/signal.") && !strings.Contains(stack, "runtime.ensureSigM") {
				stacks = append(stacks, stack)
			}
		}
		left = strings.Join(stacks, "\n\n")
		return len(stacks) == 0
	})
	if ended {
		return ""
	}
	return left
}

// eventually asks until done answers true or the limit has passed. Use it only where nothing can be waited for.
func eventually(limit time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return done()
		}
	}
	return true
}
