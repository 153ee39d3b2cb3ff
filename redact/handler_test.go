package redact_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"mcp-gateway/redact"
)

type stringer struct{ s string }

func (s stringer) String() string { return "stringer " + s.s }

type valuer struct{ s string }

func (v valuer) LogValue() slog.Value { return slog.GroupValue(slog.String("inner", v.s)) }

type marshaler struct{ s string }

func (m marshaler) MarshalText() ([]byte, error) { return []byte(m.s), nil }

type unmarshalable struct{}

func (unmarshalable) MarshalText() ([]byte, error) { panic("planted-panic-1") }

type broken struct{}

func (*broken) String() string { panic("no") }

func TestHandlerScrubsEverything(t *testing.T) {
	s := redact.NewScrubber()
	var text, structured bytes.Buffer
	for _, next := range []slog.Handler{slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&structured, nil)} {
		// The secret becomes known only after With.
		log := slog.New(redact.NewHandler(next, s)).With("with", planted, slog.Group("g", "in", planted))
		log = log.WithGroup("outer").With("later", errors.New("with "+planted))
		s.Add(redact.NewSecret(planted), redact.NewSecret("1234567890"))
		log.Error("message "+planted,
			"string", planted, "error", errors.Join(errors.New("a"), errors.New(planted)), "stringer", stringer{planted},
			"valuer", valuer{planted}, "marshaler", marshaler{planted}, "bytes", []byte(planted), "raw", json.RawMessage(`"`+planted+`"`),
			"map", map[string]string{planted: planted}, "struct", struct{ A, b string }{planted, planted}, "pointer", &planted2,
			"slice", []any{planted}, "number", 1234567890, planted, "key", slog.Group(planted, "a", 1), "nil", nil,
			"broken", (*broken)(nil), "unmarshalable", unmarshalable{}, "secret", redact.NewSecret(planted),
			"kept", 42, "took", time.Second, "yes", true, "half", 0.5)
	}
	for _, out := range []string{text.String(), structured.String()} {
		if strings.Contains(out, planted) || strings.Contains(out, "1234567890") || strings.Contains(out, "planted-panic-1") {
			t.Errorf("a secret is in %s", out)
		}
		if n := strings.Count(out, redact.Mask); n < 18 {
			t.Errorf("%d masks in %s", n, out)
		}
	}
	for _, want := range []string{`"kept":42`, `"yes":true`, `"half":0.5`, `"took":1000000000`, `"nil":null`} {
		if !strings.Contains(structured.String(), want) {
			t.Errorf("%s is not in %s", want, structured.String())
		}
	}
}

var planted2 = struct{ S string }{planted}

func TestHandlerKeepsTerminalsSafe(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(redact.NewHandler(slog.NewJSONHandler(&out, nil), redact.NewScrubber()))
	log.Info("a\x1b[31mb", "v", "c\u009bd\u202ee\nf\x7fg\xffh\u2028i", "e", errors.New("x\ry"))
	var record map[string]string
	if err := json.Unmarshal(out.Bytes(), &record); err != nil {
		t.Fatal(err)
	}
	if record["msg"] != "a␛[31mb" || record["v"] != "c\ufffdd\ufffde␊f␡g\ufffdh\ufffdi" || record["e"] != "x␍y" {
		t.Errorf("%q", record)
	}
}

func TestPrintableLeavesTextAlone(t *testing.T) {
	for _, s := range []string{"", "plain", "é 😀 \ufffd", "日本語"} {
		if got := redact.Printable(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// The wrapper keeps what slog asks of every handler.
func TestHandlerContract(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return redact.NewHandler(slog.NewJSONHandler(&out, nil), redact.NewScrubber())
	}, func(t *testing.T) map[string]any {
		var record map[string]any
		if err := json.Unmarshal(out.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		return record
	})
}

func TestCutComesAfterScrubbing(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(redact.NewHandler(slog.NewJSONHandler(&out, nil), redact.NewScrubber(redact.NewSecret("s3cr3t-t0ken"))))
	log.Info("m", "name", strings.Repeat("x", 8<<10-4)+"s3cr3t-t0ken"+strings.Repeat("é", 4<<20))
	if out.Len() > 16<<10 || strings.Contains(out.String(), "s3c") || !strings.Contains(out.String(), "bytes in all") {
		t.Errorf("%d bytes: %.200s", out.Len(), out.String())
	}
	if got := redact.Cut("aé", 2); got != "a… (3 bytes in all)" {
		t.Errorf("%q", got)
	}
}

// BenchmarkRecord is a line of the access log, as every call writes one at debug.
func BenchmarkRecord(b *testing.B) {
	line := func(next slog.Handler) func() {
		log := slog.New(next)
		return func() {
			log.LogAttrs(b.Context(), slog.LevelDebug, "called",
				slog.String("request", "9f2c11ab-k3"), slog.String("method", "tools/call"), slog.String("name", "files__read_text_file"),
				slog.String("upstream", "files"), slog.String("target", "read_text_file"), slog.String("outcome", "ok"),
				slog.Duration("duration", 1234567), slog.Duration("upstreamDuration", 1034567), slog.String("caller", "alice"), slog.Int("status", 200))
		}
	}
	bare := slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})
	for _, h := range []struct {
		name string
		next slog.Handler
	}{
		{"bare", bare},
		{"50 secrets", redact.NewHandler(bare, redact.NewScrubber(credentials(50)...))},
	} {
		b.Run(h.name, func(b *testing.B) {
			b.ReportAllocs()
			write := line(h.next)
			for b.Loop() {
				write()
			}
		})
	}
}
