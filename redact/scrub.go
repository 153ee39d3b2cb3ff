package redact

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Withheld stands for a text that could not be redacted.
const Withheld = "[withheld: it could not be redacted]"

// ErrWithheld says that a text could not be redacted, and so must not go out.
var ErrWithheld = errors.New("redacting failed, so the text is withheld")

// A Scrubber replaces the secrets that it knows in text written by others. All methods may be called at once; a secret
// is replaced from the moment it was made known.
//
// It finds each as it is; as JSON strings write it, with any escapes, also in JSON within a string of JSON; percent- and
// form-encoded; and as Base64 in something longer. It fails closed: one that was not made with NewScrubber, or that
// cannot read its secrets, withholds every text.
type Scrubber struct {
	mu sync.Mutex // serialises changes
	// Both are behind an atomic pointer, into which fmt does not walk: it shows what any other holds.
	known atomic.Pointer[map[key]*entry]
	live  atomic.Pointer[set]

	replaced atomic.Uint64 // texts in which something was
}

// A set is immutable, so that readers need no lock.
type set struct {
	everywhere *index
	records    *index // what is replaced in records beside that
	version    uint64
}

// A key tells one Known from another by content.
type key struct {
	text, name               string
	header, userinfo, record bool
}

type entry struct {
	owners              int
	everywhere, records []form
}

// NewScrubber returns a Scrubber that knows credentials.
func NewScrubber(credentials ...Secret) *Scrubber {
	s := &Scrubber{}
	s.known.Store(&map[key]*entry{})
	s.live.Store(&set{everywhere: newIndex(), records: newIndex()})
	s.Add(credentials...)
	return s
}

// Add makes credentials known for good. Adding one again changes nothing.
func (s *Scrubber) Add(credentials ...Secret) {
	list := make([]Known, len(credentials))
	for i, text := range credentials {
		list[i].Text = text
	}
	s.Learn(list...)
}

// Learn makes texts known until forget is called, which may be never or more than once. What two have made known stays
// until both have forgotten it.
func (s *Scrubber) Learn(list ...Known) (forget func()) {
	s.change(list, nil)
	return sync.OnceFunc(func() { s.change(nil, list) })
}

// change makes some texts known and others forgotten, in one step.
func (s *Scrubber) change(learned, forgotten []Known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if recover() != nil {
			s.live.Store(nil) // what is not known would pass
		}
	}()
	known := *s.known.Load()
	everywhere, records := false, false
	note := func(e *entry) {
		everywhere = everywhere || len(e.everywhere) > 0
		records = records || len(e.records) > 0
	}
	for _, k := range learned {
		e := known[k.key()]
		if e == nil {
			e = &entry{}
			e.everywhere, e.records = k.forms()
			known[k.key()] = e
			note(e)
		}
		e.owners++
	}
	for _, k := range forgotten {
		e := known[k.key()]
		if e.owners--; e.owners == 0 {
			delete(known, k.key())
			note(e)
		}
	}
	next := *s.live.Load()
	if everywhere {
		next.everywhere = indexOf(known, func(e *entry) []form { return e.everywhere })
		next.version++
	}
	if records {
		next.records = indexOf(known, func(e *entry) []form { return e.records })
	}
	if everywhere || records {
		s.live.Store(&next)
	}
}

func indexOf(known map[key]*entry, forms func(*entry) []form) *index {
	lists := make([][]form, 0, len(known))
	for _, e := range known {
		lists = append(lists, forms(e))
	}
	return newIndex(lists...)
}

func (k Known) key() key { return key{k.Text.Reveal(), k.Name, k.Header, k.Userinfo, k.Record} }

// Version changes whenever what results are cleaned of does: text that was cleaned before must be cleaned again.
func (s *Scrubber) Version() uint64 {
	if live := s.live.Load(); live != nil {
		return live.version
	}
	return ^uint64(0)
}

// JSON returns the text of a JSON value for somebody else to read, with the credentials in it replaced, and JSON still. It
// returns text itself where there is none, and never writes to it. The members of the outermost object that keep names
// stay as they are. A number that is a credential becomes a string, and two replaced names of one object stay two. An
// error is ErrWithheld.
func (s *Scrubber) JSON(text []byte, keep ...string) (clean []byte, err error) {
	defer func() {
		if recover() != nil {
			clean, err = nil, ErrWithheld
		}
	}()
	view := unsafe.String(unsafe.SliceData(text), len(text)) // no longer than this call
	found := s.live.Load().everywhere.find(view, nil)
	if len(found) == 0 {
		return text, nil
	}
	clean, _, err = rewriteJSON(view, found, keep)
	if clean == nil && err == nil {
		return text, nil
	}
	s.replaced.Add(1)
	return clean, err
}

// Definition is JSON for the definition of a tool, a prompt or a resource. Ok is false where a name or uri holds a
// credential, its own or that of a schema's member: a call would not reach what such a definition describes once it was
// replaced, so that it has to be left out.
func (s *Scrubber) Definition(text []byte) (clean []byte, ok bool) {
	defer func() {
		if recover() != nil {
			clean, ok = nil, false
		}
	}()
	view := unsafe.String(unsafe.SliceData(text), len(text))
	found := s.live.Load().everywhere.find(view, nil)
	if len(found) == 0 {
		return text, true
	}
	clean, named, err := rewriteJSON(view, found, nil)
	switch {
	case err != nil || named:
		return nil, false
	case clean == nil:
		return text, true
	}
	s.replaced.Add(1)
	return clean, true
}

// rewriteJSON returns nil where nothing of text had to be replaced.
func rewriteJSON(text string, found []span, keep []string) (clean []byte, named bool, err error) {
	// A copy of keep, so that the caller's needs no allocation where nothing is found.
	r := rewriter{text: text, spans: sorted(found), keep: slices.Clone(keep), base: strings.Count(text, Mask)}
	clean = r.rewrite()
	if r.broken {
		return nil, false, ErrWithheld
	}
	return clean, r.named, nil
}

// Bytes returns b as it may be recorded: without credentials, and without whatever else is known. Where there is nothing
// to replace it returns b itself; it never writes to b. What cannot be redacted becomes Withheld.
func (s *Scrubber) Bytes(b []byte) []byte {
	view := unsafe.String(unsafe.SliceData(b), len(b)) // no longer than this call
	clean, failed := s.record(view)
	switch {
	case failed:
		return []byte(Withheld)
	case clean == nil:
		return b
	}
	s.replaced.Add(1)
	return clean
}

// String is Bytes for a string.
func (s *Scrubber) String(text string) string {
	clean, failed := s.record(text)
	switch {
	case failed:
		return Withheld
	case clean == nil:
		return text
	}
	s.replaced.Add(1)
	return string(clean)
}

// Replaced counts the texts in which something was replaced.
func (s *Scrubber) Replaced() uint64 { return s.replaced.Load() }

// Holds reports whether text has something in it that Bytes would replace.
func (s *Scrubber) Holds(text string) bool {
	clean, failed := s.record(text)
	return failed || clean != nil
}

// record returns nil where text has nothing to replace.
func (s *Scrubber) record(text string) (clean []byte, failed bool) {
	defer func() {
		if recover() != nil {
			clean, failed = nil, true
		}
	}()
	live := s.live.Load()
	return replace(text, live.records.find(text, live.everywhere.find(text, nil))), false
}
