package redact

import (
	"context"
	"encoding"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// NewHandler returns a handler that passes to next what scrubber has cleaned: the message and every attribute, the
// ones of With included, judged by the secrets known when the record is written. Values that are not numbers,
// booleans, times, strings or nil reach next as text. Control characters are shown and never sent (see Printable): a
// server's words must not move the cursor of whoever reads the log.
func NewHandler(next slog.Handler, scrubber *Scrubber) slog.Handler {
	return &handler{next: next, scrubber: scrubber}
}

type handler struct {
	next     slog.Handler
	scrubber *Scrubber
	// What With added, in order: kept until a record is written, since a secret may become known after With.
	steps []step
}

// A step is one WithGroup or one WithAttrs.
type step struct {
	group string
	attrs []slog.Attr
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(step{group: name})
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	return h.with(step{attrs: slices.Clone(attrs)})
}

func (h *handler) with(s step) slog.Handler {
	return &handler{next: h.next, scrubber: h.scrubber, steps: append(slices.Clip(h.steps), s)}
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if len(h.steps) == 0 && h.passes(&r) {
		return h.next.Handle(ctx, r)
	}
	attrs := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, h.attr(a))
		return true
	})
	for _, s := range slices.Backward(h.steps) {
		if s.group != "" {
			attrs = []slog.Attr{{Key: h.text(s.group), Value: slog.GroupValue(attrs...)}}
			continue
		}
		cleaned := make([]slog.Attr, 0, len(s.attrs)+len(attrs))
		for _, a := range s.attrs {
			cleaned = append(cleaned, h.attr(a))
		}
		attrs = append(cleaned, attrs...)
	}
	clean := slog.NewRecord(r.Time, r.Level, h.text(r.Message), r.PC)
	clean.AddAttrs(attrs...)
	return h.next.Handle(ctx, clean)
}

// passes reports whether r has nothing to clean, as nearly every record has: it needs no copy then. All its texts are looked at in
// one go, with spaces between them, which is what adjoins none of them.
func (h *handler) passes(r *slog.Record) bool {
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	all := append((*room)[:0], r.Message...)
	pass := true
	r.Attrs(func(a slog.Attr) bool {
		all = append(append(all, ' '), a.Key...)
		switch a.Value.Kind() {
		case slog.KindString:
			all = append(append(all, ' '), a.Value.String()...)
		case slog.KindBool, slog.KindDuration, slog.KindTime:
		case slog.KindInt64:
			n := a.Value.Int64()
			pass = -shortNumber < n && n < shortNumber
		default:
			pass = false
		}
		pass = pass && len(all) <= maxText
		return pass
	})
	if cap(all) <= 2*maxText {
		*room = all
	}
	if !pass || len(all) > maxText {
		return false
	}
	view := unsafe.String(unsafe.SliceData(all), len(all)) // no longer than this call
	return !needsCare(view) && !h.scrubber.Holds(view)
}

// rooms are what the texts of records are put together in.
var rooms = sync.Pool{New: func() any { return new(make([]byte, 0, 1<<10)) }}

// shortNumber is past those that have fewer digits than anything that is replaced alone.
const shortNumber = 1e4

func (h *handler) attr(a slog.Attr) slog.Attr {
	return slog.Attr{Key: h.text(a.Key), Value: h.value(a.Value)}
}

func (h *handler) value(v slog.Value) slog.Value {
	v = v.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		members := make([]slog.Attr, 0, len(v.Group()))
		for _, a := range v.Group() {
			members = append(members, h.attr(a))
		}
		return slog.GroupValue(members...)
	case slog.KindString:
		return slog.StringValue(h.text(v.String()))
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64:
		if text := v.String(); h.scrubber.Holds(text) {
			return slog.StringValue(h.text(text))
		}
		return v
	case slog.KindBool, slog.KindDuration, slog.KindTime:
		return v
	default:
		if v.Any() == nil {
			return v // an empty attribute stays one, and is left out
		}
		return slog.StringValue(h.text(describe(v.Any())))
	}
}

func (h *handler) text(s string) string { return Printable(Cut(h.scrubber.String(s), maxText)) }

// maxText bounds each text of a record, in bytes: names and messages come from outside.
const maxText = 8 << 10

// Cut returns s, or where it is longer than max bytes its beginning and how much was left out. It comes after the
// scrubbing: a cut could hide half a secret from what replaces it.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max], "") + fmt.Sprintf("… (%d bytes in all)", len(s))
}

// describe writes v as a text handler would. A method of v that panics ends no record.
func describe(v any) (text string) {
	defer func() {
		if recover() != nil {
			text = "a value that cannot be written"
		}
	}()
	switch v := v.(type) {
	case error, fmt.Stringer:
		return fmt.Sprintf("%v", v)
	case []byte:
		return string(v)
	case encoding.TextMarshaler:
		text, err := v.MarshalText()
		if err != nil {
			return "a value that cannot be written"
		}
		return string(text)
	default:
		return fmt.Sprintf("%+v", v)
	}
}

// Printable returns s as one line that a terminal only prints: control characters become their Unicode pictures
// (ESC is shown as ␛), and bytes that are not UTF-8, the C1 controls and the characters that reorder or split a
// line become U+FFFD.
func Printable(s string) string {
	if !needsCare(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f:
			return 0x2421
		case unsafeRune(r):
			return utf8.RuneError
		}
		return r
	}, s)
}

func needsCare(s string) bool {
	ascii := 0
	for ascii < len(s) && s[ascii] >= 0x20 && s[ascii] < 0x7f {
		ascii++
	}
	s = s[ascii:]
	for i, r := range s {
		if r < 0x20 || r == 0x7f || unsafeRune(r) {
			return true
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return true
			}
		}
	}
	return false
}

// unsafeRune reports a C1 control, a bidirectional control or a line separator.
func unsafeRune(r rune) bool {
	return r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r > 0x7f && unicode.Is(unicode.Bidi_Control, r)
}
