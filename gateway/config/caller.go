package config

import (
	"encoding/base64"

	"go.yaml.in/yaml/v4"

	"mcp-gateway/auth"
	"mcp-gateway/redact"
)

type callers struct{ keys []auth.Key }

var callersMembers = []member[callers]{
	{"keys", mapOf("API keys by the caller's name, each stored as its hash, `sha256:HEX`; make one with `mcp-gateway key NAME`", "",
		form("", "^sha256:[0-9a-fA-F]{64}$")).filled(), readKeys},
}

// callersSchema lets the word none stand in place of an object.
func callersSchema() schema {
	s := schema{Description: "who may ask; with `none` everyone is one caller, and can use every session", Default: "none"}
	s.AnyOf = []schema{{Enum: []string{"none"}}, object("", callersMembers)}
	s.AnyOf[1].Required = []string{"keys"}
	return s
}

func readCallers(l *loader, c *Config, at place) {
	if at.node.Kind == yaml.ScalarNode {
		if !l.is(at, yaml.ScalarNode) {
			return
		}
		if at.node.Value != "none" {
			l.refuse(at, "must be none, or keys with a name for each caller")
		}
		return
	}
	var found callers
	given, ok := readMembers(l, at, callersMembers, &found)
	if _, has := given["keys"]; ok && !has && !l.refused(at.path) {
		l.refuse(at, "has no keys, name them or write none")
	}
	c.Callers = auth.NewCallers(found.keys...)
}

func readKeys(l *loader, c *callers, at place) {
	list, ok := l.entries(at)
	if ok && len(list) == 0 {
		l.refuse(at, "names no caller, make a key with `mcp-gateway key NAME`, or write callers: none")
	}
	byHash := map[string]string{}
	for _, e := range list {
		if err := auth.CheckName(e.name); err != nil {
			l.refuse(e.named(at), "%v", err)
			continue
		}
		stored, ok := l.text(e.at)
		if !ok {
			continue
		}
		key, err := auth.ParseKey(e.name, stored.text)
		if err != nil {
			l.secret(stored.text)
			l.refuse(e.at, "%v", err)
			continue
		}
		if other, twice := byHash[key.Hash()]; twice {
			l.refuse(e.at, "is the same key as that of %s, make one for each caller", other)
			continue
		}
		byHash[key.Hash()] = e.name
		c.keys = append(c.keys, key)
	}
}

const sealKeySize = 32

var sealMembers = []member[Config]{
	{"keys", listOf("Base64 of 32 bytes each (`openssl rand -base64 32`); the first seals, all open. Share them between replicas",
		form("", `^[A-Za-z0-9+/\s]{43,}=\s*$`)).filled().without("one kept in `state_dir`"), readSealKeys},
}

func readSealKeys(l *loader, c *Config, at place) {
	list, ok := l.texts(at)
	if ok && len(list) == 0 {
		l.refuse(at, "has no key, make one with `openssl rand -base64 32`, or take seal out")
	}
	first := map[string]string{}
	for _, i := range list {
		key := l.secret(i.value.text)
		raw, err := base64.StdEncoding.Strict().DecodeString(i.value.text)
		if err != nil || len(raw) != sealKeySize {
			l.refuse(i.at, "is not the Base64 of 32 bytes, make one with `openssl rand -base64 32`")
			continue
		}
		if other, twice := first[i.value.text]; twice {
			l.refuse(i.at, "is the same key as %s, keep one", other)
			continue
		}
		first[i.value.text] = i.at.path
		l.secret(string(raw))
		l.literal(i.at, i.value)
		c.SealKeys = append(c.SealKeys, key)
	}
}

// literal warns of a credential that stands in the file itself.
func (l *loader) literal(at place, v value) {
	if !v.referenced {
		l.warn(at, "a credential stands in the file itself, keep it outside: ${env:NAME} or ${file:PATH}")
	}
}

// weak warns of a credential that redaction cannot treat as one.
func (l *loader) weak(at place, s redact.Secret) {
	text := s.Reveal()
	switch {
	case text == "":
	case len(text) < 8:
		l.warn(at, "a credential of under 8 characters cannot be kept out of logs, use a longer one")
	case redact.Weak(text):
		l.warn(at, "a credential of short words or a short number is kept out of logs, but not out of what the server says, use a longer one")
	}
}

// oneKind reports whether text is all letters or all digits.
func oneKind(text string) bool {
	letters, digits := true, true
	for _, r := range text {
		letters = letters && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		digits = digits && r >= '0' && r <= '9'
	}
	return letters || digits
}
