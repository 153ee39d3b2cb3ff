package redact

import (
	"slices"
	"sync"
)

// keptTokens is the token in use and the sixteen before it, since replies to calls that carried one may still come, and as many
// refresh tokens, which change with them.
const keptTokens = 2 * 17

// Tokens are what one source of credentials has handed out. All methods may be called at once.
type Tokens struct {
	scrubber *Scrubber
	mu       sync.Mutex // guards list and closed
	list     []Known    // the newest last
	closed   bool
}

// Tokens returns an empty place for the tokens of one source.
func (s *Scrubber) Tokens() *Tokens { return &Tokens{scrubber: s} }

// Add makes token known as a credential, to be called before it is first sent. The newest 34 stay known. After
// Close it does nothing.
func (t *Tokens) Add(token Secret) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || token.IsZero() {
		return
	}
	if i := slices.IndexFunc(t.list, func(k Known) bool { return k.Text.Reveal() == token.Reveal() }); i >= 0 {
		again := t.list[i]
		t.list = append(slices.Delete(t.list, i, i+1), again)
		return
	}
	t.list = append(t.list, Known{Text: token})
	var oldest []Known
	if over := len(t.list) - keptTokens; over > 0 {
		oldest, t.list = slices.Clone(t.list[:over]), slices.Clone(t.list[over:])
	}
	t.scrubber.change(t.list[len(t.list)-1:], oldest)
}

// Close makes all of them forgotten that nobody else has made known.
func (t *Tokens) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		t.scrubber.change(nil, t.list)
	}
}
