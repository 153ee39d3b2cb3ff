package config

import (
	"encoding/json"
	"regexp"
	"strings"

	"mcp-gateway/redact"
)

// within makes known the credentials that stand somewhere in text: in urls, and beside their names. It reports whether
// there is one.
func (l *loader) within(text string) bool {
	found := l.embedded(text)
	if begin := strings.TrimLeft(text, " \t\r\n"); strings.HasPrefix(begin, "{") || strings.HasPrefix(begin, "[") {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var v any
		if json.Valid([]byte(text)) && decoder.Decode(&v) == nil {
			return l.members("", v) || found
		}
	}
	return l.pairs(text) || found
}

// members makes known the credentials in a JSON value, which is a member called name or is in a list that is.
func (l *loader) members(name string, v any) bool {
	found := false
	switch v := v.(type) {
	case map[string]any:
		for member, e := range v {
			found = l.members(member, e) || found
		}
	case []any:
		for _, e := range v {
			found = l.members(name, e) || found
		}
	case json.Number:
		return l.member(name, v.String())
	case string:
		found = l.member(name, v)
		return l.within(v) || found
	}
	return found
}

func (l *loader) member(name, text string) bool {
	if text == "" || !credentialVariable(fieldName(name), text) {
		return false
	}
	l.named(name, text)
	return true
}

// fieldName is the name of a field as one of a variable: pwd alone is the directory of a shell there, and a password here.
func fieldName(name string) string {
	if strings.EqualFold(name, "pwd") {
		return "password"
	}
	return name
}

// pairName finds where a value begins in a connection string of libpq, ADO, JDBC or Redis, a form, or a command line. Of
// a name of several words, such as `Access Token`, the last counts.
var pairName = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)[ \t]*=[ \t]*`)

// pairs makes known the credentials of `name=value` in text. Where a value without quotes ends depends on who reads it: at
// `;` or a line's end for ADO, at a space for libpq, at a comma for Redis, at `&` in a form. Each such value is known,
// since a password may have what ends another.
func (l *loader) pairs(text string) bool {
	found := false
	address := strings.Contains(text, "://")
	for at := 0; at < len(text); {
		m := pairName.FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		begin, name := at+m[2], text[at+m[2]:at+m[3]]
		at += m[1]
		if address && begin > 0 && strings.IndexByte("?&", text[begin-1]) >= 0 {
			continue // it is a url's field
		}
		if !redact.CredentialName(fieldName(name)) {
			continue // there may be a pair in the value
		}
		if value, ok := quotedValue(text[at:]); ok {
			found = l.member(name, value) || found
			continue
		}
		value := text[at:]
		for _, ends := range []string{";\r\n", " \t", ",&"} {
			if n := strings.IndexAny(value, ends); n >= 0 {
				value = value[:n]
			}
			found = l.member(name, strings.TrimSpace(value)) || found
		}
		at += len(value)
	}
	return found
}

// quotedValue reads the value in quotes that text begins with, where ADO doubles a quote and libpq puts a backslash before
// one.
func quotedValue(text string) (string, bool) {
	if text == "" || text[0] != '\'' && text[0] != '"' {
		return "", false
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		c := text[i]
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case c == '\\' && (next == '\\' || next == '\'' || next == '"'), c == text[0] && next == c:
			b.WriteByte(next)
			i++
		case c == text[0]:
			return b.String(), true
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}
