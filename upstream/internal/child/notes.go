package child

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	noteLength = 8 << 10  // the longest line that is handed on
	noteWindow = 16 << 10 // how much of a line is redacted
	noteMargin = 4 << 10  // a secret shorter than this is never shown in part
	noteQueue  = 64       // lines that wait for Stderr and Junk
	tailLength = 4 << 10
)

// notes carry what a server says beside the protocol to those who record it. Whoever reads from
// the server never waits for them.
type notes struct {
	redact  func(string) string
	streams [2]func(string) // by stream

	queue chan note
	stop  chan struct{} // closed by close
	done  chan struct{} // closed when deliver has ended
	once  sync.Once

	mu      sync.Mutex // guards the rest
	last    []string   // the newest lines of stderr
	lastLen int        // of them, with a newline each
	dropped [2]int     // by stream, since the last one was reported
}

type stream int

const (
	stderrStream stream = iota
	junkStream
)

type note struct {
	from stream
	text string
}

func newNotes(cfg Config) *notes {
	n := &notes{
		redact:  cfg.Redact,
		streams: [2]func(string){cfg.Stderr, cfg.Junk},
		queue:   make(chan note, noteQueue),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	if n.redact == nil {
		n.redact = func(line string) string { return line }
	}
	return n
}

func (n *notes) stderr(l line) {
	text := n.render(l)
	n.remember(text)
	n.put(note{stderrStream, text})
}

func (n *notes) junk(l line) { n.put(note{junkStream, n.render(l)}) }

// render redacts first and cuts afterwards. Where the line is longer than what was redacted, a
// secret may have been cut at the far end, so that end is not shown.
func (n *notes) render(l line) string {
	window := l.text[:min(len(l.text), noteWindow)]
	text := n.redact(string(window))
	most := noteLength
	if len(window) < l.size {
		most = min(most, max(0, len(text)-noteMargin))
	}
	shown := cut(text, most)
	whole := len(window) == l.size && len(shown) == len(text)
	shown = strings.ToValidUTF8(shown, "\uFFFD")
	if !whole {
		shown += fmt.Sprintf("… (cut; %d bytes)", l.size)
	}
	return shown
}

// cut shortens text to at most length bytes, at the beginning of a character.
func cut(text string, length int) string {
	if len(text) <= length {
		return text
	}
	for length > 0 && !utf8.RuneStart(text[length]) {
		length--
	}
	return text[:length]
}

func (n *notes) put(note note) {
	if n.streams[note.from] == nil {
		return
	}
	select {
	case n.queue <- note:
	default:
		n.mu.Lock()
		n.dropped[note.from]++
		n.mu.Unlock()
	}
}

// deliver hands the lines on until close, and then those that still wait.
func (n *notes) deliver() {
	defer close(n.done)
	for {
		select {
		case note := <-n.queue:
			n.hand(note)
			continue
		case <-n.stop:
		}
		for {
			select {
			case note := <-n.queue:
				n.hand(note)
			default:
				return
			}
		}
	}
}

func (n *notes) hand(note note) {
	n.report(note.from)
	n.streams[note.from](note.text)
}

// report tells of lines that were dropped. Where one is, others wait in the queue: none goes
// without a report.
func (n *notes) report(from stream) {
	n.mu.Lock()
	dropped := n.dropped[from]
	n.dropped[from] = 0
	n.mu.Unlock()
	if dropped > 0 {
		n.streams[from](fmt.Sprintf("(%d lines dropped: they came faster than they could be recorded)", dropped))
	}
}

// close ends deliver and waits for it. What comes later is dropped.
func (n *notes) close() {
	n.once.Do(func() { close(n.stop) })
	<-n.done
}

// remember keeps the newest lines that fit into the tail together.
func (n *notes) remember(text string) {
	text = cut(text, tailLength-1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = append(n.last, text)
	n.lastLen += len(text) + 1
	for n.lastLen > tailLength {
		n.lastLen -= len(n.last[0]) + 1
		n.last[0] = ""
		n.last = n.last[1:]
	}
}

func (n *notes) tail() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.last, "\n")
}
