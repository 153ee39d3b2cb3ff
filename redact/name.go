package redact

import (
	"net/url"
	"slices"
	"strings"
)

var (
	credentialWords = []string{
		"TOKEN", "KEY", "SECRET", "PASS", "PASSWORD", "PASSWD", "PASSPHRASE", "PASSCODE", "PWD", "AUTH", "AUTHORIZATION",
		"COOKIE", "CREDENTIAL",
	}
	// Words that count as a whole part only, since others end so (SPAT), or since it is what they qualify that counts.
	credentialParts = []string{"PAT", "JWT", "BEARER", "PRIVATE"}
	// A name that ends so says where something is, not what it is.
	pointerWords = []string{"PATH", "FILE", "DIR", "URL", "HOST", "SOCK", "TYPE", "NAME", "ID"}
)

// CredentialName reports whether a value called name is a credential: a part of the name is, or ends in, a word such
// as TOKEN, KEY or PASSWORD, in any case, singular or plural, with digits after it (GITHUB_TOKEN, x-api-keys,
// PGPASSWORD, TOKEN2); or a part is PAT, JWT, BEARER or PRIVATE. PWD, OLDPWD and names whose last part points elsewhere (KEY_FILE, AUTH_URL) are not.
func CredentialName(name string) bool {
	parts := strings.FieldsFunc(strings.ToUpper(camelParts(name)), func(r rune) bool {
		return r == '_' || r == '-' || r == '.' || r == ' '
	})
	if len(parts) == 0 || len(parts) == 1 && (parts[0] == "PWD" || parts[0] == "OLDPWD") {
		return false
	}
	if slices.Contains(pointerWords, parts[len(parts)-1]) {
		return false
	}
	return slices.ContainsFunc(parts, credentialPart)
}

func credentialPart(part string) bool {
	part = strings.TrimRight(part, "0123456789")
	if slices.Contains(credentialParts, strings.TrimSuffix(part, "S")) {
		return true
	}
	return slices.ContainsFunc(credentialWords, func(word string) bool {
		return strings.HasSuffix(part, word) || strings.HasSuffix(part, word+"S") || strings.HasSuffix(part, word+"ES")
	})
}

// camelParts puts a `_` where a lower-case letter meets an upper-case one: keyFile is two parts.
func camelParts(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if i > 0 && name[i] >= 'A' && name[i] <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z' {
			b.WriteByte('_')
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// CredentialShape reports whether s could be a credential by its looks: 16 or more characters with a digit, or 32 or
// more of anything.
func CredentialShape(s string) bool {
	return len(s) >= 32 || len(s) >= 16 && strings.ContainsAny(s, "0123456789")
}

// URL returns raw for display: without userinfo, fragment and query values, and with credential-shaped path segments
// and query names masked. A url that is not valid is not shown at all.
func URL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Opaque != "" {
		return "[invalid url]"
	}
	segments := strings.Split(u.EscapedPath(), "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil || CredentialShape(plain) {
			segments[i] = Mask
		}
	}
	shown := u.Scheme + "://" + u.Host + strings.Join(segments, "/")
	if u.RawQuery == "" {
		return Printable(shown)
	}
	fields := strings.Split(u.RawQuery, "&")
	for i, field := range fields {
		name, _, pair := strings.Cut(field, "=")
		if plain, err := url.QueryUnescape(name); err != nil || CredentialShape(plain) {
			name = Mask
		}
		if pair {
			name += "=" + Mask
		}
		fields[i] = name
	}
	return Printable(shown + "?" + strings.Join(fields, "&"))
}
