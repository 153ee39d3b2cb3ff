package redact

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// An index finds forms in text. It is immutable, so that readers need no lock.
//
// It samples the text: a form of n bytes that stands there has a 4-byte gram at one of the sampled places if these are no
// more than n-3 apart, and the grams of all forms are in a bitmap. So clean text costs one look into it for each sample,
// however many forms there are. Where it says maybe, each place at which a form could begin is looked up by its
// first 8 bytes.
type index struct {
	long    []form   // of 8 bytes and more
	stride  int      // between two samples: the shortest long form less 3
	grams   []uint64 // a bit for each gram's hash, in places of a power of two
	again   []uint64 // the same for another hash
	begin   []uint32 // the hash of a form's first 8 bytes to the first of the long forms that have it; those of the next hash follow
	beginAt uint     // takes a hash of 8 bytes to begin
	prefix  []int32  // of each long form, the longest other with that hash that it begins with; -1 for none

	short shortIndex

	wide  bool      // some form has non-ASCII characters, so that any `\u` may hide a part of it
	used  [128]bool // the ASCII characters that forms are made of
	after [256]bool // the bytes that follow a backslash in some form, and are none
	ends  bool      // some form ends with a backslash, so that any byte may follow
}

type span struct {
	from, to int
	with     string // as in form
}

// maxStride bounds how many grams a form adds to the bitmap, and how many places a maybe stands for.
const maxStride = 32

func newIndex(lists ...[]form) *index {
	x := &index{stride: maxStride}
	for _, list := range lists {
		for _, f := range list {
			x.note(f.text)
			if len(f.text) < minAlone {
				x.short.forms = append(x.short.forms, f)
				continue
			}
			x.long = append(x.long, f)
			x.stride = min(x.stride, len(f.text)-3)
		}
	}
	x.short.build()
	if len(x.long) == 0 {
		return x
	}
	count := uint(len(x.long) * x.stride)
	x.grams, x.again = newBitmap(count*32), newBitmap(count*32)
	for i := range x.long {
		for at := range x.stride {
			gram := load4(x.long[i].text, at)
			mark(x.grams, gram*firstHash)
			mark(x.again, gram*secondHash)
		}
	}
	x.sort()
	return x
}

// sort puts the long forms in the order of the hashes of their first 8 bytes, and those with the same one in the order of
// their text. Tokens of one source often begin alike: these are found in a few steps, not one by one.
func (x *index) sort() {
	size := bits.Len(uint(len(x.long))) + 1
	x.beginAt = uint(64 - size)
	x.begin = make([]uint32, 1<<size+1)
	for i := range x.long {
		x.begin[x.hashOf(i)+1]++
	}
	for i := range x.begin[1:] {
		x.begin[i+1] += x.begin[i]
	}
	placed, free := make([]form, len(x.long)), slices.Clone(x.begin)
	for i, f := range x.long {
		at := &free[x.hashOf(i)]
		placed[*at] = f
		*at++
	}
	x.long, x.prefix = placed, make([]int32, len(placed))
	for i := range x.begin[1:] {
		from, to := int(x.begin[i]), int(x.begin[i+1])
		slices.SortFunc(placed[from:to], func(a, b form) int { return strings.Compare(a.text, b.text) })
		for j := from; j < to; j++ {
			x.prefix[j] = x.longestPrefix(j, from)
		}
	}
}

func (x *index) hashOf(i int) uint64 { return hash8(load8(x.long[i].text, 0)) >> x.beginAt }

// longestPrefix returns the longest form before the one at i, from first on, that it begins with: it is the one before it,
// or one that this begins with too.
func (x *index) longestPrefix(i, first int) int32 {
	if i == first {
		return -1
	}
	p := int32(i - 1)
	for p >= 0 && !strings.HasPrefix(x.long[i].text, x.long[p].text) {
		p = x.prefix[p]
	}
	return p
}

// note keeps which characters forms are made of.
func (x *index) note(text string) {
	valid := utf8.ValidString(text)
	for i := range len(text) {
		if c := text[i]; c < utf8.RuneSelf {
			x.used[c] = true
		} else {
			x.wide = x.wide || valid
		}
		switch {
		case text[i] != '\\':
		case i+1 == len(text):
			x.ends = true
		case text[i+1] != '\\':
			x.after[text[i+1]] = true
		}
	}
}

const (
	firstHash  = 0x9e3779b1
	secondHash = 0x85ebca77
)

func hash8(first uint64) uint64 { return first * 0x9e3779b97f4a7c15 }

// maxWords bounds a bitmap: half a megabyte still is in a processor's own memory.
const maxWords = 1 << 16

func newBitmap(size uint) []uint64 {
	return make([]uint64, max(64, min(1<<bits.Len(size/64), maxWords)))
}

// mark and has know the bit of a hash in a bitmap: the word by its upper half, the place in it by the bits below.
func mark(bitmap []uint64, hash uint32) {
	bitmap[hash>>16&uint32(len(bitmap)-1)] |= 1 << (hash >> 10 & 63)
}

func has(bitmap []uint64, hash uint32) bool {
	return bitmap[hash>>16&uint32(len(bitmap)-1)]>>(hash>>10&63)&1 != 0
}

// load4 and load8 read in the order of the machine: all that counts is that it is one.
func load4(text string, at int) uint32 {
	return binary.NativeEndian.Uint32(unsafe.Slice(unsafe.StringData(text), len(text))[at:])
}

func load8(text string, at int) uint64 {
	return binary.NativeEndian.Uint64(unsafe.Slice(unsafe.StringData(text), len(text))[at:])
}

// match appends each place of text at which a form stands, in no order. It allocates nothing where there is none.
func (x *index) match(text string, found []span) []span {
	if len(x.long) > 0 {
		found = x.matchLong(text, found)
	}
	if len(x.short.forms) > 0 {
		found = x.short.match(text, found)
	}
	return found
}

// matchLong is what clean text costs: four looks into the bitmap with no branch and no check of bounds between them are
// twice as fast as four with. The last of the four begins 4 bytes before the end of text at the latest, and the mask keeps
// each hash within the bitmap, whose length is a power of two.
func (x *index) matchLong(text string, found []span) []span {
	stride, mask := x.stride, uint32(len(x.grams)-1)
	start, grams := unsafe.Pointer(unsafe.StringData(text)), unsafe.Pointer(unsafe.SliceData(x.grams))
	at := 0
	for ; at+3*stride+4 <= len(text); at += 4 * stride {
		h0 := *(*uint32)(unsafe.Add(start, at)) * firstHash
		h1 := *(*uint32)(unsafe.Add(start, at+stride)) * firstHash
		h2 := *(*uint32)(unsafe.Add(start, at+2*stride)) * firstHash
		h3 := *(*uint32)(unsafe.Add(start, at+3*stride)) * firstHash
		some := *(*uint64)(unsafe.Add(grams, 8*uintptr(h0>>16&mask)))>>(h0>>10&63) |
			*(*uint64)(unsafe.Add(grams, 8*uintptr(h1>>16&mask)))>>(h1>>10&63) |
			*(*uint64)(unsafe.Add(grams, 8*uintptr(h2>>16&mask)))>>(h2>>10&63) |
			*(*uint64)(unsafe.Add(grams, 8*uintptr(h3>>16&mask)))>>(h3>>10&63)
		if some&1 == 0 {
			continue
		}
		for place := at; place < at+4*stride; place += stride {
			found = x.maybe(text, place, found)
		}
	}
	for ; at+4 <= len(text); at += stride {
		found = x.maybe(text, at, found)
	}
	return found
}

// maybe appends the forms whose sampled gram is at.
func (x *index) maybe(text string, at int, found []span) []span {
	gram := load4(text, at)
	if !has(x.grams, gram*firstHash) || !has(x.again, gram*secondHash) {
		return found
	}
	return x.verify(text, at, found)
}

// verify appends the forms that have their one sampled gram at. It returns to no place twice.
func (x *index) verify(text string, at int, found []span) []span {
	for from := max(0, at-x.stride+1); from <= at && from+minAlone <= len(text); from++ {
		hash := hash8(load8(text, from)) >> x.beginAt
		first, end := x.begin[hash], x.begin[hash+1]
		if first == end {
			continue
		}
		// The last form in order that is not after the text there. All that the text begins with it begins with too.
		i, _ := slices.BinarySearchFunc(x.long[first:end], text[from:], func(f form, text string) int {
			if f.text <= text {
				return -1
			}
			return 1
		})
		if i == 0 {
			continue
		}
		for last := int32(first) + int32(i) - 1; last >= 0; last = x.prefix[last] {
			if f := &x.long[last]; f.at(text, from) {
				found = append(found, span{from + f.from, from + f.to, f.with})
			}
		}
	}
	return found
}

// at reports whether f stands in text from there on.
func (f *form) at(text string, from int) bool {
	to := from + len(f.text)
	if to > len(text) || text[from:to] != f.text {
		return false
	}
	if !f.apart {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return !adjoins(after) && (!adjoins(before) || endsEscape(text[:from]))
}

func adjoins(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// endsEscape reports whether text ends with a JSON escape such as `\n`, whose letter belongs to no word.
func endsEscape(text string) bool {
	n := len(text)
	if n >= 2 && text[n-2] == '\\' {
		_, size := escape(text[n-2:])
		return size == 2
	}
	if n >= 6 && text[n-6] == '\\' {
		_, size := escape(text[n-6:])
		return size == 6
	}
	return false
}

// A shortIndex finds forms of under 8 bytes, which have too few grams to sample well. It works as index does, with grams
// of 2 bytes.
type shortIndex struct {
	forms  []form
	stride int
	grams  []uint64    // one bit for each 2-byte gram
	first  [256][]form // the forms that begin with a byte
}

func (x *shortIndex) build() {
	if len(x.forms) == 0 {
		return
	}
	x.stride, x.grams = minAlone, make([]uint64, 1<<16/64)
	for _, f := range x.forms {
		x.stride = min(x.stride, len(f.text)-1)
		x.first[f.text[0]] = append(x.first[f.text[0]], f)
	}
	for _, f := range x.forms {
		for at := range x.stride {
			gram := uint(f.text[at]) | uint(f.text[at+1])<<8
			x.grams[gram/64] |= 1 << (gram % 64)
		}
	}
}

func (x *shortIndex) match(text string, found []span) []span {
	for at := 0; at+2 <= len(text); at += x.stride {
		gram := uint(text[at]) | uint(text[at+1])<<8
		if x.grams[gram/64]>>(gram%64)&1 == 0 {
			continue
		}
		for from := max(0, at-x.stride+1); from <= at; from++ {
			for i := range x.first[text[from]] {
				if f := &x.first[text[from]][i]; f.at(text, from) {
					found = append(found, span{from + f.from, from + f.to, f.with})
				}
			}
		}
	}
	return found
}
