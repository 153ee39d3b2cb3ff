package front

import (
	"net/http"
	"strconv"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// statusOf is the HTTP status of an error that answers a modern request (2026-07-28, Streamable HTTP). What the fixed
// codes leave open is 200: the request was understood and the answer is in the body.
func statusOf(e *wire.Error) int {
	switch e.Code {
	case wire.CodeMethodNotFound:
		return http.StatusNotFound
	case mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// statusOfRefusal is the HTTP status of an error found before the request was for anybody.
func statusOfRefusal(e *wire.Error) int {
	if status := statusOf(e); status != http.StatusOK {
		return status
	}
	return http.StatusBadRequest
}

func fault(code int64, message string) *wire.Error {
	return &wire.Error{Code: code, Message: message}
}

// The values are shared by all answers; net/http only reads them.
var (
	jsonType    = []string{"application/json"}
	eventsType  = []string{"text/event-stream"}
	noCache     = []string{"no-cache"}
	noBuffering = []string{"no"}
)

// refuse answers with an error and a status of its own. A nil id is left out, as where it could not be read.
func refuse(w http.ResponseWriter, status int, id []byte, e *wire.Error) {
	body := wire.AppendError(make([]byte, 0, 160+len(id)+len(e.Message)), id, e)
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	// A client that is gone needs no answer.
	if in, ok := w.(*inbound); ok {
		_ = in.send(body)
	} else {
		_, _ = w.Write(body)
	}
}
