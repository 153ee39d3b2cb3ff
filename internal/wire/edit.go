package wire

import (
	"bytes"
	"slices"
)

// An Edit changes one member of an object: a nil Value takes it off, any other replaces its value or, where the object has
// no such member, adds one at the end.
type Edit struct {
	Name  string
	Value []byte // JSON text
}

// AppendEdited appends o's text to dst with the edits carried out and every other byte as it was, white space included.
// An edit reaches all members of its name, so that none is left for a reader that prefers the last. The zero
// Object reads as the empty one. No name may stand in two edits.
func (o Object) AppendEdited(dst []byte, edits ...Edit) []byte {
	var room [fewEdits]Edit
	dst, _ = o.edit(dst, nil, o.allEdits(room[:0], edits))
	return dst
}

// Edited is AppendEdited into a new slice, or o's own text where the edits change nothing.
func (o Object) Edited(edits ...Edit) []byte {
	var room [fewEdits]Edit
	edits = o.allEdits(room[:0], edits)
	size, changes := o.sizeOf(edits)
	if !changes {
		return o.raw
	}
	text, _ := o.edit(make([]byte, 0, size), nil, edits)
	return text
}

// With is the object that Edited gives the text of.
func (o Object) With(edits ...Edit) Object {
	var room [fewEdits]Edit
	edits = o.allEdits(room[:0], edits)
	size, changes := o.sizeOf(edits)
	if !changes {
		return Object{raw: o.raw, members: o.members}
	}
	text, members := o.edit(make([]byte, 0, size), make([]member, 0, len(o.members)+len(edits)), edits)
	return Object{raw: text, members: members}
}

// Later is With for what is written once: the edits are carried out when it is, together with those that come until then. No
// name may stand twice in o, as none does in a request.
func (o Object) Later(edits ...Edit) Object {
	if o.IsZero() {
		return o.With(edits...)
	}
	if _, changes := o.sizeOf(edits); changes || o.later != nil {
		var room [fewEdits]Edit
		all := append([]Edit(nil), o.allEdits(room[:0], edits)...) // slices.Clone would have the caller's edits escape
		o.later = &all
	}
	return o
}

// settled is o with its edits carried out.
func (o Object) settled() Object {
	if o.later == nil {
		return o
	}
	return o.With()
}

// fewEdits is how many edits need no allocation.
const fewEdits = 8

// allEdits is what o still has to be changed by, and then by edits. It is in room where it is neither of them.
func (o Object) allEdits(room, edits []Edit) []Edit {
	switch {
	case o.later == nil:
		return edits
	case len(edits) == 0:
		return *o.later
	}
	for _, e := range *o.later {
		if !slices.ContainsFunc(edits, func(later Edit) bool { return later.Name == e.Name }) {
			room = append(room, e)
		}
	}
	return append(room, edits...)
}

// sizeOf is at least the size of the edited text. changes is false where that is o's own.
func (o Object) sizeOf(edits []Edit) (size int, changes bool) {
	size = len(o.raw) + 2
	for _, e := range edits {
		changes = changes || e.Value != nil || o.has(e.Name)
		size += len(e.Name) + len(e.Value) + 8
	}
	return size, changes || o.IsZero()
}

// has reports whether a member has that name in o's own text.
func (o Object) has(name string) bool {
	return slices.ContainsFunc(o.members, func(m member) bool { return o.named(m, name) })
}

// edit appends the edited text to dst, and to members, unless that is nil, the places in it; their offsets count from the
// start of the text.
func (o Object) edit(dst []byte, members []member, edits []Edit) ([]byte, []member) {
	if o.IsZero() {
		o.raw = []byte("{}")
	}
	start := len(dst)
	at := func() uint32 { return uint32(len(dst) - start) }
	last := uint32(1) // where the member before ends, or the brace
	dst = append(dst, '{')
	for i, m := range o.members {
		between := o.raw[last:m.nameStart]
		last = m.valueEnd
		edit, found := o.editOf(m, edits)
		if found && edit.Value == nil {
			continue
		}
		if at() > 1 || i == 0 {
			dst = append(dst, between...)
		}
		to := member{nameStart: at(), escaped: m.escaped}
		to.nameEnd = to.nameStart + m.nameEnd - m.nameStart
		dst = append(dst, o.raw[m.nameStart:m.valueStart]...)
		to.valueStart = at()
		if found {
			dst = append(dst, edit.Value...)
		} else {
			dst = append(dst, o.raw[m.valueStart:m.valueEnd]...)
		}
		to.valueEnd = at()
		if members != nil {
			members = append(members, to)
		}
	}
	for _, e := range edits {
		if e.Value == nil || o.has(e.Name) {
			continue
		}
		if at() > 1 {
			dst = append(dst, ',')
		}
		to := member{nameStart: at()}
		dst = AppendString(dst, e.Name)
		to.nameEnd = at()
		to.escaped = bytes.IndexByte(dst[len(dst)-int(to.nameEnd-to.nameStart):], '\\') >= 0
		dst = append(dst, ':')
		to.valueStart = at()
		dst = append(dst, e.Value...)
		to.valueEnd = at()
		if members != nil {
			members = append(members, to)
		}
	}
	return append(dst, o.raw[last:]...), members
}

// Rewrite is o's text with what f makes of each member's value, in one pass: the value itself keeps the member as it is, nil takes it
// off. It gives o's own text where f keeps everything.
func (o Object) Rewrite(f func(name string, value []byte) []byte) []byte {
	o = o.settled()
	var dst []byte
	last, kept := uint32(1), 0
	for i, m := range o.members {
		name, _ := Unquote(o.raw[m.nameStart:m.nameEnd])
		value := o.raw[m.valueStart:m.valueEnd]
		became := f(name, value)
		same := became != nil && len(became) == len(value) && (len(value) == 0 || &became[0] == &value[0])
		if dst == nil && !same {
			dst = append(make([]byte, 0, len(o.raw)), o.raw[:last]...)
			kept = i
		}
		if dst != nil && became != nil {
			if kept > 0 || i == 0 {
				dst = append(dst, o.raw[last:m.nameStart]...)
			}
			kept++
			dst = append(append(dst, o.raw[m.nameStart:m.valueStart]...), became...)
		}
		last = m.valueEnd
	}
	if dst == nil {
		return o.raw
	}
	return append(dst, o.raw[last:]...)
}

func (o Object) editOf(m member, edits []Edit) (Edit, bool) {
	for _, e := range edits {
		if o.named(m, e.Name) {
			return e, true
		}
	}
	return Edit{}, false
}

// OneLine is raw without the white space between its tokens if raw holds a line end, else raw itself: what goes
// into a frame that is a line. The text must be valid JSON.
func OneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	// Between the tokens of valid JSON there is nothing else that is a space, and within a string no line
	// end and no tab stand unescaped.
	out := make([]byte, 0, len(raw))
	inString := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case inString:
			if c == '\\' && i+1 < len(raw) {
				out = append(out, c, raw[i+1])
				i++
				continue
			}
			inString = c != '"'
		case c == '"':
			inString = true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			continue
		}
		out = append(out, c)
	}
	return out
}
