package child

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"mcp-gateway/internal/backoff"
)

const (
	noteLength = 8 << 10  // the longest line that is handed on
	noteWindow = 16 << 10 // how much of a line is redacted
	noteMargin = 4 << 10  // a secret shorter than this is never shown in part
	noteQueue  = 64       // lines that wait for Stderr and Junk
	tailLength = 4 << 10

	// A server that does nothing but write to its stderr must not fill the log.
	noteBurst = 100                   // lines of one stream that are handed on at once
	notePause = 50 * time.Millisecond // between two lines after that

	noteBytes    = 256 << 10 // of those lines together
	noteByteRate = 16 << 10  // in a second after that

	// reportPause is between two reports of dropped lines of one stream.
	reportPause = 10 * time.Second
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

	reported [2]time.Time // by stream; only deliver touches it

	mu      sync.Mutex // guards the rest
	last    []byte     // the newest lines of stderr with a newline each, more than tail shows
	forgot  bool       // last does not begin where stderr does
	rates   [2]rate
	dropped [2]int // by stream, since the last report
}

// A rate is what of one stream is handed on.
type rate struct{ lines, bytes backoff.Bucket }

func newRate() rate {
	return rate{
		lines: backoff.Bucket{Burst: noteBurst, Every: notePause},
		bytes: backoff.Bucket{Burst: noteBytes, Every: time.Second / noteByteRate},
	}
}

// take reports whether one more line may pass. One that may not takes nothing from those that follow.
func (r *rate) take(now time.Time, size int) bool {
	left := *r
	if !left.lines.Take(now) || !left.bytes.TakeAll(now, size) {
		return false
	}
	*r = left
	return true
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
		rates:   [2]rate{newRate(), newRate()},
	}
	if n.redact == nil {
		n.redact = func(line string) string { return line }
	}
	return n
}

func (n *notes) stderr(l line) {
	text := n.render(l)
	n.remember(text)
	if n.admits(stderrStream, l) {
		n.put(note{stderrStream, text})
	}
}

func (n *notes) junk(l line) {
	if n.admits(junkStream, l) {
		n.put(note{junkStream, n.render(l)})
	}
}

// admits reports whether one more line may be handed on, and counts it where not. It looks at no more of it than is handed on.
func (n *notes) admits(from stream, l line) bool {
	if n.streams[from] == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rates[from].take(time.Now(), min(len(l.text), noteLength)) {
		return true
	}
	n.dropped[from]++
	return false
}

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
	due := time.NewTicker(reportPause)
	defer due.Stop()
	for {
		select {
		case note := <-n.queue:
			n.hand(note)
		case <-due.C:
			n.report(stderrStream)
			n.report(junkStream)
		case <-n.stop:
			n.flush()
			return
		}
	}
}

// flush hands on what still waits, and tells of all that was dropped.
func (n *notes) flush() {
	for {
		select {
		case note := <-n.queue:
			n.hand(note)
		default:
			n.report(stderrStream)
			n.report(junkStream)
			return
		}
	}
}

// hand passes a line on, after a report of the lines that are missing before it where the last report is not of just now.
func (n *notes) hand(note note) {
	if time.Since(n.reported[note.from]) >= reportPause {
		n.report(note.from)
	}
	n.streams[note.from](note.text)
}

// report tells of the lines that were dropped since the last one.
func (n *notes) report(from stream) {
	n.mu.Lock()
	dropped := n.dropped[from]
	n.dropped[from] = 0
	n.mu.Unlock()
	if dropped > 0 {
		n.reported[from] = time.Now()
		n.streams[from](fmt.Sprintf("(%d lines dropped: they came faster than they are recorded)", dropped))
	}
}

// close ends deliver and waits for it. What comes later is dropped.
func (n *notes) close() {
	n.once.Do(func() { close(n.stop) })
	<-n.done
}

// tailWindow is what is kept of stderr: what the tail shows, and before it what a secret that the tail begins with may have.
const tailWindow = tailLength + noteMargin

// remember keeps the end of stderr.
func (n *notes) remember(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = append(append(n.last, text...), '\n')
	if over := len(n.last) - tailWindow; over > 0 {
		n.last = append(n.last[:0], n.last[over:]...)
		n.forgot = true
	}
}

// tail redacts once more, as a whole, since a secret may have line ends, and cuts afterwards. Where what is kept begins within
// stderr, it may begin within a secret, so that its beginning is not shown.
func (n *notes) tail() string {
	n.mu.Lock()
	text, most := strings.TrimSuffix(string(n.last), "\n"), tailLength
	forgot := n.forgot
	n.mu.Unlock()
	text = n.redact(text)
	if forgot {
		most = min(most, max(0, len(text)-noteMargin))
	}
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	if _, lines, ok := strings.Cut(text, "\n"); ok {
		return lines // whole ones
	}
	return strings.ToValidUTF8(text, "")
}
