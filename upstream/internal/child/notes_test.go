package child

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStderrIsHandedOnByTheLine(t *testing.T) {
	var said pad
	cfg := play("say", "MUTTER=starting\r\nbad \xff byte\n\nlast words")
	cfg.Stderr = said.add
	c := start(t, cfg)
	expectEnd(t, c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	want := "starting\nbad \uFFFD byte\n\nlast words"
	if got := said.text(); got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	if got := c.Tail(); got != want {
		t.Errorf("tail %q, want %q", got, want)
	}
}

func TestASlowListenerNeverHoldsTheChildUp(t *testing.T) {
	release := make(chan struct{})
	var said pad
	cfg := play("loud")
	cfg.Stderr = func(line string) {
		<-release
		said.add(line)
	}
	c := start(t, cfg)
	expect(t, c, `{"done":true}`) // after a thousand lines that nobody takes
	close(release)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	lines, dropped := 0, 0
	for _, line := range said.lines {
		var n int
		if _, err := fmt.Sscanf(line, "(%d lines dropped:", &n); err == nil {
			dropped += n
		} else {
			lines++
		}
	}
	if lines+dropped != 1000 || dropped == 0 || lines < noteQueue {
		t.Errorf("%d lines and %d dropped, want 1000 together", lines, dropped)
	}
	if tail := c.Tail(); !strings.Contains(tail, "line 999 ") || len(tail) > tailLength {
		t.Errorf("the tail of %d bytes lacks the last line", len(tail))
	}
}

func TestCloseWaitsForTheLastWordsOnStderr(t *testing.T) {
	begun, ended := make(chan *Child, 1), false
	cfg := play("say", "MUTTER=last words\n")
	cfg.Redact = func(line string) string {
		for c := <-begun; c.Exit() == ""; { // until all but this has ended
			runtime.Gosched()
		}
		for range 1000 {
			runtime.Gosched()
		}
		ended = true
		return line
	}
	c := start(t, cfg)
	begun <- c
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if tail := c.Tail(); !ended || tail != "last words" {
		t.Errorf("tail %q, redacted %v", tail, ended)
	}
}

const secret = "sk-0123456789abcdef"

func TestNotesAreRedactedBeforeTheyAreCut(t *testing.T) {
	for _, test := range []struct {
		name  string
		line  string
		shown int // how many of the x before the secret
		mark  bool
	}{
		{"short", strings.Repeat("x", 10) + secret, 10, false},
		{"as long as may be", strings.Repeat("x", noteLength-1) + secret, noteLength - 1, false},
		{"across the cut", strings.Repeat("x", noteLength-5) + secret + "yyyyy", noteLength - 5, true},
		{"across the window", strings.Repeat("x", noteWindow-5) + secret, noteLength, true},
		{"many before the window's end", strings.Repeat(secret, 880) + secret, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNotes(Config{Redact: func(line string) string { return strings.ReplaceAll(line, secret, "*") }})
			got, _ := newLineReader(strings.NewReader(test.line+"\n"), 16).next(noteWindow)
			text := n.render(got)
			if strings.Contains(text, "sk-") || strings.Contains(text, "k-0") {
				t.Errorf("a part of the secret is shown: …%q", text[max(0, len(text)-80):])
			}
			if shown := strings.Count(text, "x"); shown != test.shown {
				t.Errorf("%d of the text shown, want %d", shown, test.shown)
			}
			mark := fmt.Sprintf("… (cut; %d bytes)", len(test.line))
			if strings.HasSuffix(text, mark) != test.mark || len(text) > noteLength+len(mark) {
				t.Errorf("%d bytes, cut marked %v: …%q", len(text), !test.mark, text[max(0, len(text)-40):])
			}
		})
	}
}

func TestACutNeverSplitsACharacter(t *testing.T) {
	for length := range 9 {
		if got := cut("aé€𝄞", length); !utf8.ValidString(got) || len(got) > length || len(got) < length-3 {
			t.Errorf("cut to %d gave %q", length, got)
		}
	}
}

func TestTheTailKeepsWholeLinesAndIsBounded(t *testing.T) {
	n := newNotes(Config{})
	for i := range 1000 {
		n.remember(fmt.Sprintf("line %03d", i))
	}
	tail := n.tail()
	if len(tail) > tailLength || !strings.HasSuffix(tail, "line 998\nline 999") || !strings.HasPrefix(tail, "line ") {
		t.Errorf("tail of %d bytes: %.40q…", len(tail), tail)
	}
	if len(tail) < tailLength-2*len("line 000\n") {
		t.Errorf("the tail has %d bytes, it may have %d", len(tail), tailLength)
	}
	n.remember(strings.Repeat("é", 3*tailLength))
	if tail := n.tail(); len(tail) > tailLength || len(tail) < tailLength-4 || !utf8.ValidString(tail) {
		t.Errorf("one long line leaves a tail of %d bytes", len(tail))
	}
}
