package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// The test binary is a server over stdio that echoes, or a program that prints a token, where its first argument says so: an
// upstream's arguments and environment are then all that it was sent.
func init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case "echo-server":
		os.Exit(playEcho())
	case "print-token":
		os.Exit(playPrintToken(os.Args[2]))
	}
}

// playEcho is the echo over stdio.
func playEcho() int {
	e := &echo{}
	for _, arg := range os.Args[1:] {
		e.note(arg)
		if _, value, both := strings.Cut(arg, "="); both {
			e.note(value)
		}
	}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "ECHO_") {
			e.note(pair, value)
		}
	}
	fmt.Fprintln(os.Stderr, "started with", e.everyWay())
	note(os.Getenv(recordEnv), e.everyWay())
	return readLines(func(line []byte) bool {
		var req cannedRequest
		if json.Unmarshal(line, &req) != nil || req.ID == nil {
			return true
		}
		all := e.everyWay()
		fmt.Fprintf(os.Stderr, "%s %s\n%s\n\x1b[31m%s\n", req.Method, all, strings.Join(e.texts(), "\n"), e.line(100000))
		switch name := req.Params.Name; {
		case req.Method != "tools/call":
		case name == "die", name == "status":
			// Cut lines, at both ends of what is read at a time.
			fmt.Fprint(os.Stderr, strings.Repeat("x", 3000)+strings.Join(e.texts(), " "))
			return false
		case name == "garbage", name == "html":
			fmt.Println(all + "{")
			fmt.Println(strings.Join(e.texts(), " "))
		case name == "events":
			for _, n := range e.notifications(progressToken(line)) {
				fmt.Println(n)
			}
		}
		fmt.Println(message(req, e.answer(req)))
		return true
	})
}

// playPrintToken notes that it ran and prints what the file says, or fails and says it where it begins with `!`.
func playPrintToken(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 1
	}
	note(file+".runs", "ran")
	if failure, ok := strings.CutPrefix(string(text), "!"); ok {
		fmt.Println(failure)
		fmt.Fprintln(os.Stderr, failure)
		return 3
	}
	fmt.Print(string(text))
	return 0
}
