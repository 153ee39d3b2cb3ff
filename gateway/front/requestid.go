package front

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"sync/atomic"
)

// requestIDs makes ids that tell requests apart in the log, also those of several replicas.
type requestIDs struct {
	prefix string
	last   atomic.Uint64
}

func newRequestIDs() *requestIDs {
	var raw [4]byte
	_, _ = rand.Read(raw[:]) // it never fails: the program would have ended
	return &requestIDs{prefix: hex.EncodeToString(raw[:]) + "-"}
}

func (ids *requestIDs) next() string {
	var buf [32]byte
	return string(strconv.AppendUint(append(buf[:0], ids.prefix...), ids.last.Add(1), 36))
}

// requestID gives the request its id. One that the client sent is not believed.
func (f *Front) requestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inboundOf(w).id = f.ids.next()
		next.ServeHTTP(w, r)
	})
}
