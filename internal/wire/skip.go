package wire

// skip reads the value at i.
//
// It is one long loop, so that places and depth stay in registers: a large structured result is little but short strings and numbers, and
// each call between them would cost as much as they do.
func (s *scanner) skip(i int) int {
	d, depth, outer := s.data, s.depth, s.depth
	object, start := false, 0 // whether the innermost is one, and where its name begins
	for {
	value:
		if i = space(d, i); i == len(d) {
			return ^i
		}
		switch c := d[i]; {
		case c == '"':
			if end := s.nextMark(i + 1); end < len(d) && d[end] == '"' {
				i = end + 1
			} else if i = s.skipLong(i + 1); i < 0 {
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
		start = i
		if end := s.nextMark(i + 1); end < len(d) && d[end] == '"' {
			i = end + 1
		} else if i = s.skipLong(i + 1); i < 0 {
			return i
		}
		if s.unique && s.renamed(start, i) {
			return ^start
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

// renamed reports whether the innermost object has had the name before that is there.
func (s *scanner) renamed(start, end int) bool {
	o := &s.inner[len(s.inner)-1]
	o.nameStart, o.nameEnd = start, end
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
