package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"mcp-gateway/internal/sse"
	"mcp-gateway/upstream"
)

// A body is a response's, bounded in memory: past largeResult it is read only while it holds one of the client's slots.
type body struct {
	ctx    context.Context
	client *Client
	src    io.Reader
	events *sse.Reader // of a stream; nil for a body that is kept whole
	count  int         // bytes since the start
	first  byte        // of the body
	slot   bool
	pooled []byte // what all has read into, where that can be used again
}

// stream reads b as events.
func (b *body) stream() *sse.Reader {
	b.events = sse.NewReader(b, maxResult)
	return b.events
}

// holds is how much memory what has been read takes. Comments, which a server may send for hours, take none.
func (b *body) holds() int {
	if b.events != nil {
		return b.events.Held()
	}
	return b.count
}

// Read reads from the response.
func (b *body) Read(p []byte) (int, error) {
	if !b.slot && b.holds() >= largeResult {
		select {
		case b.client.large <- struct{}{}:
			b.slot = true
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		case <-b.client.life.Done():
			return 0, errClosed
		}
	}
	n, err := b.src.Read(p)
	if b.first == 0 && n > 0 {
		b.first = p[0]
	}
	b.count += n
	return n, err
}

func (b *body) release() { b.handOver(nil) }

// handOver leaves the slot to who holds the reply.
func (b *body) handOver(hold *upstream.Hold) {
	if b.slot {
		b.slot = false
		hold.Keep(func() { <-b.client.large })
	}
}

// begin goes on with another response's body.
func (b *body) begin(src io.Reader) {
	b.release()
	b.src, b.count, b.first = src, 0, 0
}

// all reads to the end; length is what the server announced, -1 for nothing.
func (b *body) all(length int64) ([]byte, error) {
	if length > maxResult {
		return nil, errTooLarge
	}
	size := 2 << 10
	if length >= 0 {
		size = int(min(length, 2*largeResult))
	}
	data := b.room(size)
	for {
		if len(data) == cap(data) {
			if int64(len(data)) == length && length > 0 {
				return data, nil // net/http has seen the end
			}
			data = grow(data, int(length))
		}
		n, err := b.Read(data[len(data):min(cap(data), maxResult+1)])
		data = data[:len(data)+n]
		switch {
		case len(data) > maxResult:
			return nil, errTooLarge
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

const (
	// A buffer is used again from minPooled on, where making it costs more than the pool, and up to maxPooled, since a pool of larger ones
	// would be most of the memory.
	minPooled = 64 << 10
	maxPooled = 4 << 20
)

var pool = sync.Pool{New: func() any { return new([]byte) }}

// room is an empty buffer of that size or more.
func (b *body) room(size int) []byte {
	data, again := buffer(size)
	if again {
		b.pooled = data
	}
	return data
}

// buffer is an empty one of that size or more. again says that it belongs into the pool once nobody reads it any more.
func buffer(size int) (data []byte, again bool) {
	if size < minPooled || size > maxPooled {
		return make([]byte, 0, size), false
	}
	if used := *pool.Get().(*[]byte); cap(used) >= size {
		return used[:0], true
	}
	return make([]byte, 0, (size+minPooled-1)/minPooled*minPooled), true
}

// lend has who holds the reply give the buffer back that it lies in. Without a hold nobody says when it is not read any more.
func (b *body) lend(hold *upstream.Hold) {
	if b.pooled != nil {
		hold.Lend(func() { pool.Put(new(b.pooled[:0])) })
	}
}

// grow makes room. What the server announces is believed once it has sent a little of it.
func grow(data []byte, length int) []byte {
	size := max(512, 2*cap(data))
	if length > cap(data) {
		size = length
	}
	return append(make([]byte, 0, min(size, maxResult+1)), data...)
}

// cut reports whether it was not the server that ended the reading.
func (b *body) cut() bool { return b.ctx.Err() != nil || b.client.life.Err() != nil }

// failure is what became of a reply that could not be read to its end.
func (b *body) failure(resp *http.Response, err error) *upstream.Error {
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, sse.ErrEventTooLarge):
		return &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.TooLarge, HTTPStatus: resp.StatusCode, Err: err}
	case b.cut():
		return b.client.ended(b.ctx, true, err)
	}
	return &upstream.Error{
		Outcome: upstream.NoResponse, Cause: upstream.ConnectionLost, HTTPStatus: resp.StatusCode,
		Err: fmt.Errorf("the reply broke off: %w", err),
	}
}

// ended is the failure of a stream that ended without the reply.
func (b *body) ended(resp *http.Response, err, stray error) *upstream.Error {
	switch {
	case b.cut():
		return b.failure(resp, err)
	case b.first == '{' || b.first == '[' || b.first == '<':
		return unusable(resp, errors.New("the reply is no event stream, though its content type says so"))
	case !errors.Is(err, io.EOF):
		return b.failure(resp, err)
	case stray != nil:
		// What stands in a stream came after the server had begun, so that nobody may take it for a refusal.
		return unusable(resp, errors.New(stray.Error()))
	case !success(resp):
		return httpError(resp, errors.New("the stream ended without a reply"))
	}
	return b.failure(resp, errors.New("the stream ended without a reply"))
}
