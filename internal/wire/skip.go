package wire

import (
	"math/bits"
)

// skip reads the value at i.
//
// It is one long loop, and has the reading of a string in it twice, so that places and depth stay in registers: a large structured
// result is little but short strings and numbers, and each call between them would cost as much as they do.
func (s *scanner) skip(i int) int {
	d, depth, outer := s.data, s.depth, s.depth
	object := false // the innermost is one
	for {
	value:
		if i = space(d, i); i == len(d) {
			return ^i
		}
		switch c := d[i]; {
		case c == '"':
			i++
			if at := uint(i - s.from); at < s.seen {
				if marks := s.marks[at/64%(window/64)] >> (at % 64); marks != 0 {
					if end := i + bits.TrailingZeros64(marks); end < len(d) && d[end] == '"' {
						i = end + 1
						break
					}
				}
			}
			if i = s.skipLong(i); i < 0 {
				return i
			}
		case c == '{':
			if depth == 0 {
				s.tooDeep = true
				return ^i
			}
			depth--
			object = true
			s.objects[depth/64] |= 1 << (depth % 64)
			if s.unique {
				s.inner = append(s.inner, opened{base: len(s.names)})
			}
			if i = space(d, i+1); i < len(d) && d[i] == '}' {
				break
			}
			goto name
		case c == '[':
			if depth == 0 {
				s.tooDeep = true
				return ^i
			}
			depth--
			object = false
			s.objects[depth/64] &^= 1 << (depth % 64)
			if i = space(d, i+1); i < len(d) && d[i] == ']' {
				break
			}
			goto value
		default:
			if end := shortNumber(d, i); end > 0 {
				i = end
			} else if i = skipAtom(d, i); i < 0 {
				return i
			}
		}
		for {
			if depth == outer {
				return i
			}
			if i < len(d) && d[i] <= ' ' {
				i = space(d, i)
			}
			if i == len(d) {
				return ^i
			}
			c := d[i]
			if c == ',' {
				i++
				if object {
					break
				}
				goto value
			}
			if object && c != '}' || !object && c != ']' {
				return ^i
			}
			if object && s.unique {
				s.leave()
			}
			i++
			if depth++; depth < outer {
				object = s.objects[depth/64]>>(depth%64)&1 != 0
			}
		}
	name:
		if i < len(d) && d[i] <= ' ' {
			i = space(d, i)
		}
		if i == len(d) || d[i] != '"' {
			return ^i
		}
		s.name = i
		i++
		if at := uint(i - s.from); at < s.seen {
			if marks := s.marks[at/64%(window/64)] >> (at % 64); marks != 0 {
				if end := i + bits.TrailingZeros64(marks); end < len(d) && d[end] == '"' {
					i = end + 1
					goto named
				}
			}
		}
		if i = s.skipLong(i); i < 0 {
			return i
		}
	named:
		if s.unique && s.renamed(i) {
			return ^s.name
		}
		if i < len(d) && d[i] <= ' ' {
			i = space(d, i)
		}
		if i == len(d) || d[i] != ':' {
			return ^i
		}
		i++
	}
}

// renamed reports whether the innermost object has had the name before that ends at i.
func (s *scanner) renamed(i int) bool {
	o := &s.inner[len(s.inner)-1]
	o.nameStart, o.nameEnd = s.name, i
	s.repeated = s.repeats(o)
	return s.repeated
}

// leave goes out of the innermost object.
func (s *scanner) leave() {
	last := len(s.inner) - 1
	s.names = s.names[:s.inner[last].base]
	s.inner[last] = opened{}
	s.inner = s.inner[:last]
}
