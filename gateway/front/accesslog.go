package front

import (
	"log/slog"
	"net/http"
	"time"
)

// accessLog records each request once it has been answered, unless its reply does: nothing of its query, its headers or its
// body but a served method's name.
func (f *Front) accessLog(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.cfg.Log.Enabled(r.Context(), slog.LevelDebug) {
			next.ServeHTTP(w, r)
			return
		}
		began := time.Now()
		// Also for a request that ends in a panic.
		defer func() {
			in := inboundOf(w)
			if in.logged {
				return
			}
			attrs := make([]slog.Attr, 0, 7)
			attrs = append(attrs,
				slog.String("request", in.id), slog.String("http", r.Method), slog.Int("status", in.status),
				slog.Int64("bytes", in.bytes), slog.Duration("duration", time.Since(began)))
			if in.rpc != "" {
				attrs = append(attrs, slog.String("method", in.rpc))
			}
			if in.caller != "" {
				attrs = append(attrs, slog.String("caller", in.caller))
			}
			f.cfg.Log.LogAttrs(r.Context(), slog.LevelDebug, "answered", attrs...)
		}()
		next.ServeHTTP(w, r)
	})
}
