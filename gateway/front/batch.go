package front

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

const (
	// maxBatch bounds the messages of one array.
	maxBatch = 50

	// maxBatchAnswer bounds the responses to one array, in bytes.
	maxBatchAnswer = 32 << 20

	tooMuchForBatch = "The call was answered, but the answers to this array are too large together. It has probably taken effect: check before " +
		"asking again, on its own."
	batchUnsupported = "arrays of messages are served to clients of 2025-03-26 only"
)

// serveBatch answers an array of messages, which 2025-03-26 alone has. Its requests run side by side, and the answer
// has their responses in the order that they were asked in. Notifications of its calls come before, each on its own.
func (f *Front) serveBatch(p *post, body []byte) {
	client, ok := f.legacyClient(p.in, p.r.Header, nil)
	if !ok {
		return
	}
	if client.revision != mcp.Revision20250326 {
		refuse(p.in, http.StatusBadRequest, nil, fault(wire.CodeInvalidRequest, batchUnsupported))
		return
	}
	texts, err := wire.Batch(body, maxBatch)
	if err != nil {
		id, e := unreadable(err)
		refuse(p.in, http.StatusBadRequest, id, e)
		return
	}
	messages := make([]*wire.Message, len(texts))
	responses := make([][]byte, len(texts))
	for i, text := range texts {
		m, err := wire.ParseRequest(text)
		if err != nil {
			id, e := unreadable(err)
			responses[i] = wire.AppendError(nil, id, e)
			continue
		}
		if m.Method == mcp.MethodInitialize {
			refuse(p.in, http.StatusBadRequest, nil, fault(wire.CodeInvalidRequest, "initialize must not stand in an array"))
			return
		}
		messages[i] = m
	}
	p.wait()
	f.answerBatch(p, client, messages, responses)
	if message := joinBatch(responses); message != nil {
		p.answer(http.StatusOK, message)
		p.logUndelivered("")
		return
	}
	p.nothing()
}

// answerBatch fills in the responses of the messages that have one.
func (f *Front) answerBatch(p *post, client legacyClient, messages []*wire.Message, responses [][]byte) {
	var running sync.WaitGroup
	defer running.Wait()
	var total atomic.Int64
	for i, m := range messages {
		switch {
		case m == nil:
		case m.Kind != wire.Request:
			f.notice(client, m)
		default:
			// A cancel further on in the array may mean it, so that it begins here.
			ctx, call := f.flights.begin(context.WithoutCancel(p.r.Context()), client.flightKey(m.ID))
			running.Go(func() {
				defer f.flights.end(call)
				responses[i] = f.answerInBatch(ctx, p, client, m)
				// One array is one answer, and no larger than any other may be.
				if total.Add(int64(len(responses[i]))) > maxBatchAnswer {
					responses[i] = wire.AppendError(nil, m.ID, fault(wire.CodeInternal, tooMuchForBatch))
				}
			})
		}
	}
}

// answerInBatch is answerLegacy for a message whose neighbours a panic must not take along.
func (f *Front) answerInBatch(ctx context.Context, p *post, client legacyClient, m *wire.Message) (response []byte) {
	defer func() {
		if v := recover(); v != nil {
			f.logPanic(p.in, v)
			response = wire.AppendError(nil, m.ID, internalFault())
		}
	}()
	if meta, _ := m.Params.Object("_meta"); meta.Has(mcp.MetaVersion) {
		return wire.AppendError(nil, m.ID, fault(wire.CodeInvalidRequest, "a request of a revision without arrays stands in an array"))
	}
	// What it holds cannot wait for its neighbours, which may wait for the same.
	var hold upstream.Hold
	defer hold.Release()
	return f.answerLegacy(ctx, p, client, m, &hold)
}

// joinBatch is the array of the responses that there are; nil where there is none.
func joinBatch(responses [][]byte) []byte {
	size := 2
	for _, r := range responses {
		size += len(r) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for _, r := range responses {
		if r == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, r...)
	}
	if len(out) == 1 {
		return nil
	}
	return append(out, ']')
}
