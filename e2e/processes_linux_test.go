package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processes gives the ids of all processes that have name=value in their environment, this one excepted. A process
// passes its environment on, so that a mark finds every descendant, whatever became of its parents.
func processes(name, value string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []int
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended, or is another user's
		}
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		for _, entry := range bytes.Split(environ, []byte{0}) {
			if string(entry) == name+"="+value && pid != os.Getpid() {
				found = append(found, pid)
			}
		}
	}
	return found
}

// describe names each process by its id and command line.
func describe(pids []int) string {
	var b strings.Builder
	for _, pid := range pids {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		fmt.Fprintf(&b, "\n%d %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
	}
	return b.String()
}

// shell is the same behind a shell that runs script, in which $0 is the server.
func (c cannedStdio) shell(script string) string {
	return fmt.Sprintf("    command: sh\n    args: [\"-c\", %s, %s]\n", quoted(script), quoted(self())) + c.env()
}

// pids are the processes of it that run now.
func (c cannedStdio) pids() []int { return processes(markEnv, c.mark) }
