package seal

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The vectors of the specification, c2sp.org/XAES-256-GCM. Between them they take both ways of doubling the mask.
func TestXAES(t *testing.T) {
	const nonce = "ABCDEFGHIJKLMNOPQRSTUVWX"
	for _, tt := range []struct{ key, additional, sealed string }{
		{"\x01", "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{"\x03", "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		sealed, err := hex.DecodeString(tt.sealed)
		if err != nil {
			t.Fatal(err)
		}
		k := newSubkey(bytes.Repeat([]byte(tt.key), KeySize))
		got, err := k.aead([]byte(nonce[:saltSize])).Open(nil, nil, append([]byte(nonce[saltSize:]), sealed...), []byte(tt.additional))
		if err != nil || string(got) != "XAES-256-GCM" {
			t.Errorf("key of %q: %q, %v", tt.key, got, err)
		}
	}
}
