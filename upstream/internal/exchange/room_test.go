package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A message that is still being sent must not become another one: not when the server answers before it has read it, nor when the caller
// goes away.
func TestRoomsAreNobodysElse(t *testing.T) {
	var wrong atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.Header.Get("N"))
		early := n%3 == 0
		if early {
			_ = http.NewResponseController(w).EnableFullDuplex() // whatever it says, the answer is written
			answer(http.StatusOK, jsonType, ours)(w, r)
			_ = http.NewResponseController(w).Flush()
		}
		body, _ := io.ReadAll(r.Body)
		if !bytes.HasPrefix(numberedMessage(n), body) {
			wrong.Add(1)
		}
		if !early {
			answer(http.StatusOK, jsonType, ours)(w, r)
		}
	})
	c := newClient(t, s.URL)
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 15 {
				n := 100*caller + i + 1
				room := NewRoom(len(numberedMessage(n)))
				req := request()
				req.Room, req.Body = room, append(room.Bytes(), numberedMessage(n)...)
				req.Header.Set("N", strconv.Itoa(n))
				ctx, cancel := context.WithCancel(t.Context())
				if n%3 == 1 {
					go cancel()
				}
				if _, err := c.Do(ctx, req); err != nil && ctx.Err() == nil {
					// What a server answers before it has read all may be lost with its connection.
					if n%3 != 0 {
						t.Error(err)
					}
				}
				cancel()
			}
		})
	}
	callers.Wait()
	c.Close()
	s.Close()
	if wrong.Load() > 0 {
		t.Errorf("%d requests arrived with something of another", wrong.Load())
	}
}

func numberedMessage(n int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":7,"method":"m","params":{"said":"%s"}}`, strings.Repeat(strconv.Itoa(n)+" ", minPooled/2))
}

func TestARoomIsGivenBackOnce(t *testing.T) {
	if NewRoom(minPooled-1) != nil || NewRoom(maxPooled+1) != nil {
		t.Error("a small message or a huge one has a room")
	}
	r := NewRoom(minPooled)
	message := append(r.Bytes(), "message"...)
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
