// Package front is what MCP clients see of the gateway: one HTTP path that speaks to a client of any revision.
//
// A POST is served by the modern face or by the legacy one, as the request itself says (post.go). Both turn it into
// a modern [Request] and hand it to the one [Dispatch]; a reply is written in the words of the client's revision
// (modern.go, legacy.go, translate.go) and as JSON or as an event stream (reply.go, stream.go). Who listens for changes
// has a stream of its own (listen.go). Start with [New], which lists what every request passes on its way in, and read
// post.go next.
package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcp-gateway/internal/seal"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

const (
	// maxBody bounds a request's body, in bytes.
	maxBody = 4 << 20
	// clientPatience is how long a client may take nothing of what is written to it, and how long it may take to send a body.
	clientPatience = 30 * time.Second
)

var (
	// ErrCanceled is the cause with which a call's context ends when its legacy client has cancelled it. A modern client
	// cancels by closing its stream, which ends the context as net/http does.
	ErrCanceled = fmt.Errorf("the client has cancelled the request: %w", context.Canceled)

	// ErrShutdown is the cause with which a call's context ends when the gateway stops before the call has finished.
	ErrShutdown = errors.New("the gateway is shutting down")
)

// Dispatch answers one request. Its reply is never nil. context.Cause(ctx) says why a call was ended: ErrCanceled,
// whatever Close was given, or the client's disconnect.
type Dispatch func(ctx context.Context, req *Request) *Reply

// A Request is one tools/list or tools/call, as a modern client would have made it.
type Request struct {
	Caller   string // the name of who asks, "" where nobody has to say
	ID       string // for the log; never sent to anybody
	Method   string
	Params   wire.Object     // as the client sent it; zero where it sent none
	Meta     wire.Object     // its _meta, where it has been read; zero where it has to be
	Name     string          // of tools/call: the decoded params.name
	Client   upstream.Client // what a server may rely on; zero for a client that cannot be asked anything
	Header   http.Header     // Mcp-Param-*, canonical; nil where the client's revision knows none, so that nothing is checked
	Sent     http.Header     // all headers of the client's request, of which only those end up elsewhere that are configured to
	Received time.Time       // when the body had been read
	// Notify puts a notification of the call on the client's stream, in order, until the reply: progress with the client's
	// own token, and log messages of the level that it asked for. Others go nowhere. It never waits for the client: where that
	// reads too slowly, the oldest are dropped, progress first. Nil where the client has asked for none or takes no stream.
	Notify func(upstream.Notification)
	Hold   *upstream.Hold // released once the reply is written
}

// A Reply is the answer to a Request: a result or an error.
type Reply struct {
	Result   wire.Object
	Type     string // resultType; "" reads as complete
	Revision string // of what spoke the result, mcp.Modern for the gateway itself
	Error    *wire.Error
	// After is called once, when the answer has been written or nobody is left to take it, and logs the request: nothing else
	// does then. Nil is nothing to do.
	After func(Answer)

	panicked bool
}

// An Answer is what a client was sent. Its zero value is nothing.
type Answer struct {
	Status int   // of HTTP
	Bytes  int64 // of the body
}

// A Caller is who asks, as Config.Authenticate tells.
type Caller struct {
	Name  string   // "" where nobody has to say
	Grant [32]byte // by what they were let in, which may end before the name does; it says nothing to the front
}

// Config is what a Front is made of. Only Dispatch, Ring, ServerInfo and Log are needed.
type Config struct {
	Dispatch Dispatch
	Ring     *seal.Ring // seals the session tokens of legacy clients

	// Authenticate tells who asks. An error is answered with 401; one with a method Challenge() string says what
	// WWW-Authenticate holds, and its text is for the client. Nil asks nobody.
	Authenticate func(*http.Request) (Caller, error)

	Path     string   // "" is /mcp
	Loopback bool     // the listener is on loopback: only loopback Hosts pass, and those of Hosts
	Hosts    []string // name or name:port; elsewhere than on loopback, none lets every Host pass
	Origins  []string // scheme://host[:port]; a request with any other Origin is refused

	// Changes counts the notices that the tools which caller sees have changed, and gives a channel that is closed at the
	// next. Nil announces no notices, and nobody can listen.
	Changes func(caller string) (uint64, <-chan struct{})

	Keepalive   time.Duration // between comments on an open stream; 0 is never
	StreamAfter time.Duration // of silence before a stream is opened; 0 is never

	// Admits reports whether what Authenticate once told still holds. Nil is always.
	Admits func(Caller) bool

	ServerInfo []byte // JSON text of the gateway's Implementation
	Log        *slog.Logger

	// Before is the front in whose place this one serves, at the same server or at another: they share what clients have ended, the
	// calls that run, and Cut and Close. Nil is none.
	Before *Front
}

// A Front serves MCP to clients of every revision. It is safe for concurrent use.
type Front struct {
	cfg      Config
	handler  http.Handler
	ids      *requestIDs
	flights  *flights
	base     context.Context // of every request; ends with Close
	end      context.CancelCauseFunc
	sessions *sessions
	ending   chan struct{} // closed when the listening ends
	// listening counts the streams of who listens.
	listening *atomic.Int64
	endOnce   sync.Once
	// recheck is closed and replaced when listening has ended, or Config.Admits has other answers. One channel for both, since each that an
	// idle listener waits for costs memory.
	recheck  atomic.Pointer[chan struct{}]
	discover []byte // the result of server/discover
	fixed    []byte // the members of an initialize result that do not depend on the request
}

// New builds a Front. It starts nothing.
func New(cfg Config) *Front {
	if cfg.Path == "" {
		cfg.Path = "/mcp"
	}
	f := &Front{cfg: cfg, ids: newRequestIDs(), ending: make(chan struct{})}
	if before := cfg.Before; before != nil {
		f.sessions, f.flights, f.base, f.end, f.listening = before.sessions, before.flights, before.base, before.end, before.listening
	} else {
		f.sessions, f.flights = newSessions(maxEnded), newFlights()
		f.base, f.end = context.WithCancelCause(context.Background())
		f.listening = new(atomic.Int64)
	}
	f.cfg.Before = nil // which must not live as long as this one
	f.recheck.Store(new(make(chan struct{})))
	f.discover = discoverResult(cfg.ServerInfo, f.tools())
	f.fixed = initializeMembers(cfg.ServerInfo, f.tools())

	f.handler = http.HandlerFunc(f.route)
	for _, with := range slices.Backward([]func(http.Handler) http.Handler{
		f.recoverPanics,
		f.requestID,
		f.accessLog,
		f.serveListeners,
		checkOrigin(cfg.Loopback, cfg.Hosts, cfg.Origins),
		limitBody,
		f.authenticate,
	}) {
		f.handler = with(f.handler)
	}
	return f
}

// ServeHTTP answers one HTTP request. After Close it answers 503.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.flights.enter() {
		RefuseShutdown(w)
		return
	}
	defer f.flights.leave()
	f.handler.ServeHTTP(w, r)
}

// RefuseShutdown answers a request that comes too late, with 503: nothing was done, and it can be tried again elsewhere or
// later.
func RefuseShutdown(w http.ResponseWriter) {
	w.Header()["Retry-After"] = []string{"1"}
	w.Header()["Connection"] = []string{"close"}
	refuse(w, http.StatusServiceUnavailable, nil, fault(wire.CodeInternal, "The gateway is shutting down: nothing was done. Try again in a moment."))
}

// EndStreams ends all listening, for good: a modern client's with its result, a legacy session's by the stream's end. Calls are
// served as before. Who begins to listen afterwards is acknowledged and ended at once. It returns without waiting.
func (f *Front) EndStreams() {
	f.endOnce.Do(func() {
		close(f.ending)
		f.wakeListeners()
	})
}

// Listening is how many streams clients hold open to listen, here and at the fronts before this one.
func (f *Front) Listening() int { return int(f.listening.Load()) }

// Readmit ends the listening of callers that Config.Admits no longer admits, by the grant with which it began.
func (f *Front) Readmit() { f.wakeListeners() }

func (f *Front) wakeListeners() { close(*f.recheck.Swap(new(make(chan struct{})))) }

// Cut ends the calls in flight with cause, and all listening, and refuses new requests. It returns at once, so that their
// answers can still go out.
func (f *Front) Cut(cause error) {
	f.end(cause)
	f.flights.cut(cause)
}

// Close is Cut, and returns when no request is served any more. A request whose client takes or sends nothing lasts as long
// as clients may, unless its connection is closed. It is idempotent; a second call waits as well.
func (f *Front) Close(cause error) {
	f.Cut(cause)
	<-f.flights.idle
}

// BaseContext is for the http.Server that serves the Front: without it, Close can end neither the calls of modern clients nor any
// listening.
func (f *Front) BaseContext(net.Listener) context.Context { return f.base }

// tools is the capability that clients of every revision are told of.
func (f *Front) tools() string {
	if f.cfg.Changes == nil {
		return `"tools":{}`
	}
	return `"tools":{"listChanged":true}`
}

// route serves the one path.
func (f *Front) route(w http.ResponseWriter, r *http.Request) {
	path := r.URL.RawPath // where it is not written as it would be by default
	if path == "" {
		path = r.URL.Path
	}
	switch {
	case path != f.cfg.Path:
		f.notFound(w)
	case r.Method == http.MethodPost:
		f.servePost(w, r)
	case r.Method == http.MethodGet && f.cfg.Changes != nil:
		f.serveGet(w, r)
	case r.Method == http.MethodDelete:
		f.serveDelete(w, r)
	default:
		f.methodNotAllowed(w, r)
	}
}

func (f *Front) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	allow := "POST, GET, DELETE"
	if f.cfg.Changes == nil {
		allow = "POST, DELETE"
	}
	if headerIsModern(r.Header) {
		allow = "POST"
	}
	w.Header()["Allow"] = []string{allow}
	refuse(w, http.StatusMethodNotAllowed, nil, fault(wire.CodeInvalidRequest, "only "+allow+" is served here"))
}

func (f *Front) notFound(w http.ResponseWriter) {
	refuse(w, http.StatusNotFound, nil, fault(wire.CodeInvalidRequest, "nothing is served at this path; MCP is served at "+f.cfg.Path))
}
