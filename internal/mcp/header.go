package mcp

import (
	"encoding/base64"
	"strings"
)

const (
	base64Open  = "=?base64?"
	base64Close = "?="
)

// EncodeHeader is the value of Mcp-Name or Mcp-Param-* for s: s itself where it is plain, else its Base64 between
// markers (2026-07-28, Streamable HTTP: value encoding).
func EncodeHeader(s string) string {
	if plain(s) && !marked(s) {
		return s
	}
	return base64Open + base64.StdEncoding.EncodeToString([]byte(s)) + base64Close
}

// DecodeHeader is the string that a value of Mcp-Name or Mcp-Param-* stands for. It reports false for one that no
// sender may write: characters that are not plain, or markers around anything but padded Base64.
func DecodeHeader(value string) (string, bool) {
	value = strings.Trim(value, " \t")
	if !plain(value) {
		return "", false
	}
	if !marked(value) {
		return value, true
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(value[len(base64Open) : len(value)-len(base64Close)])
	return string(decoded), err == nil
}

func marked(s string) bool {
	return len(s) >= len(base64Open)+len(base64Close) && strings.HasPrefix(s, base64Open) && strings.HasSuffix(s, base64Close)
}

// plain reports whether s can be a header value as it is: printable ASCII and inner tabs, no space around.
func plain(s string) bool {
	if s == "" {
		return true
	}
	if s[0] <= ' ' || s[len(s)-1] <= ' ' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\t') || c > '~' {
			return false
		}
	}
	return true
}
