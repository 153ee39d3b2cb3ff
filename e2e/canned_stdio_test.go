package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// play makes this process the server that role names, and gives its exit code.
func play(role string) int {
	switch role {
	case "canned":
		return playCanned()
	case "faulty":
		return playFaulty(false)
	case "faulty-modern":
		return playFaulty(true)
	case "stdio-effects", "stdio-modern-effects":
		return playEffects(role == "stdio-modern-effects")
	case "silent":
		// Reads, so that nobody's write blocks, and never says a word.
		for in := bufio.NewReader(os.Stdin); ; {
			if _, err := in.ReadBytes('\n'); err != nil {
				return 0
			}
		}
	case "stubborn":
		// Takes no hint: neither the end of its stdin nor SIGTERM ends it.
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		playCanned()
		// Longer than any test, and not for ever, should one fail to end it.
		<-time.After(10 * time.Minute)
	}
	fmt.Fprintln(os.Stderr, "e2e: no such role:", role)
	return 2
}

// playCanned is a legacy server over stdio. The tool slow never answers.
func playCanned() int {
	return playLines(func(req cannedRequest) {
		member := ""
		switch {
		case req.Method == "initialize":
			member = fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"canned","version":"1"}}`,
				req.Params.ProtocolVersion)
		case req.Method == "ping":
			member = `"result":{}`
		case req.Method == "tools/list":
			member = `"result":` + cannedList(req, "")
		case req.Method == "tools/call" && req.Params.Name == "slow":
			return
		case req.Method == "tools/call":
			member = cannedCall(req, "")
		default:
			member = `"error":{"code":-32601,"message":"no such method"}`
		}
		// A message is one line; what the canned texts have of white space is between their members.
		fmt.Println(strings.ReplaceAll(message(req, member), "\n\t", ""))
	})
}

// playLines reads and records messages to the end of the input, and has each request answered in its turn.
func playLines(answer func(cannedRequest)) int {
	record, err := os.OpenFile(os.Getenv(recordEnv), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer record.Close()
	return readLines(func(line []byte) bool {
		if _, err := record.Write(line); err != nil {
			return false
		}
		var req cannedRequest
		if err := json.Unmarshal(line, &req); err == nil && req.ID != nil && req.Method != "" {
			answer(req)
		}
		return true
	})
}

// readLines reads messages to the end of the input, or until take wants no more.
func readLines(take func(line []byte) bool) int {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil || !take(line) {
			return 0
		}
	}
}

// A cannedStdio is how a configuration starts a legacy server over stdio, and what that has read.
type cannedStdio struct {
	role   string
	mark   string // in the environment of its processes
	record string
}

func newCannedStdio(t *testing.T, role string) cannedStdio {
	t.Helper()
	dir := t.TempDir()
	return cannedStdio{role, filepath.Base(filepath.Dir(dir)) + filepath.Base(dir), filepath.Join(dir, "record")}
}

// command is the upstream's part of a configuration: this test binary run again.
func (c cannedStdio) command() string {
	return fmt.Sprintf("    command: %s\n", quoted(self())) + c.env()
}

func (c cannedStdio) env() string {
	return fmt.Sprintf("    env: {%s: %s, %s: %s, %s: %s, %s: %s}\n",
		roleEnv, c.role, recordEnv, quoted(c.record), markEnv, quoted(c.mark), runEnv, quoted(run.id))
}

// calls are the tools/call requests that it has read.
func (c cannedStdio) calls(t *testing.T) [][]byte {
	t.Helper()
	record, err := os.ReadFile(c.record)
	if err != nil {
		t.Fatal("the canned server was never started:", err)
	}
	var calls [][]byte
	for line := range bytes.Lines(record) {
		var req cannedRequest
		if json.Unmarshal(line, &req) != nil || req.Method == "tools/call" {
			calls = append(calls, bytes.TrimRight(line, "\r\n"))
		}
	}
	return calls
}

// quoted writes a string for a configuration; YAML reads JSON.
func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}
