// Package exchange makes one HTTP POST of one JSON-RPC message and reads its reply, a JSON body or an event stream. What
// the revisions before 2026-07-28 do beside that (Legacy) is in stream.go: streams that are resumed, and the server's own.
//
// Each exchange stands alone: what a server answers to one call, however broken, reaches no other. What became of an
// exchange that failed is told by its leg record (leg.go): whether a byte of the request was handed to the connection,
// not what kind of error came back. A server's own JSON-RPC error is no failure; it is returned as the reply.
//
// Start with [Client.Do].
package exchange
