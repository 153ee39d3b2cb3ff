package child

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
	lines, dropped, _ := said.count()
	if lines+dropped != 1000 || dropped == 0 || lines < noteQueue {
		t.Errorf("%d lines and %d dropped, want 1000 together", lines, dropped)
	}
	if tail := c.Tail(); !strings.Contains(tail, "line 999 ") || len(tail) > tailLength {
		t.Errorf("the tail of %d bytes lacks the last line", len(tail))
	}
}

func TestCloseWaitsForTheLastWordsOnStderr(t *testing.T) {
	begun, ended := make(chan *Child), false
	cfg := play("say", "MUTTER=last words\n")
	wait := sync.OnceFunc(func() {
		for c := <-begun; c.Exit() == ""; { // until all but this has ended
			runtime.Gosched()
		}
		for range 1000 {
			runtime.Gosched()
		}
		ended = true
	})
	cfg.Redact = func(line string) string {
		wait() // for the line; the tail is redacted as a whole later
		return line
	}
	c := start(t, cfg)
	begun <- c // once its words are there
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
	for i := range 10_000 {
		n.remember(fmt.Sprintf("line %04d", i))
	}
	tail := n.tail()
	if len(tail) > tailLength || !strings.HasSuffix(tail, "line 9998\nline 9999") || !strings.HasPrefix(tail, "line ") {
		t.Errorf("tail of %d bytes: %.40q…", len(tail), tail)
	}
	if len(tail) < tailLength-2*len("line 0000\n") {
		t.Errorf("the tail has %d bytes, it may have %d", len(tail), tailLength)
	}
	if cap(n.last) > 4*tailWindow {
		t.Errorf("%d bytes are kept", cap(n.last))
	}
	n.remember(strings.Repeat("é", tailWindow))
	if tail := n.tail(); len(tail) > tailLength || len(tail) < tailLength-4 || !utf8.ValidString(tail) {
		t.Errorf("one long line leaves a tail of %d bytes", len(tail))
	}
	n.remember("last words")
	if tail := n.tail(); tail != "last words" {
		t.Errorf("a short line after a long one leaves %q", tail)
	}
}

// A secret over several lines is found wherever the tail, or what is kept for it, would begin within it: also where so much is
// redacted behind it that it comes into view.
func TestTheTailIsRedactedAcrossItsCut(t *testing.T) {
	const key = "BEGIN\nsecret-line-1\nsecret-line-2\nsecret-line-3\nEND"
	filler := strings.Repeat("z", 64)
	for _, redacted := range []string{key, filler} {
		redact := strings.NewReplacer(key, "*", redacted, "*").Replace
		for _, size := range []int{tailLength, tailWindow} {
			for after := size - 2*len(key); after < size; after++ {
				n := newNotes(Config{Redact: redact})
				n.remember(strings.Repeat("x", tailWindow)) // so that something is forgotten
				for line := range strings.SplitSeq(key, "\n") {
					n.remember(line)
				}
				n.remember(strings.Repeat(filler, size/len(filler))[:after])
				if tail := n.tail(); strings.Contains(tail, "secret") || redacted == key && len(tail) < tailLength/2 {
					t.Fatalf("%d after, %q redacted: the tail of %d bytes begins with %.60q", after, redacted, len(tail), tail)
				}
			}
		}
	}
}

// A server that does nothing but write fills no log, and every line is accounted for.
func TestAFloodOfLinesIsCountedInsteadOfRecorded(t *testing.T) {
	for name, from := range map[string]stream{"stderr": stderrStream, "junk": junkStream} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said pad
				n := newNotes(Config{Stderr: said.add, Junk: said.add})
				go n.deliver()
				write := func(lines int) {
					for range lines {
						if l := (line{text: []byte("word"), size: 4}); from == stderrStream {
							n.stderr(l)
						} else {
							n.junk(l)
						}
						synctest.Wait() // so that the queue has room
					}
				}
				want := func(lines, dropped, reports int) {
					t.Helper()
					synctest.Wait()
					gotLines, gotDropped, gotReports := said.count()
					if gotLines != lines || gotDropped != dropped || gotReports != reports {
						t.Errorf("%d lines, %d dropped in %d reports; want %d, %d in %d", gotLines, gotDropped, gotReports, lines, dropped, reports)
					}
				}
				write(noteBurst)
				want(noteBurst, 0, 0)
				write(500)
				want(noteBurst, 0, 0)
				<-time.After(notePause)
				write(3) // the first tells what is missing before it
				want(noteBurst+1, 500, 1)
				<-time.After(notePause)
				write(1)
				want(noteBurst+2, 500, 1) // that is told at most every so often
				<-time.After(reportPause)
				want(noteBurst+2, 502, 2) // and also where no line follows
				write(noteBurst + 7)
				n.close()
				want(2*noteBurst+2, 509, 3)
			})
		})
	}
}

// Long lines fill a log sooner than many. One that is dropped for its length is not counted among the many.
func TestAFloodOfBytesIsCountedInsteadOfRecorded(t *testing.T) {
	for name, from := range map[string]stream{"stderr": stderrStream, "junk": junkStream} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said pad
				n := newNotes(Config{Stderr: said.add, Junk: said.add})
				go n.deliver()
				write := func(lines, size int) {
					for range lines {
						// What is longer than a line may be is cut, and only what is left counts.
						if l := (line{text: []byte(strings.Repeat("x", size)), size: size}); from == stderrStream {
							n.stderr(l)
						} else {
							n.junk(l)
						}
						synctest.Wait()
					}
				}
				want := func(want int) {
					t.Helper()
					if got, _, _ := said.count(); got != want {
						t.Errorf("%d lines, want %d", got, want)
					}
				}
				const whole = noteBytes / noteLength
				write(whole+noteBurst, 2*noteLength)
				want(whole)
				const forOne = time.Second * noteLength / noteByteRate
				<-time.After(forOne)
				write(2, noteLength)
				want(whole + 1)
				<-time.After(notePause)
				write(2*noteBurst, 1)
				want(noteBurst + int((forOne+notePause)/notePause))
				n.close()
			})
		})
	}
}

// count gives the lines, and what the reports of dropped ones among them tell.
func (p *pad) count() (lines, dropped, reports int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		var n int
		if _, err := fmt.Sscanf(line, "(%d lines dropped:", &n); err == nil {
			dropped += n
			reports++
		} else {
			lines++
		}
	}
	return lines, dropped, reports
}
