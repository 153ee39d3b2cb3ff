package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcp-gateway/internal/leakcheck"
)

// A test that needs a server starts the test binary again; PLAY names which part it plays.
func TestMain(m *testing.M) {
	if part := os.Getenv("PLAY"); part != "" {
		parts[part]()
		os.Exit(0)
	}
	leakcheck.Main(m)
}

var parts = map[string]func(){
	// echo answers each line with the same, and ends with its stdin.
	"echo": func() { io.Copy(os.Stdout, os.Stdin) },

	// say prints what SAY holds, on stderr what MUTTER holds, and ends with EXIT.
	"say": func() {
		os.Stderr.WriteString(os.Getenv("MUTTER"))
		os.Stdout.WriteString(os.Getenv("SAY"))
		if os.Getenv("EXIT") != "" {
			os.Exit(3)
		}
	},

	// drip prints what SAY holds byte by byte.
	"drip": func() {
		for _, b := range []byte(os.Getenv("SAY")) {
			os.Stdout.Write([]byte{b})
		}
	},

	// large prints a line of 5 MB, then one over any limit, then a small one.
	"large": func() {
		w := bufio.NewWriter(os.Stdout)
		fmt.Fprintf(w, `{"pad":"%s"}`+"\n", strings.Repeat("x", 5<<20))
		fmt.Fprintf(w, `{"id":7,"pad":"%s","id":8}`+"\n", strings.Repeat("y", 9<<20))
		fmt.Fprintln(w, `{"last":true}`)
		w.Flush()
	},

	// endless prints one line without end until it is ended.
	"endless": func() {
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	},

	// deaf never reads, ignores SIGTERM, and says so.
	"deaf": func() {
		stay(`{"ready":true}`)
	},

	// shut closes its stdin, says so, and goes on until it is killed.
	"shut": func() {
		os.Stdin.Close()
		stay(`{"ready":true}`)
	},

	// mute closes its stdout and goes on until its stdin ends.
	"mute": func() {
		os.Stdout.Close()
		io.Copy(io.Discard, os.Stdin)
	},

	// loud writes a thousand lines to stderr before its one line to stdout.
	"loud": func() {
		for i := range 1000 {
			fmt.Fprintf(os.Stderr, "line %d %s\n", i, strings.Repeat("z", 300))
		}
		fmt.Println(`{"done":true}`)
		io.Copy(io.Discard, os.Stdin)
	},
}

// stay ignores SIGTERM and goes on until it is killed.
func stay(ready string) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	fmt.Println(ready)
	select {}
}

// play says how to start a part. Under the race detector a program otherwise takes a second to end.
func play(part string, env ...string) Config {
	return Config{
		Command: os.Args[0],
		Env:     append([]string{"PLAY=" + part, "GORACE=atexit_sleep_ms=0"}, env...),
		Grace:   Grace{Stdin: 50 * time.Millisecond, Term: 50 * time.Millisecond, Kill: 20 * time.Second},
	}
}

// start starts a child that is closed with the test.
func start(t *testing.T, cfg Config) *Child {
	t.Helper()
	c, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

func expect(t *testing.T, c *Child, want string) {
	t.Helper()
	line, err := c.Read()
	if err != nil || string(line) != want {
		t.Fatalf("read %.200q, %v; want %q", line, err, want)
	}
}

func expectEnd(t *testing.T, c *Child) {
	t.Helper()
	if line, err := c.Read(); !errors.Is(err, io.EOF) || line != nil {
		t.Fatalf("read %.200q, %v; want the end", line, err)
	}
}

// A pad collects lines; what reads it has closed the child before.
type pad struct {
	mu    sync.Mutex
	lines []string
}

func (p *pad) add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, line)
}

func (p *pad) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}
