package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"mcp-gateway/redact"
)

// credentials makes n of them as they are met: 20 to 64 random characters.
func credentials(n int) []redact.Secret {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	random := rand.New(rand.NewPCG(1, 2))
	list := make([]redact.Secret, n)
	for i := range list {
		b := make([]byte, 20+random.IntN(45))
		for j := range b {
			b[j] = alphabet[random.IntN(len(alphabet))]
		}
		list[i] = redact.NewSecret(string(b))
	}
	return list
}

// prose is about size bytes of JSON text with words of the kind that results have.
func prose(size int, sentence string) []byte {
	text, err := json.Marshal(map[string]any{"content": []any{map[string]any{
		"type": "text", "text": strings.Repeat(sentence, size/len(sentence)+1),
	}}})
	if err != nil {
		panic(err)
	}
	return text
}

const (
	plain    = "The deployment web-7f9 in namespace shop has 3 of 3 replicas ready; last change 2026-03-14T09:26:53Z by ci. "
	accented = "Das Gerät «web-7f9» läuft in Köln, 3 von 3 Kopien sind bereit; geändert 2026-03-14T09:26:53Z von ci. "
	escaped  = "{\"name\": \"web-7f9\", \"path\": \"C:\\srv\\web\", \"html\": \"<b>shop</b> & more\"}\n\t"
)

func BenchmarkJSON(b *testing.B) {
	texts := []struct {
		name string
		text []byte
	}{
		{"1MB", prose(1<<20, plain)}, {"1MB-accents", prose(1<<20, accented)}, {"1MB-escapes", prose(1<<20, escaped)}, {"200B", prose(120, plain)},
	}
	for _, row := range texts {
		b.Run(row.name+"/utf8.Valid", func(b *testing.B) {
			b.SetBytes(int64(len(row.text)))
			for b.Loop() {
				utf8.Valid(row.text)
			}
		})
		for _, n := range []int{1, 50, 500} {
			s := redact.NewScrubber(credentials(n)...)
			b.Run(fmt.Sprintf("%s/%d", row.name, n), func(b *testing.B) {
				b.SetBytes(int64(len(row.text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.JSON(row.text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// One credential for each 10 kB, as it is, and in Base64.
func BenchmarkDirtyJSON(b *testing.B) {
	list := credentials(500)
	s := redact.NewScrubber(list...)
	for name, written := range map[string]string{"plain": list[7].Reveal(), "base64": base64.StdEncoding.EncodeToString([]byte(list[7].Reveal()))} {
		text := prose(1<<20, strings.Repeat(plain, 100)+written)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.JSON(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A token that is handed out while 500 secrets are known.
func BenchmarkAddToken(b *testing.B) {
	s := redact.NewScrubber(credentials(500)...)
	tokens := s.Tokens()
	defer tokens.Close()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tokens.Add(redact.NewSecret(fmt.Sprintf("token-%032d", i)))
	}
}
