// Package seal makes tokens that only the gateway can read and nobody else can make: session tokens, cursors, and the
// state that a client carries between the rounds of a call.
//
// A [Ring] holds the keys. The first seals and all open, so that keys shared by replicas can be rotated without a token
// going stale: add the new key last, roll out, move it first, roll out. [StateKey] keeps a key of its own for a gateway
// that was given none.
//
// A token is sealed for a purpose, a name fixed in the code, and over additional data that whoever opens it must know;
// with either of them different it does not open.
package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// ErrInvalid is the one error of [Ring.Open]. It never says what was wrong, so that nobody can learn from it.
var ErrInvalid = errors.New("the token was not made here, has been changed, or was sealed with a key that is gone")

// A token is Base64url of: key id, the nonce of XAES-256-GCM in its two halves (salt, GCM's nonce), ciphertext, tag.
const (
	idSize   = 4
	saltSize = 12
	overhead = idSize + saltSize + 12 + 16
)

var encoding = base64.RawURLEncoding.Strict()

// A Ring seals with its first key and opens with all. It is safe for concurrent use, and prints none of its keys.
type Ring struct {
	keys *atomic.Pointer[[]*key]
}

type key struct {
	id      [idSize]byte
	secret  func() []byte // a closure, since fmt looks through fields and, under some verbs, pointers
	subkeys sync.Map      // *subkey by purpose; read without a lock once a purpose has been used
}

// NewRing makes a ring of keys of [KeySize] bytes each, all different. The first seals, all open.
func NewRing(keys [][]byte) (*Ring, error) {
	r := &Ring{keys: new(atomic.Pointer[[]*key])}
	if err := r.Rotate(keys); err != nil {
		return nil, err
	}
	return r, nil
}

// Rotate gives the ring other keys, as NewRing does. Tokens of keys that are gone do not open any more.
func (r *Ring) Rotate(keys [][]byte) error {
	if len(keys) == 0 {
		return errors.New("no key to seal with")
	}
	next := make([]*key, len(keys))
	for i, secret := range keys {
		if len(secret) != KeySize {
			return fmt.Errorf("key %d of %d has %d bytes, not %d", i+1, len(keys), len(secret), KeySize)
		}
		for j := range i {
			if bytes.Equal(secret, keys[j]) {
				return fmt.Errorf("keys %d and %d are the same", j+1, i+1)
			}
		}
		own := bytes.Clone(secret)
		k := &key{secret: func() []byte { return own }}
		sum := sha256.Sum256(append([]byte("mcp-gateway key id\x00"), secret...))
		copy(k.id[:], sum[:])
		next[i] = k
	}
	r.keys.Store(&next)
	return nil
}

// NewKey makes a random key.
func NewKey() []byte {
	secret := make([]byte, KeySize)
	rand.Read(secret)
	return secret
}

// Seal encrypts plaintext into a token for purpose, bound to additional. The token is visible ASCII without padding
// (Base64url), a third longer than the plaintext with 44 bytes added, and different each time.
//
// The purposes of a program are few and fixed: each is kept for the life of the ring. Any number of tokens is safe: each
// is encrypted with XAES-256-GCM, whose 24 random bytes repeat with a chance of 2^-32 only after 2^80 tokens of a purpose.
func (r *Ring) Seal(purpose string, plaintext, additional []byte) string {
	k := (*r.keys.Load())[0]
	raw := make([]byte, idSize+saltSize, overhead+len(plaintext))
	copy(raw, k.id[:])
	rand.Read(raw[idSize:])
	raw = k.subkey(purpose).aead(raw[idSize:]).Seal(raw, nil, plaintext, additional)
	return encoding.EncodeToString(raw)
}

// Open returns the plaintext of a token that some key of the ring sealed for purpose and additional, and [ErrInvalid] for
// anything else. It reads the whole token: the caller bounds its length.
func (r *Ring) Open(purpose, token string, additional []byte) ([]byte, error) {
	raw, err := encoding.DecodeString(token)
	// The decoder passes over line breaks; a token has one spelling.
	if err != nil || len(raw) < overhead || encoding.EncodedLen(len(raw)) != len(token) {
		return nil, ErrInvalid
	}
	id, salt, sealed := raw[:idSize], raw[idSize:idSize+saltSize], raw[idSize+saltSize:]
	for _, k := range *r.keys.Load() {
		if !bytes.Equal(id, k.id[:]) {
			continue
		}
		if plaintext, err := k.subkey(purpose).aead(salt).Open(nil, nil, sealed, additional); err == nil {
			return plaintext, nil
		}
	}
	return nil, ErrInvalid
}

// subkey separates the purposes, so that no token of one can ever open as one of another.
func (k *key) subkey(purpose string) *subkey {
	if known, ok := k.subkeys.Load(purpose); ok {
		return known.(*subkey)
	}
	secret, err := hkdf.Key(sha256.New, k.secret(), nil, "mcp-gateway seal\x00"+purpose, KeySize)
	if err != nil {
		panic(err) // only of a length that is too large
	}
	known, _ := k.subkeys.LoadOrStore(purpose, newSubkey(secret))
	return known.(*subkey)
}
