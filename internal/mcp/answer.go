package mcp

import (
	"errors"
	"strconv"

	"mcp-gateway/internal/wire"
)

// maxID bounds the id of a server's request, which its answer repeats.
const maxID = 1 << 10

// ErrUnanswerable is a request whose id is no string or number, or too long to repeat.
var ErrUnanswerable = errors.New("the server's request has an id that cannot be answered")

var emptyResult = []byte(`{}`)

// Answer is the response to a legacy server's request, which may ask for nothing but a sign of life: the gateway declares no
// capability.
func Answer(m *wire.Message) ([]byte, error) {
	if len(m.ID) > maxID || m.ID[0] != '"' && m.ID[0] != '-' && (m.ID[0] < '0' || m.ID[0] > '9') {
		return nil, ErrUnanswerable
	}
	if m.Method == MethodPing {
		return wire.AppendResult(nil, m.ID, emptyResult), nil
	}
	return wire.AppendError(nil, m.ID, refusal(m.Method)), nil
}

// refusal is the error that each revision names for a feature that the client has not declared.
func refusal(method string) *wire.Error {
	switch method {
	case MethodElicitationCreate:
		return &wire.Error{Code: wire.CodeInvalidParams, Message: "elicitation is not supported by this client"}
	case MethodSamplingCreateMessage:
		return &wire.Error{Code: -1, Message: "sampling is not supported by this client"}
	}
	return &wire.Error{Code: wire.CodeMethodNotFound, Message: "the method is not supported by this client"}
}

// Cancel is the notification that the gateway's request with the id is given up (every revision, cancellation).
func Cancel(id int64, reason string) []byte {
	params := strconv.AppendInt([]byte(`{"requestId":`), id, 10)
	params = wire.AppendString(append(params, `,"reason":`...), reason)
	return wire.AppendRequest(nil, nil, NotificationCancelled, append(params, '}'))
}
