package exchange

import (
	"errors"
	"io"
	"net/http"
	"testing"
)

func TestARoomIsGivenBackOnce(t *testing.T) {
	for _, size := range []int{minPooled - 1, maxPooled + 1} {
		if empty, r := NewRoom(size); r != nil || len(empty) != 0 || cap(empty) < size {
			t.Errorf("a message of %d bytes has the room %v and %d bytes", size, r, cap(empty))
		}
	}
	message, r := NewRoom(minPooled)
	message = append(message, "message"...)
	first, second := r.sending(message), r.sending(message)
	r.release()
	if n := r.readers.Load(); n != 2 {
		t.Fatalf("%d read it, want 2", n)
	}
	if text, err := io.ReadAll(struct{ io.Reader }{first}); string(text) != "message" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for range 2 {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := r.readers.Load(); n != 1 {
		t.Errorf("%d read it after one was closed, want 1", n)
	}
	// Close comes while the other writes: the room stays its own until that has ended.
	_, err := second.(io.WriterTo).WriteTo(writerFunc(func(p []byte) (int, error) {
		_ = second.Close()
		if n := r.readers.Load(); n != 1 || string(p) != "message" {
			t.Errorf("%d read %q while it is written", n, p)
		}
		return len(p), nil
	}))
	if n := r.readers.Load(); n != 0 || err != nil {
		t.Errorf("%d read it in the end: %v", n, err)
	}
	for _, read := range []func() error{
		func() error { _, err := second.Read(make([]byte, 1)); return err },
		func() error { _, err := second.(io.WriterTo).WriteTo(io.Discard); return err },
	} {
		if err := read(); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("read after Close: %v", err)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
