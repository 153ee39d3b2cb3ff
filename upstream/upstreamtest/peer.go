// Package upstreamtest is the contract that every engine keeps on every transport, as tests.
//
// An engine's own tests call [Run] with a [Transport] for each transport that it has. A transport's server is scripted by a
// [Handler], which sees requests and sends messages but not how they travel, so that one script is the peer of all engines.
// A server does by itself what comes before the first request, runs a handler for each request at the same time as all
// others, sends what the handler sends as it is, and closes [Request.Canceled] when the engine cancels that request, by the
// id that it was sent with, or closes what carries it. [HTTP] is the server of Streamable HTTP, [Stdio] that of stdio.
package upstreamtest

import (
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// A Transport makes engines that stand in front of scripted servers.
type Transport struct {
	// Revision is what the servers speak.
	Revision string
	// Start runs a server that h answers until the test ends, and an engine on it that has begun to connect. The server
	// itself does what comes before the first request: server/discover, or the handshake. The pauses of the engine's
	// reconnect are short.
	Start func(t *testing.T, h Handler) upstream.Upstream
	// Alone says that what a server sends for a request travels apart from all else, as in the response to a POST: a broken
	// message there is that request's, and so is a log message.
	Alone bool
	// Mute starts an engine in front of a server that takes its connection, which closes taken, and never says a word.
	Mute func(t *testing.T) (u upstream.Upstream, taken <-chan struct{})
	// Costly says that a connection takes long to begin, as a process does: there are fewer of them.
	Costly bool
	// Lacks is what the transport cannot express. The cases that need it are left out.
	Lacks Feature
}

// A Feature is something that not every transport can express.
type Feature uint

// The features.
const (
	// Parts is a message that arrives in parts. Without it in Lacks, the Sender of the transport is a [Parter].
	Parts Feature = 1 << iota
	// Halves is a connection that the server ends in its own direction only. Without it in Lacks, the Sender is a [HalfCloser].
	Halves
	// Mutes is a server that says nothing. Without it in Lacks, the Transport has a Mute.
	Mutes
)

// A Handler answers one request. It runs in a goroutine of its own, and the request is over when it returns.
type Handler func(r *Request)

// A Request is what a server got.
type Request struct {
	Message  *wire.Message
	Revision string          // that the server speaks
	Canceled <-chan struct{} // closed once the engine has given the request up or its connection has ended
	Sender
}

// A Sender carries a server's messages. Its methods are for the handler's goroutine.
type Sender interface {
	// Send sends one message as it is, broken ones too.
	Send(message string)
	// Die ends the server, or its connection, as a crash does.
	Die()
}

// A Parter is a Sender that can send a message in parts.
type Parter interface {
	// Part sends the next part of one message. The Send after it sends what is left and ends it; Die cuts it off.
	Part(text string)
}

// A HalfCloser is a Sender that can end its direction of the connection, and go on to take what comes in the other.
type HalfCloser interface {
	HalfClose()
}

// A Forgetter is a Sender whose server has sessions, and can end the request's without having read the request.
type Forgetter interface {
	Forget()
}

// A Refuser is a Sender that can answer with a status of HTTP's in place of a message. It reports false where a response has
// begun.
type Refuser interface {
	Refuse(status int) bool
}

// An Announcer is a Sender whose server tells of changes apart from any request, to those that listen.
type Announcer interface {
	Announce(method string)
}

// Announce tells of a change, by the means of the transport.
func (r *Request) Announce(method string) {
	if a, ok := r.Sender.(Announcer); ok {
		a.Announce(method)
		return
	}
	r.Notification(method, "")
}

// lose ends the session, without the request if that is possible, else with its connection.
func (r *Request) lose() {
	if f, ok := r.Sender.(Forgetter); ok {
		f.Forget()
		return
	}
	r.Die()
}

// Part sends the next part of a message, as a Parter does.
func (r *Request) Part(text string) { r.Sender.(Parter).Part(text) }

// Name is params.name.
func (r *Request) Name() string {
	name, _ := r.Message.Params.String("name")
	return name
}

// Wait waits until ready is closed, or the request canceled, so that a test that failed ends.
func (r *Request) Wait(ready <-chan struct{}) {
	select {
	case <-ready:
	case <-r.Canceled:
	}
}

// Result answers with a result that has these members.
func (r *Request) Result(members string) {
	r.Send(r.resultText(members))
}

func (r *Request) resultText(members string) string {
	return `{"jsonrpc":"2.0","id":` + string(r.Message.ID) + `,"result":` + expected(r.Revision, members) + `}`
}

// Notification sends one, with params of these members.
func (r *Request) Notification(method, members string) {
	r.Send(`{"jsonrpc":"2.0","method":"` + method + `","params":{` + members + `}}`)
}

// progressToken is the text of the token in params._meta, empty without one.
func (r *Request) progressToken() string {
	meta, _ := r.Message.Params.Object("_meta")
	token, _ := meta.Value(mcp.MetaProgressToken)
	return string(token)
}

// Error answers with an error of the given text.
func (r *Request) Error(text string) {
	r.Send(`{"jsonrpc":"2.0","id":` + string(r.Message.ID) + `,"error":` + text + `}`)
}

// expected is a result with these members, and with the resultType that the revision asks for.
func expected(revision, members string) string {
	if revision != mcp.Modern {
		return "{" + members + "}"
	}
	if members != "" {
		members += ","
	}
	return "{" + members + `"resultType":"complete"}`
}
