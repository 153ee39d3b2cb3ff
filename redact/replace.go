package redact

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// sorted returns found in order of place, with those that overlap joined into one.
func sorted(found []span) []span {
	slices.SortFunc(found, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to), cmp.Compare(a.with, b.with))
	})
	joined := found[:0]
	for _, next := range found {
		if n := len(joined); n > 0 && next.from < joined[n-1].to {
			joined[n-1] = joined[n-1].join(next)
		} else {
			joined = append(joined, next)
		}
	}
	return joined
}

// join returns the one span that a and b make, which overlap, a being the first. What is Base64 as a whole stays that, so
// that what it stands in can still be decoded.
func (a span) join(b span) span {
	with := Mask
	if a.with == b.with || a.with == "" && b.to <= a.to {
		with = a.with
	}
	return span{a.from, max(a.to, b.to), with}
}

// appendReplaced appends what stands for the text of s.
func (s span) appendReplaced(dst []byte, text string) []byte {
	if s.with != "" {
		return append(dst, s.with...)
	}
	for _, c := range unescape(nil, text) {
		if c != '=' {
			c = 'X'
		}
		dst = append(dst, c)
	}
	return dst
}

// replace returns text with found replaced, no escape split. It returns nil where there is nothing to replace.
func replace(text string, found []span) []byte {
	if len(found) == 0 {
		return nil
	}
	out := make([]byte, 0, len(text)+len(found)*len(Mask))
	at := 0
	for _, s := range sorted(found) {
		from, to := s.whole(text, at, len(text))
		if from >= to {
			continue
		}
		out = append(out, text[at:from]...)
		out = s.appendReplaced(out, text[from:to])
		at = to
	}
	return append(out, text[at:]...)
}

// whole returns the part of s within text[low:high], wider where it would split an escape.
func (s span) whole(text string, low, high int) (from, to int) {
	from, _ = around(text[:high], max(s.from, low))
	_, to = around(text[:high], min(s.to, high))
	return max(from, low), to
}

// A rewriter replaces spans in a JSON text so that it stays one.
type rewriter struct {
	text  string
	spans []span // in order, none overlapping
	keep  []string
	base  int // how many masks the text has already

	out     []byte
	copied  int // what of text is in out, replaced or not
	frames  []frame
	keeping bool // the value of a member named in keep is being read
	member  string
	named   bool // a member's name, or the name or uri of the whole object, would have to be replaced
	broken  bool // it is no JSON
}

// A frame is an object or an array that is open.
type frame struct {
	object bool
	value  bool // the name has been read, a value follows
	names  int  // how many of its names have been replaced
}

// rewrite returns the text with the spans replaced where they lie in strings, in names, or over a whole number; nil where
// nothing had to be.
func (r *rewriter) rewrite() []byte {
	for at := 0; at < len(r.text) && len(r.spans) > 0 && !r.broken; {
		switch c := r.text[at]; c {
		case ' ', '\t', '\r', '\n':
			at++
		case '{', '[':
			r.frames = append(r.frames, frame{object: c == '{'})
			at++
		case '}', ']':
			if len(r.frames) == 0 {
				r.broken = true
				break
			}
			r.frames = r.frames[:len(r.frames)-1]
			at++
		case ',', ':':
			if top := r.top(); top != nil {
				top.value = c == ':'
			}
			at++
		case '"':
			at = r.quoted(at)
		default:
			at = r.scalar(at)
		}
	}
	if r.copied == 0 {
		return nil
	}
	return append(r.out, r.text[r.copied:]...)
}

func (r *rewriter) top() *frame {
	if len(r.frames) == 0 {
		return nil
	}
	return &r.frames[len(r.frames)-1]
}

// quoted handles the string that begins at and returns where it ends.
func (r *rewriter) quoted(at int) int {
	end := stringEnd(r.text, at+1)
	if end < 0 {
		r.broken = true
		return at
	}
	top := r.top()
	name := top != nil && top.object && !top.value
	touched := r.inString(at+1, end)
	switch {
	case name && touched:
		r.named = true
		if top.names++; top.names+r.base > 1 {
			r.out = append(r.out, ' ')
			r.out = strconv.AppendInt(r.out, int64(top.names+r.base), 10)
		}
	case touched && (r.member == "name" || r.member == "uri" || r.member == "uriTemplate"):
		r.named = true
	}
	if name && len(r.frames) == 1 {
		r.member = string(unescape(nil, r.text[at+1:end]))
		r.keeping = slices.Contains(r.keep, r.member)
	}
	return end + 1
}

// stringEnd returns the place of the quote that ends a string whose text begins at, -1 where there is none.
func stringEnd(text string, at int) int {
	for {
		i := strings.IndexByte(text[at:], '"')
		if i < 0 {
			return -1
		}
		end := at + i
		slashes := 0
		for end-slashes > at && text[end-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end
		}
		at = end + 1
	}
}

// inString replaces what lies in the string text[low:high], and reports whether there is any.
func (r *rewriter) inString(low, high int) bool {
	touched := false
	for len(r.spans) > 0 && r.spans[0].from < high {
		s := r.spans[0]
		if s.to > low && !r.keeping {
			from, to := s.whole(r.text, max(low, r.copied), high)
			if from < to {
				r.out = append(r.out, r.text[r.copied:from]...)
				r.out = s.appendReplaced(r.out, r.text[from:to])
				r.copied, touched = to, true
			}
		}
		if s.to > high {
			break // it goes on in the next token
		}
		r.spans = r.spans[1:]
	}
	return touched
}

// scalar handles the number or literal that begins at and returns where it ends. A number is replaced as a whole or not
// at all.
func (r *rewriter) scalar(at int) int {
	end := at
	for end < len(r.text) && strings.IndexByte(" \t\r\n{}[],:\"", r.text[end]) < 0 {
		end++
	}
	for len(r.spans) > 0 && r.spans[0].from < end {
		s := r.spans[0]
		if s.from <= at && s.to >= end && !r.keeping && number(r.text[at:end]) {
			r.out = append(r.out, r.text[r.copied:at]...)
			r.out = append(r.out, `"`+Mask+`"`...)
			r.copied = end
		}
		if s.to > end {
			break
		}
		r.spans = r.spans[1:]
	}
	return end
}
