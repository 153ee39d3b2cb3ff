package leakcheck

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// children describes each child of this process, dead and not waited for ones included.
func children() []string {
	self := strconv.Itoa(os.Getpid())
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var left []string
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		// proc_pid_stat(5): the name is in parentheses and may hold some itself.
		text := string(stat)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(fields) > 1 && fields[1] == self {
			pid := filepath.Base(filepath.Dir(file))
			line, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
			left = append(left, fmt.Sprintf("child process %s, state %s: %s %s", pid, fields[0],
				text[:strings.LastIndexByte(text, ')')+1], strings.ReplaceAll(string(line), "\x00", " ")))
		}
	}
	return left
}
