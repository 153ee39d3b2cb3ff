// Package redact keeps secrets out of everything the gateway records or shows.
//
// A Secret is a string that only Reveal lets out: every formatting verb, slog, JSON and YAML show a mask. A
// Scrubber replaces what it was told of (Known) in text that somebody else wrote: credentials in what goes to clients
// (JSON, Definition), these and more in what is recorded (String, Bytes). NewHandler does that for a logger, and
// URL is how a url is displayed. Start reading at Secret, then Known and Scrubber; index.go finds, replace.go replaces.
package redact

import (
	"fmt"
	"log/slog"
)

// Mask stands wherever a secret would have stood.
const Mask = "[redacted]"

// A Secret is a string that shows itself only through Reveal. The zero Secret holds nothing and shows as nothing.
// It is comparable by identity, not by content.
type Secret struct {
	// A pointer, because fmt walks into unexported fields without asking for methods: it then prints an address.
	text *string
}

// NewSecret returns a Secret that holds text. An empty text is the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text. It is the only way out, so that a search for it finds every place that lets a secret go.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether s holds nothing.
func (s Secret) IsZero() bool { return s.text == nil }

// String returns the mask, or nothing for the zero Secret.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return Mask
}

// Format writes the mask for every verb and flag.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue gives slog the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText gives encoders of text, JSON among them, the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML gives YAML encoders the mask.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }
