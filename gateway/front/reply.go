package front

import (
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"mcp-gateway/internal/sse"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// keepaliveComment is an event stream's way to say nothing.
const keepaliveComment = ":\n\n"

// selfMeasured is how long an answer may be for net/http to find its length by itself.
const selfMeasured = 2048

// A post is one POST and the writer of its one answer. The answer is JSON, or an event stream where the client takes
// it and has to wait: while a status is still open nothing has been written, and afterwards nothing but comments and
// the answer.
type post struct {
	f        *Front
	in       *inbound
	r        *http.Request
	accepts  accepts
	received time.Time
	hold     upstream.Hold

	mu        sync.Mutex // guards all below and every write
	timer     *time.Timer
	streaming bool
	done      bool
	lost      error // why the client could not be written to
}

// wait begins the time after which a silent client gets a stream. settle must follow.
func (p *post) wait() {
	if p.f.cfg.StreamAfter <= 0 || !p.accepts.events {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.f.cfg.StreamAfter, p.tick)
}

// tick opens the stream, or keeps it open.
func (p *post) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || p.lost != nil {
		return
	}
	if !p.streaming {
		p.open()
	}
	p.event([]byte(keepaliveComment))
	if p.lost == nil && p.f.cfg.Keepalive > 0 {
		p.timer.Reset(p.f.cfg.Keepalive)
	}
}

// open and event must be called with mu held.
func (p *post) open() {
	p.streaming = true
	h := p.in.Header()
	h["Content-Type"] = eventsType
	h["Cache-Control"] = noCache
	h["X-Accel-Buffering"] = noBuffering
	p.in.WriteHeader(http.StatusOK)
}

// event writes a whole event or comment, and sees that it goes out.
func (p *post) event(text []byte) {
	if p.lost == nil {
		p.lost = p.in.send(text)
	}
	if p.lost == nil {
		p.lost = http.NewResponseController(p.in).Flush()
	}
}

// settle ends the waiting: from here on the timer writes nothing. It may be called again.
func (p *post) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// answer writes the one message that ends the request. On a stream the status is 200 whatever it should have been.
func (p *post) answer(status int, message []byte) {
	p.settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.streaming && !p.accepts.json && status == http.StatusOK {
		p.open()
	}
	if p.streaming {
		// One data line: there are readers that take each line for an event.
		message = wire.OneLine(message)
		p.event(sse.AppendEvent(make([]byte, 0, len(message)+len("data: \n\n")), message))
		return
	}
	h := p.in.Header()
	h["Content-Type"] = jsonType
	if len(message) > selfMeasured {
		h["Content-Length"] = []string{strconv.Itoa(len(message))}
	}
	p.in.WriteHeader(status)
	p.lost = p.in.send(message)
}

// nothing ends a request that has no answer: 202 without a body, or the end of the stream.
func (p *post) nothing() {
	p.settle()
	if !p.streaming {
		p.in.WriteHeader(http.StatusAccepted)
	}
}

// abandon ends a request whose client has gone: nothing more is sent.
func (p *post) abandon() {
	p.settle()
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
