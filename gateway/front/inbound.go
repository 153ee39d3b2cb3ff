package front

import (
	"net/http"
	"time"
)

// An inbound is one HTTP request on its way in, and the writer of its answer.
type inbound struct {
	http.ResponseWriter
	id       string // for the log
	caller   string
	grant    [32]byte // of the caller, for as long as they listen
	rpc      string   // the MCP method, once it is known to be a served one
	status   int      // of the answer; 0 until it has begun
	bytes    int64
	logged   bool      // what became of it is in the log already
	listener *listener // what is served once the handler has returned; nil is nothing
	socket   deadliner // nil where the writer underneath has no deadlines
	until    time.Time // of the writing
}

// A deadliner bounds reads and writes, as net/http's own writer does.
type deadliner interface {
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// begin makes the inbound that the middlewares and the faces share.
func begin(w http.ResponseWriter) *inbound {
	in := &inbound{ResponseWriter: w}
	for {
		if socket, ok := w.(deadliner); ok {
			in.socket = socket
			break
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = outer.Unwrap()
	}
	return in
}

// inboundOf is the inbound that recoverPanics, the outermost middleware, has put in the writer's place.
func inboundOf(w http.ResponseWriter) *inbound { return w.(*inbound) }

// WriteHeader begins the answer.
func (in *inbound) WriteHeader(status int) {
	if in.status == 0 && status >= http.StatusOK {
		in.status = status
	}
	// What follows may go out only when the handler has returned: the client's patience begins here.
	in.writeWithin(clientPatience)
	in.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the answer's body.
func (in *inbound) Write(b []byte) (int, error) {
	if in.status == 0 {
		in.status = http.StatusOK
	}
	n, err := in.ResponseWriter.Write(b)
	in.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach what it needs.
func (in *inbound) Unwrap() http.ResponseWriter { return in.ResponseWriter }

// readWithin bounds the reading of the body.
func (in *inbound) readWithin(d time.Duration) {
	if in.socket != nil {
		_ = in.socket.SetReadDeadline(time.Now().Add(d)) // a connection that is gone says so at the next read
	}
}

// writeWithin bounds the writing from here on, to within a second.
func (in *inbound) writeWithin(d time.Duration) {
	until := time.Now().Add(d)
	if in.socket == nil || until.Sub(in.until) < time.Second {
		return
	}
	in.until = until
	_ = in.socket.SetWriteDeadline(until) // a connection that is gone says so at the next write
}

// writeChunk is how much a client has to take within its patience.
const writeChunk = 64 << 10

// send writes body, and fails once the client has taken nothing for as long as clients may.
func (in *inbound) send(body []byte) error {
	for {
		chunk := body[:min(len(body), writeChunk)]
		in.writeWithin(clientPatience)
		if _, err := in.Write(chunk); err != nil {
			return err
		}
		if body = body[len(chunk):]; len(body) == 0 {
			return nil
		}
	}
}

// openStream begins an answer that is an event stream.
func (in *inbound) openStream() {
	h := in.Header()
	h["Content-Type"] = eventsType
	h["Cache-Control"] = noCache
	h["X-Accel-Buffering"] = noBuffering
	in.WriteHeader(http.StatusOK)
}

// endStream must be called before a handler returns that has written nothing for a while: the stream's last bytes go out after
// that, with the patience that there is.
func (in *inbound) endStream() { in.writeWithin(clientPatience) }

// keepaliveComment is an event stream's way to say nothing.
var keepaliveComment = []byte(":\n\n")

// stream writes whole events or comments as send does, and sees that they go out.
func (in *inbound) stream(text []byte) error {
	if err := in.send(text); err != nil {
		return err
	}
	return http.NewResponseController(in).Flush()
}
