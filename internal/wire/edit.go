package wire

import "bytes"

// An Edit changes one member of an object: a nil Value takes it off, any other replaces its value or, where the object has
// no such member, adds one at the end.
type Edit struct {
	Name  string
	Value []byte // JSON text
}

// AppendEdited appends o's text to dst with the edits carried out, every other byte of every other member as it was.
// An edit reaches all members of its name, so that none is left for a reader that prefers the last. The zero
// Object reads as the empty one. No name may stand in two edits.
func (o Object) AppendEdited(dst []byte, edits ...Edit) []byte {
	dst = append(dst, '{')
	first := true
	for _, m := range o.members {
		edit, found := o.editOf(m, edits)
		if found && edit.Value == nil {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if !found {
			dst = append(dst, o.raw[m.nameStart:m.valueEnd]...)
			continue
		}
		dst = append(dst, o.raw[m.nameStart:m.nameEnd]...)
		dst = append(dst, ':')
		dst = append(dst, edit.Value...)
	}
	for _, e := range edits {
		if e.Value == nil || o.Has(e.Name) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = AppendString(dst, e.Name)
		dst = append(dst, ':')
		dst = append(dst, e.Value...)
	}
	return append(dst, '}')
}

// Edited is AppendEdited into a new slice, or o itself where the edits change nothing.
func (o Object) Edited(edits ...Edit) []byte {
	size := len(o.raw) + 2
	changes := false
	for _, e := range edits {
		changes = changes || e.Value != nil || o.Has(e.Name)
		size += len(e.Name) + len(e.Value) + 8
	}
	if !changes && !o.IsZero() {
		return o.raw
	}
	return o.AppendEdited(make([]byte, 0, size), edits...)
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
