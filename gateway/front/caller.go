package front

import (
	"errors"
	"net/http"

	"mcp-gateway/internal/wire"
)

// authenticate finds out who asks. Every request says so anew: a session is no proof.
func (f *Front) authenticate(next http.Handler) http.Handler {
	if f.cfg.Authenticate == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := f.cfg.Authenticate(r)
		if err == nil {
			in := inboundOf(w)
			in.caller, in.grant = caller.Name, caller.Grant
			next.ServeHTTP(w, r)
			return
		}
		challenge, text := "Bearer", "the request could not be authenticated"
		var known interface {
			error
			Challenge() string
		}
		if errors.As(err, &known) {
			challenge, text = known.Challenge(), known.Error()
		}
		w.Header()["Www-Authenticate"] = []string{challenge}
		refuse(w, http.StatusUnauthorized, nil, fault(wire.CodeInvalidRequest, text))
	})
}
