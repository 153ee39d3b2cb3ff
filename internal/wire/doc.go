// Package wire reads and writes JSON-RPC 2.0 messages without changing what it does not have to read.
//
// A message is decoded in one pass that checks the whole text and notes where the members lie that
// the gateway routes, decides or redacts on ([Message], [Object]). Everything else stays bytes: unknown
// members, the precision of numbers, the order of keys, null against absent. What is sent on is the same
// text with single members replaced or taken off ([Object.AppendEdited]).
//
// Start with [ParseRequest], for what a client sent, and [ParseReply], for what a server sent. Names are
// matched exactly, never without regard to case, since a reader that disagrees with the next one about
// what a message says can be used to slip past a filter.
package wire
