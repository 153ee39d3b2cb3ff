package sse

import (
	"errors"
	"testing"
)

// writes records each Write.
type writes struct {
	all []string
	err error
}

func (w *writes) Write(p []byte) (int, error) {
	w.all = append(w.all, string(p))
	return len(p), w.err
}

func TestWrite(t *testing.T) {
	event := func(data string) func(*writes) error {
		return func(w *writes) error { return WriteEvent(w, []byte(data)) }
	}
	comment := func(text string) func(*writes) error {
		return func(w *writes) error { return WriteComment(w, text) }
	}
	for _, tt := range []struct {
		name  string
		write func(*writes) error
		want  string
	}{
		{"event", event(`{"a":1}`), "data: {\"a\":1}\n\n"},
		{"empty event", event(""), "data: \n\n"},
		{"event over lines", event("{\n\"a\":\r\n1\r}"), "data: {\ndata: \"a\":\ndata: 1\ndata: }\n\n"},
		{"event that ends a line", event("a\n"), "data: a\ndata: \n\n"},
		{"comment", comment("keep-alive"), ": keep-alive\n\n"},
		{"comment over lines", comment("a\r\ndata: b\n\n"), ": a  data: b  \n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var w writes
			if err := tt.write(&w); err != nil {
				t.Fatal(err)
			}
			if len(w.all) != 1 || w.all[0] != tt.want {
				t.Errorf("got %q, want one Write of %q", w.all, tt.want)
			}
			broken := writes{err: errors.New("broken pipe")}
			if err := tt.write(&broken); err != broken.err {
				t.Errorf("a failed Write gave %v, want its error", err)
			}
		})
	}
}

func TestWriteEventAllocations(t *testing.T) {
	data := []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	buf := make([]byte, 0, 100)
	if got := testing.AllocsPerRun(100, func() { buf = AppendEvent(buf[:0], data) }); got != 0 {
		t.Errorf("AppendEvent into a buffer of its own: %v allocations, want none", got)
	}
}
