package leakcheck

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func leftOver(began, gone chan struct{}) {
	close(began)
	<-gone
}

func TestALeftOverGoroutineIsFound(t *testing.T) {
	began, gone := make(chan struct{}), make(chan struct{})
	go leftOver(began, gone)
	<-began
	if found := strings.Join(wait(time.Nanosecond), "\n"); !strings.Contains(found, "leakcheck.leftOver(") {
		t.Errorf("a goroutine in leftOver was not found in:\n%s", found)
	}
	close(gone) // Main of this package sees that it is no longer found
}

func TestALeftOverChildIsFound(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("children are looked for on Linux only")
		return
	}
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if found := strings.Join(children(), "\n"); !strings.Contains(found, "cat") {
		t.Errorf("a running cat was not found in %q", found)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if found := children(); len(found) > 0 {
		t.Errorf("found %q after the child was waited for", found)
	}
}
