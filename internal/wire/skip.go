package wire

import (
	"encoding/binary"
	"math/bits"
)

// skip reads the value at i.
//
// It is one long loop, and has the reading of a short string in it twice, so that places and depth stay in registers: a large structured
// result is little but short strings and numbers, and each call between them would cost as much as they do.
func (s *scanner) skip(i int) int {
	d, depth, outer := s.data, s.depth, s.depth
	for {
	value:
		if i = space(d, i); i == len(d) {
			return ^i
		}
		switch d[i] {
		case '"':
			i++
			if len(d)-i >= 8 {
				if marks := special(binary.LittleEndian.Uint64(d[i:])); marks != 0 {
					if end := i + bits.TrailingZeros64(marks)/8; d[end] == '"' {
						i = end + 1
						break
					}
				}
			}
			if i = s.skipLong(i); i < 0 {
				return i
			}

		case '{':
			if depth == 0 {
				s.tooDeep = true
				return ^i
			}
			depth--
			s.objects[depth/64] |= 1 << (depth % 64)
			if s.unique {
				s.inner = append(s.inner, opened{base: len(s.names)})
			}
			if i = space(d, i+1); i < len(d) && d[i] == '}' {
				break
			}
			goto name
		case '[':
			if depth == 0 {
				s.tooDeep = true
				return ^i
			}
			depth--
			s.objects[depth/64] &^= 1 << (depth % 64)
			if i = space(d, i+1); i < len(d) && d[i] == ']' {
				break
			}
			goto value
		default:
			if i = skipAtom(d, i); i < 0 {
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
			object := s.objects[depth/64]>>(depth%64)&1 != 0
			if d[i] == ',' {
				i++
				if object {
					break
				}
				goto value
			}
			if object && d[i] != '}' || !object && d[i] != ']' {
				return ^i
			}
			if object && s.unique {
				s.leave()
			}
			i++
			depth++
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
		if len(d)-i >= 8 {
			if marks := special(binary.LittleEndian.Uint64(d[i:])); marks != 0 {
				if end := i + bits.TrailingZeros64(marks)/8; d[end] == '"' {
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
