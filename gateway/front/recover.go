package front

import (
	"log/slog"
	"net/http"
	"runtime/debug"

	"mcp-gateway/internal/wire"
)

// recoverPanics ends the one request whose handling has panicked: with 500, or where an answer has begun, by cutting
// the connection, since a client must not take the piece for the whole.
func (f *Front) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := begin(w)
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			f.logPanic(in, v)
			if in.status != 0 {
				panic(http.ErrAbortHandler)
			}
			refuse(in, http.StatusInternalServerError, nil, internalFault())
		}()
		next.ServeHTTP(in, r)
	})
}

func (f *Front) logPanic(in *inbound, v any) {
	f.cfg.Log.Error("handling a request panicked; the other requests are not affected",
		slog.String("request", in.id), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
}

func internalFault() *wire.Error {
	return fault(wire.CodeInternal, "The gateway failed inside. What was asked for may have taken effect or not: check before asking again.")
}
