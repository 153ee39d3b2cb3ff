package config

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// maxDuration bounds every setting that is a time.
const maxDuration = 24 * time.Hour

// A value is a string of the file with its references resolved.
type value struct {
	text       string
	referenced bool // some of it came through ${}
}

// String shows the value in a message: quoted, unless it came from outside the file or may
// have a password in it.
func (v value) String() string {
	if v.referenced || strings.Contains(v.text, "@") {
		return "its value"
	}
	return quote(v.text)
}

// text reads a string. Any scalar is one, as written: 3.10 is "3.10" and 0123456 is "0123456".
func (l *loader) text(at place) (value, bool) {
	if !l.is(at, yaml.ScalarNode) {
		return value{}, false
	}
	v, err := l.expand(at.node.Value)
	if err != nil {
		l.refuse(at, "%v", err)
		return value{}, false
	}
	if strings.ContainsRune(v.text, 0) {
		l.refuse(at, "has a NUL character, take it out")
		return value{}, false
	}
	return v, true
}

// texts reads a list of strings. It leaves out what it has refused, and then reports false.
func (l *loader) texts(at place) ([]item, bool) {
	places, ok := l.items(at)
	if !ok {
		return nil, false
	}
	list := make([]item, 0, len(places))
	for _, p := range places {
		v, good := l.text(p)
		if !good {
			ok = false
			continue
		}
		list = append(list, item{value: v, at: p})
	}
	return list, ok
}

// An item is a value of a list or a mapping, and where it stands.
type item struct {
	name  string
	value value
	at    place
}

// word reads a string that is one of words.
func (l *loader) word(at place, words ...string) (string, bool) {
	v, ok := l.text(at)
	if !ok {
		return "", false
	}
	for _, w := range words {
		if v.text == w {
			return w, true
		}
	}
	l.refuse(at, "%v is not one of %s", v, strings.Join(words, ", "))
	return "", false
}

// boolean reads true or false. Quoted, it would be a string elsewhere, so it is refused.
func (l *loader) boolean(at place) bool {
	if !l.is(at, yaml.ScalarNode) {
		return false
	}
	if at.node.Tag != "!!bool" || at.node.Value != "true" && at.node.Value != "false" {
		l.refuse(at, "must be true or false, without quotes")
		return false
	}
	return at.node.Value == "true"
}

// duration reads a time with a unit, from least to 24 h.
func (l *loader) duration(at place, least time.Duration, into *time.Duration) {
	v, ok := l.text(at)
	if !ok {
		return
	}
	d, err := time.ParseDuration(v.text)
	switch {
	case v.text != "" && strings.Trim(v.text, "+-.0123456789") == "":
		l.refuse(at, "%v has no unit, write one such as 500ms, 30s, 5m or 2h", v)
	case err != nil:
		l.refuse(at, "%v is not a duration, write one such as 500ms, 30s, 5m or 2h", v)
	case d < least || d > maxDuration:
		l.refuse(at, "%v is out of range, it must lie between %v and 24h", v, least)
	default:
		*into = d
	}
}

// number reads a whole number from least to most.
func (l *loader) number(at place, least, most int, into *int) {
	v, ok := l.text(at)
	if !ok {
		return
	}
	n, err := strconv.Atoi(v.text)
	switch {
	case v.text == "" || strings.Trim(v.text, "0123456789") != "" && (err != nil || n >= 0):
		l.refuse(at, "%v is not a whole number", v)
	case n < least || n > most:
		l.refuse(at, "%v is out of range, it must lie between %d and %d", v, least, most)
	default:
		*into = n
	}
}

func control(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }
