package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func ring(t testing.TB, keys ...[]byte) *Ring {
	t.Helper()
	r, err := NewRing(keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSealAndOpen(t *testing.T) {
	r := ring(t, NewKey())
	for _, tt := range []struct{ name, plaintext, additional string }{
		{"both", "a session", "a caller"},
		{"no additional data", "a session", ""},
		{"nothing", "", ""},
		{"large", strings.Repeat("x", 100_000), "a caller"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			token := r.Seal("test", []byte(tt.plaintext), []byte(tt.additional))
			if strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				t.Errorf("token %.60q is not Base64url", token)
			}
			if want := base64.RawURLEncoding.EncodedLen(len(tt.plaintext) + overhead); len(token) != want {
				t.Errorf("the token has %d characters, want %d", len(token), want)
			}
			got, err := r.Open("test", token, []byte(tt.additional))
			if err != nil || string(got) != tt.plaintext {
				t.Errorf("opened as %.60q, %v", got, err)
			}
			if again := r.Seal("test", []byte(tt.plaintext), []byte(tt.additional)); again == token {
				t.Error("sealed twice, the same token came twice")
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	r := ring(t, NewKey(), NewKey())
	token := r.Seal("session", []byte("plaintext"), []byte("caller"))
	for _, tt := range []struct{ name, purpose, token, additional string }{
		{"another purpose", "cursor", token, "caller"},
		{"other additional data", "session", token, "caller2"},
		{"no additional data", "session", token, ""},
		{"nothing", "session", "", "caller"},
		{"cut", "session", token[:len(token)-4], "caller"},
		{"longer", "session", token + "AAAA", "caller"},
		{"padded", "session", token + "=", "caller"},
		{"a line break", "session", token[:8] + "\n" + token[8:], "caller"},
		{"a line break at the end", "session", token + "\r\n", "caller"},
		{"not Base64", "session", "!" + token[1:], "caller"},
		{"another ring's", "session", ring(t, NewKey()).Seal("session", []byte("plaintext"), []byte("caller")), "caller"},
		{"the head alone", "session", token[:(idSize+saltSize)*4/3], "caller"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := r.Open(tt.purpose, tt.token, []byte(tt.additional)); err != ErrInvalid || got != nil {
				t.Errorf("got %q, %v; want nothing and ErrInvalid itself", got, err)
			}
		})
	}
	t.Run("any character changed", func(t *testing.T) {
		for i := range token {
			for _, c := range []byte("AB") {
				changed := []byte(token)
				changed[i] = c
				if string(changed) == token {
					continue
				}
				if _, err := r.Open("session", string(changed), []byte("caller")); err != ErrInvalid {
					t.Errorf("character %d changed to %c: %v, want ErrInvalid", i, c, err)
				}
			}
		}
	})
}

// Both halves of the nonce are random: with either of them fixed, 2^32 tokens would be too many.
func TestNonceIsRandom(t *testing.T) {
	r := ring(t, NewKey())
	halves := map[string]bool{}
	for range 100 {
		raw, err := encoding.DecodeString(r.Seal("test", nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		halves[string(raw[idSize:idSize+saltSize])] = true
		halves[string(raw[idSize+saltSize:idSize+2*saltSize])] = true
	}
	if len(halves) != 200 {
		t.Errorf("100 tokens have %d different halves of a nonce, want 200", len(halves))
	}
}

// A token has one spelling: the bits that Base64 does not use are zero.
func TestOpenRefusesSpareBits(t *testing.T) {
	r := ring(t, NewKey())
	token := r.Seal("test", nil, nil) // 44 bytes leave two spare bits
	digits := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(digits, token[len(token)-1])
	if _, err := r.Open("test", token[:len(token)-1]+digits[last+1:last+2], nil); err != ErrInvalid {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

// TestRotation walks the documented steps with two replicas, one of them a step ahead.
func TestRotation(t *testing.T) {
	before, after := NewKey(), NewKey()
	steps := []*Ring{ring(t, before), ring(t, before, after), ring(t, after, before), ring(t, after)}
	for i := range len(steps) - 1 {
		for _, pair := range [][2]*Ring{{steps[i], steps[i+1]}, {steps[i+1], steps[i]}} {
			if i == 2 && pair[0] == steps[2] {
				pair[0] = steps[3] // the old key goes when nothing sealed with it is left
			}
			token := pair[0].Seal("test", []byte("x"), nil)
			if _, err := pair[1].Open("test", token, nil); err != nil {
				t.Errorf("between step %d and the next: %v", i, err)
			}
		}
	}
	if _, err := steps[3].Open("test", steps[0].Seal("test", []byte("x"), nil), nil); err != ErrInvalid {
		t.Errorf("a key that is gone opened its token: %v", err)
	}
}

// The key's id picks it, and its bytes decide: keys whose ids collide do not hide each other.
func TestKeysWithOneID(t *testing.T) {
	r := ring(t, NewKey(), NewKey())
	keys := *r.keys.Load()
	keys[1].id = keys[0].id
	second := &Ring{keys: new(atomic.Pointer[[]*key])}
	second.keys.Store(new(keys[1:]))
	if _, err := r.Open("test", second.Seal("test", []byte("x"), nil), nil); err != nil {
		t.Errorf("the second key of one id did not open: %v", err)
	}
}

func TestNewRingRefuses(t *testing.T) {
	k := NewKey()
	for _, tt := range []struct {
		name string
		keys [][]byte
		want string
	}{
		{"none", nil, "no key to seal with"},
		{"short", [][]byte{k, k[:31]}, "key 2 of 2 has 31 bytes, not 32"},
		{"long", [][]byte{append(bytes.Clone(k), 0)}, "key 1 of 1 has 33 bytes, not 32"},
		{"twice", [][]byte{k, NewKey(), k}, "keys 1 and 3 are the same"},
	} {
		if r, err := NewRing(tt.keys); r != nil || err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestRingKeepsItsOwnKeys(t *testing.T) {
	k := NewKey()
	r := ring(t, k)
	want := bytes.Clone(k)
	clear(k)
	if _, err := ring(t, want).Open("test", r.Seal("test", []byte("x"), nil), nil); err != nil {
		t.Errorf("clearing the caller's slice changed the ring: %v", err)
	}
}

func TestRingPrintsNoKey(t *testing.T) {
	secret := NewKey()
	r := ring(t, secret)
	r.Seal("test", nil, nil)
	var out bytes.Buffer
	held := struct {
		Ring, ring any
		value      Ring
	}{r, r, *r}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb, r, *r, held)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "ring", r, "value", *r)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "ring", r, "value", *r)
	if err := json.NewEncoder(&out).Encode(held); err != nil {
		t.Fatal(err)
	}
	subkey := (*r.keys.Load())[0].subkey("test")
	for _, b := range [][]byte{secret, subkey.mask[:]} {
		for name, form := range map[string]string{
			"bytes": fmt.Sprint(b)[1:30], "hex": hex.EncodeToString(b), "Go": strings.Trim(fmt.Sprintf("%#v", b), "[]byte{}")[:40],
			"Base64": base64.StdEncoding.EncodeToString(b), "raw": string(b),
		} {
			if strings.Contains(out.String(), form) {
				t.Errorf("a key is printed as %s", name)
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	r := ring(t, NewKey())
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			purpose := fmt.Sprint("purpose ", i%2)
			for range 50 {
				if _, err := r.Open(purpose, r.Seal(purpose, []byte("x"), nil), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
}

// oldToken was sealed for "session" and "caller" with a key of sevens.
const oldToken = "VVJp_jJPo2EDbtDq7brjXSrQpA3T73Gx00UxD3oC1I32NvLGrDGE7RpxStVTHvWwc6VPZ2Q"

// Tokens in clients' hands open after an upgrade of the gateway.
func TestTokenFormat(t *testing.T) {
	got, err := ring(t, bytes.Repeat([]byte{7}, KeySize)).Open("session", oldToken, []byte("caller"))
	if err != nil || string(got) != "plaintext" {
		t.Errorf("an old token gave %q, %v", got, err)
	}
}

// FuzzOpen: nothing opens but what Seal made.
func FuzzOpen(f *testing.F) {
	r := ring(f, bytes.Repeat([]byte{7}, KeySize))
	for _, seed := range []string{oldToken, "", "A", oldToken[:20], oldToken + "\n", strings.Repeat("A", 60), strings.ToUpper(oldToken)} {
		f.Add(seed, "caller")
	}
	f.Fuzz(func(t *testing.T, token, additional string) {
		got, err := r.Open("session", token, []byte(additional))
		if made := token == oldToken && additional == "caller"; made != (err == nil) {
			t.Errorf("%q with %q gave %q, %v", token, additional, got, err)
		}
		if err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", token, err)
		}
	})
}

// FuzzSeal: what was sealed opens as it was.
func FuzzSeal(f *testing.F) {
	r := ring(f, NewKey())
	f.Add("session", []byte("plaintext"), []byte("caller"))
	f.Add("", []byte(nil), []byte("\x00"))
	f.Fuzz(func(t *testing.T, purpose string, plaintext, additional []byte) {
		got, err := r.Open(purpose, r.Seal(purpose, plaintext, additional), additional)
		if err != nil || !bytes.Equal(got, plaintext) {
			t.Errorf("%q came back as %q, %v", plaintext, got, err)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	r := ring(b, NewKey())
	plaintext := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		r.Seal("test", plaintext, plaintext[:32])
	}
}

func BenchmarkOpen(b *testing.B) {
	r := ring(b, NewKey())
	token := r.Seal("test", make([]byte, 100), nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Open("test", token, nil); err != nil {
			b.Fatal(err)
		}
	}
}
