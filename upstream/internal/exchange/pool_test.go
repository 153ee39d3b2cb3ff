package exchange

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"mcp-gateway/upstream"
)

// Each reply says its own number over and over, in a size of its own.
func numbered(n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"result":{"said":"%s"}}`, strings.Repeat(strconv.Itoa(n)+" ", minPooled/4+n))
}

// A buffer that is used again must not be anybody's still: not before the hold is released, and never without one.
func TestPooledBuffersAreNobodysElse(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.Header.Get("N"))
		text := numbered(n)
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write([]byte(text))
	})
	c := newClient(t, s.URL)
	var callers sync.WaitGroup
	for caller := range 16 {
		callers.Go(func() {
			var kept []Reply
			var numbers []int
			holds := make([]upstream.Hold, 12)
			for i := range holds {
				n := caller*100 + i
				req := request()
				req.Header.Set("N", strconv.Itoa(n))
				if i%3 > 0 {
					req.Hold = &holds[i]
				}
				reply, err := c.Do(t.Context(), req)
				if err != nil {
					t.Error(err)
					return
				}
				kept, numbers = append(kept, reply), append(numbers, n)
				if i%2 == 1 {
					same(t, numbers[i], kept[i])
					holds[i].Release()
					kept[i] = Reply{}
				}
			}
			for i, reply := range kept {
				if reply.Message != nil {
					same(t, numbers[i], reply)
				}
			}
		})
	}
	callers.Wait()
}

func same(t *testing.T, n int, reply Reply) {
	if want := numbered(n); !bytes.Contains([]byte(want), reply.Result.Raw()) || len(reply.Result.Raw()) < minPooled/2 {
		t.Errorf("the reply to %d is another one's: %.60s", n, reply.Result.Raw())
	}
}

func TestBuffersAreUsedAgain(t *testing.T) {
	b := &body{}
	first := b.room(minPooled)
	var hold upstream.Hold
	b.lend(&hold)
	if hold.Release(); cap(first) < minPooled {
		t.Fatalf("a buffer of %d bytes", cap(first))
	}
	for _, size := range []int{minPooled - 1, maxPooled + 1} {
		small := &body{}
		if small.room(size); small.pooled != nil {
			t.Errorf("a buffer of %d bytes is pooled", size)
		}
	}
	if grown := (&body{}).room(3 * minPooled); cap(grown) < 3*minPooled || len(grown) != 0 {
		t.Errorf("%d of %d bytes", len(grown), cap(grown))
	}
}
