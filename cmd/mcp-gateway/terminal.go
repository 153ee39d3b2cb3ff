package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"mcp-gateway/gateway"
)

// interruptible gives a context that ends with a signal to stop, so that what was started is ended as well. A reader of the
// output that has gone ends nothing by itself.
func interruptible(cmd *cobra.Command) (context.Context, func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return ctx, func() {
		stop()
		signal.Stop(broken)
	}
}

// terminal reports whether w is one.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// styleOf has colours on a terminal that wants them.
func styleOf(w io.Writer) gateway.Style {
	return gateway.Style{Color: terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// outputFlag adds -o.
func outputFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVarP(into, "output", "o", "text", "text or json")
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// asJSON reports whether -o asks for it.
func asJSON(output string) (bool, error) {
	if output != "text" && output != "json" {
		return false, fmt.Errorf("--output: %q is no format; use text or json", output)
	}
	return output == "json", nil
}

// writeJSON writes v for a program.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// verboseFlag adds --verbose.
func verboseFlag(cmd *cobra.Command, into *bool) {
	cmd.Flags().BoolVar(into, "verbose", false, "show what the servers write beside the protocol, and what the gateway logs")
}

// logOf is where the log goes; nil is nowhere.
func logOf(cmd *cobra.Command, verbose bool) io.Writer {
	if !verbose {
		return nil
	}
	return cmd.ErrOrStderr()
}

// A progress is one line of a terminal that says what is waited for. A nil one says nothing.
type progress struct {
	w     io.Writer
	began time.Time
	quit  chan struct{}
	ended chan struct{}

	mu    sync.Mutex // guards the rest, and that lines are written whole
	text  string
	drawn bool
	over  bool
}

// newProgress begins a line on w if that is a terminal. Its end is owed.
func newProgress(w io.Writer) *progress {
	if !terminal(w) {
		return nil
	}
	return begin(w)
}

func begin(w io.Writer) *progress {
	p := &progress{w: w, began: time.Now(), quit: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.draw()
			case <-p.quit:
				return
			}
		}
	}()
	return p
}

// waiting is told of what is waited for.
func (p *progress) waiting(things []string) {
	if len(things) == 0 {
		p.say("")
		return
	}
	p.say("waiting for " + strings.Join(things, ", "))
}

// say has text shown from the next second on.
func (p *progress) say(text string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text == "" {
		return
	}
	p.drawn = true
	line := []rune(p.text)
	if len(line) > 60 {
		line = append(line[:59], '…')
	}
	fmt.Fprintf(p.w, "\r\x1b[2K%s (%d s)", string(line), int(time.Since(p.began).Seconds()))
}

// end takes the line away. It may be called again.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	over := p.over
	p.over = true
	p.mu.Unlock()
	if over {
		return
	}
	close(p.quit)
	<-p.ended
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[2K")
	}
}
