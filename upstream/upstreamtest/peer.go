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
	// Lacks is what the transport cannot express. The cases that need it are left out.
	Lacks Feature
}

// A Feature is something that not every transport can express.
type Feature uint

// Parts is a message that arrives in parts. Without it in Lacks, the Sender of the transport is a [Parter].
const Parts Feature = 1 << iota

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
