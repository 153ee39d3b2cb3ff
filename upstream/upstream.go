// Package upstream is the one interface between the gateway and an MCP server behind it.
//
// An [Upstream] is to MCP what http.RoundTripper is to HTTP: everything above it (names, policy, deadlines, redaction)
// speaks as a modern server does, one request with all its metadata at a time; revision, session, transport and child
// process are its own trouble. The engines in legacy and modern implement it, and upstreamtest holds them to it.
//
// A call that fails gives an [Error], whose [Outcome] says whether the call may have run. It follows from what
// crossed the transport, never from an error's class or text.
package upstream

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"mcp-gateway/internal/wire"
)

// An Upstream is one MCP server that behaves as a modern one on every transport. It is safe for concurrent use.
type Upstream interface {
	// Call sends req and waits for its answer. context.Cause(ctx) says why it was ended. It sends at most twice, and the
	// second time only on proof that the first did not run. The error is the server's own (*wire.Error), passed on whole,
	// or an *Error.
	Call(ctx context.Context, req *Request) (*Response, error)

	// Status is the state now, and a channel that is closed at the next change.
	Status() (Status, <-chan struct{})

	// Close ends the server's session and process. It returns when nothing that the engine started still runs, or
	// reports all that it could not end; a later Close tries just that again.
	Close() error
}

// A Request is one request to a server, as a modern client would make it.
type Request struct {
	Method string
	Params wire.Object        // with the server's own names; _meta without what belongs to the client's hop
	Target string             // the name or uri, decoded, in the server's own words; empty for methods without one
	Client Client             // the zero value is the gateway itself
	Header http.Header        // Mcp-Param-* and the client's headers that are forwarded; ignored by transports without headers
	Notify func(Notification) // called in order, never after Call has returned; nil drops them
	Hold   *Hold              // of the caller, until the reply is written; nil is until Call returns
	Resend *Budget            // shared by all that may send the call again; nil allows none
}

// A Client is what a server may know of the asking client.
type Client struct {
	Capabilities []byte // JSON text of ClientCapabilities; nil is none
	LogLevel     string // the least severe log message that the client wants of a call; "" wants none
}

// A Notification is one message of a server that belongs to a call in flight.
type Notification struct {
	Method string
	Params wire.Object
}

// A Response is a server's result: its bytes as they arrived, and what spoke them.
type Response struct {
	Result   wire.Object
	Type     string // resultType; a legacy server's missing one reads as complete
	Revision string // of the server
}

// A Budget is the one time that a call may be sent again.
type Budget struct{ taken atomic.Bool }

// Take reports whether the call may be sent again, true once.
func (b *Budget) Take() bool { return b != nil && b.taken.CompareAndSwap(false, true) }

// A State is where an upstream stands.
type State string

// The states of an upstream.
const (
	Connecting State = "connecting" // an attempt runs
	Live       State = "live"
	Backoff    State = "backoff" // waiting for the next attempt
	Verdict    State = "verdict" // given up for good: the server speaks another revision
	Held       State = "held"    // its process could not be ended; no other is started beside it
	Closing    State = "closing" // from Close until nothing runs
	Closed     State = "closed"
)

// A Status describes an upstream at one moment.
type Status struct {
	State    State
	Since    time.Time
	Until    time.Time   // of the next attempt, in Backoff
	Session  uint64      // counts the sessions; a listing belongs to one of them
	Revision string      // what the live session speaks, "" without one
	Discover wire.Object // the server's capabilities, as server/discover tells them; zero without a session
	Changes  Changes     // of all sessions
	Failures uint64      // attempts to connect that have failed
	Looping  bool        // its sessions end as soon as they have begun
	Err      error       // why the last attempt or session ended; nil after a success
}

// Changes counts a server's notices that something has changed: the first of a kind at once, and those of the second after it
// as one, at its end.
type Changes struct {
	Tools, Prompts, Resources uint64 // notifications/…/list_changed
	Updated                   uint64 // notifications/resources/updated
}
