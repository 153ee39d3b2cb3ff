package front

import (
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"mcp-gateway/upstream"
)

// selfMeasured is how long an answer may be for net/http to find its length by itself.
const selfMeasured = 2048

// A post is one POST and the writer of its one answer. The answer is JSON, or an event stream where the client takes
// it and has to wait or be notified: while a status is still open nothing has been written, and afterwards nothing but
// comments, notifications and the answer.
type post struct {
	f        *Front
	in       *inbound
	r        *http.Request
	accepts  accepts
	received time.Time
	hold     upstream.Hold

	mu        sync.Mutex // guards all below
	timer     *time.Timer
	queue     []queued      // what waits to be written
	size      int           // of the queue, in bytes
	writing   chan struct{} // closed when the queue has been written; nil while nobody writes it
	streaming bool
	done      bool
	dropped   int   // notifications that the client was too slow for
	lost      error // why the client could not be written to
	after     func(Answer)
	afters    []func(Answer) // of all but the first reply of an array
}

// afterwards keeps what a reply wants done once the answer is out.
func (p *post) afterwards(do func(Answer)) {
	if do == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after == nil {
		p.after = do
	} else {
		p.afters = append(p.afters, do)
	}
}

// finish does what the replies want done, now that the answer has been written or nobody is left to take it.
func (p *post) finish() {
	if p.after == nil {
		return
	}
	p.in.logged = true
	sent := Answer{p.in.status, p.in.bytes}
	p.after(sent)
	for _, do := range p.afters {
		do(sent)
	}
}

// answer writes the one message that ends the request, which may be in pieces. On a stream the status is 200 whatever it should
// have been.
func (p *post) answer(status int, message ...[]byte) {
	p.settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.streaming && !p.accepts.json && status == http.StatusOK {
		p.streaming = true
		p.in.openStream()
	}
	if p.streaming {
		p.lost = p.in.stream(event(slices.Concat(message...)))
		return
	}
	size := 0
	for _, piece := range message {
		size += len(piece)
	}
	h := p.in.Header()
	h["Content-Type"] = jsonType
	if size > selfMeasured {
		h["Content-Length"] = []string{strconv.Itoa(size)}
	}
	p.in.WriteHeader(status)
	for _, piece := range message {
		if p.lost = p.in.send(piece); p.lost != nil {
			return
		}
	}
}

// nothing ends a request that has no answer: 202 without a body, or the end of the stream.
func (p *post) nothing() {
	p.discard()
	if !p.streaming {
		p.in.WriteHeader(http.StatusAccepted)
		return
	}
	p.in.endStream()
}

// abandon ends a request whose client has gone: nothing more is sent.
func (p *post) abandon() {
	p.discard()
	panic(http.ErrAbortHandler)
}

// logUndelivered records an answer that found nobody to take it.
func (p *post) logUndelivered(method string) {
	err := p.lost
	if err == nil {
		err = p.r.Context().Err()
	}
	if err != nil {
		p.f.cfg.Log.Info("the client had gone before its answer; the call ran to its end",
			slog.String("request", p.in.id), slog.String("method", method), slog.Any("error", err))
	}
}
