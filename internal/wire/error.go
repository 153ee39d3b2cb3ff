package wire

import (
	"fmt"
	"strconv"
)

// JSON-RPC 2.0 error codes (section 5.1).
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// An Error is the error member of a JSON-RPC response. One that came from a server keeps its text, unknown
// members included.
type Error struct {
	Code    int64
	Message string
	Data    []byte // JSON text; nil is absent
	Raw     Object // the error as it arrived; zero for the gateway's own
	// BadMessage says that Raw has no message, an empty one, or one that is not a string.
	BadMessage bool
}

// Error gives the code and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message)
}

// AppendJSON appends the error object to dst: the text as it arrived, or one made of the fields.
func (e *Error) AppendJSON(dst []byte) []byte {
	if !e.Raw.IsZero() {
		return append(dst, e.Raw.Raw()...)
	}
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, e.Code, 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	if e.Data != nil {
		dst = append(append(dst, `,"data":`...), e.Data...)
	}
	return append(dst, '}')
}

// A SyntaxError says why a text is not a JSON-RPC message. It quotes nothing of the text, which may hold
// a secret.
type SyntaxError struct {
	Code   int64 // CodeParse, CodeInvalidRequest or CodeInvalidParams
	Reason string
	Offset int64  // in bytes; -1 where there is no one place
	ID     []byte // the message's id where it could be read, else nil
}

// Error gives the reason and the offset.
func (e *SyntaxError) Error() string {
	if e.Offset < 0 {
		return e.Reason
	}
	return fmt.Sprintf("%s (at byte %d)", e.Reason, e.Offset)
}
