// Package auth knows who is asking and what the gateway shows an upstream.
//
// Callers authenticates a request of a client; Credential signs a request to an upstream. Neither ever becomes the
// other: a caller's key ends at the gateway. Start reading at Callers.Authenticate.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"mcp-gateway/redact"
)

const (
	keyPrefix  = "mcpgw_"
	hashPrefix = "sha256:"
)

// A Caller is who asks, and by which key. Where no callers are configured, all are the zero Caller.
type Caller struct {
	Name  string
	Grant [sha256.Size]byte // the hash of the key that was shown
}

// Callers are those who may ask. The zero Callers lets everyone in as one caller.
type Callers struct {
	keys []Key
}

// A Key is one caller's API key as it is stored: only its hash.
type Key struct {
	Name string
	hash [sha256.Size]byte
}

// CheckName returns an error that says what a caller's name looks like, unless name is one.
func CheckName(name string) error {
	valid := name != "" && len(name) <= 64
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		valid = valid && (letter || i > 0 && strings.ContainsRune("._@-", r))
	}
	if strings.HasPrefix(name, keyPrefix) {
		return errors.New("the name looks like an API key itself: names are shown in the log, so put a name there")
	}
	if !valid {
		return errors.New("a caller's name has 1 to 64 letters, digits and . _ @ -, and begins with a letter or digit")
	}
	return nil
}

// ParseKey reads a stored key, `sha256:` and 64 hexadecimal digits, of the caller called name. Its errors never quote
// stored, since a person may have put the key itself there.
func ParseKey(name, stored string) (Key, error) {
	if err := CheckName(name); err != nil {
		return Key{}, err
	}
	k := Key{Name: name}
	digits, hashed := strings.CutPrefix(stored, hashPrefix)
	switch {
	case strings.HasPrefix(stored, keyPrefix):
		return Key{}, errors.New("is the key itself, store its hash, as `mcp-gateway key NAME` prints it")
	case !hashed:
		return Key{}, errors.New("must begin with sha256:, make one with `mcp-gateway key NAME`")
	case len(digits) != hex.EncodedLen(sha256.Size):
		return Key{}, fmt.Errorf("needs 64 hexadecimal digits after sha256:, it has %d characters", len(digits))
	}
	if _, err := hex.Decode(k.hash[:], []byte(digits)); err != nil {
		return Key{}, errors.New("needs 64 hexadecimal digits after sha256:, it has other characters")
	}
	return k, nil
}

// Hash returns the hash in hexadecimal. Two keys with one hash are the same API key.
func (k Key) Hash() string { return hex.EncodeToString(k.hash[:]) }

// NewKey makes an API key of 32 random bytes: key for the caller, stored for the configuration.
func NewKey() (key redact.Secret, stored string) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // it never fails: the program would have ended
	text := keyPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	hash := sha256.Sum256([]byte(text))
	return redact.NewSecret(text), hashPrefix + hex.EncodeToString(hash[:])
}

// NewCallers returns callers who must show one of keys. Without keys it is the zero Callers.
func NewCallers(keys ...Key) Callers {
	return Callers{keys: append([]Key(nil), keys...)}
}

// None reports whether everyone is let in as one caller.
func (c Callers) None() bool { return len(c.keys) == 0 }

// Has reports whether caller, whom Authenticate once told, is still let in: under the same name by the same key. Who holds a
// key that was replaced is not, though another key has the name.
func (c Callers) Has(caller Caller) bool {
	if c.None() {
		return caller == Caller{}
	}
	return slices.Contains(c.keys, Key{caller.Name, caller.Grant})
}

// Equal reports whether both let in the same callers by the same keys.
func (c Callers) Equal(other Callers) bool { return slices.Equal(c.keys, other.keys) }

// Names returns the callers' names in the order they were given.
func (c Callers) Names() []string {
	names := make([]string, len(c.keys))
	for i, k := range c.keys {
		names[i] = k.Name
	}
	return names
}

// Unauthenticated is why a request has no caller. The answer is 401 with Challenge as WWW-Authenticate (RFC 6750).
type Unauthenticated struct {
	Reason string // for a person; never what was sent
}

func (e *Unauthenticated) Error() string { return e.Reason }

// Challenge is the value of the WWW-Authenticate header.
func (e *Unauthenticated) Challenge() string { return "Bearer" }

// Authenticate returns who sent r, by its one `Authorization: Bearer mcpgw_…` header. Its error is an
// *Unauthenticated. How long it takes says nothing about which key, or how much of one, matched.
func (c Callers) Authenticate(r *http.Request) (Caller, error) {
	if c.None() {
		return Caller{}, nil
	}
	token, err := bearer(r.Header.Values("Authorization"))
	if err != nil {
		return Caller{}, err
	}
	hash := sha256.Sum256([]byte(token))
	found := -1
	for i := range c.keys {
		same := subtle.ConstantTimeCompare(hash[:], c.keys[i].hash[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return Caller{}, &Unauthenticated{"this API key is not known here: ask whoever runs the gateway for one"}
	}
	return Caller{Name: c.keys[found].Name, Grant: hash}, nil
}

// bearer returns the token of the only Authorization header there may be: two readers of two headers could disagree
// about who is asking.
func bearer(headers []string) (string, error) {
	switch len(headers) {
	case 0:
		return "", &Unauthenticated{"an API key is needed: send it as `Authorization: Bearer mcpgw_…`"}
	case 1:
	default:
		return "", &Unauthenticated{"more than one Authorization header: send exactly one"}
	}
	scheme, token, _ := strings.Cut(strings.Trim(headers[0], " \t"), " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(token, keyPrefix) {
		return "", &Unauthenticated{"the Authorization header is not an API key: send it as `Bearer mcpgw_…`"}
	}
	return token, nil
}
