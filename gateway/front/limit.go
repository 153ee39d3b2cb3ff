package front

import (
	"io"
	"net/http"
	"strconv"

	"mcp-gateway/internal/wire"
)

// limitBody refuses a request whose body says that it is too large, before anything else is spent on it. One that
// does not say is bounded where it is read.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxBody {
			tooLarge(inboundOf(w), r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

const (
	// anybodysLength is how much memory a mere announcement of a body gets. Once as much has come, it gets the rest.
	anybodysLength = 64 << 10
	// callersLength is the same for who has said who they are.
	callersLength = 1 << 20
)

// readAll reads src to its end, or up to one byte more than a body may have; length is what was announced, -1 for nothing, and
// trusted how much of that is believed.
func readAll(src io.Reader, length, trusted int64) ([]byte, error) {
	if length < 0 {
		return io.ReadAll(io.LimitReader(src, maxBody+1))
	}
	body := make([]byte, min(length, trusted))
	n, err := io.ReadFull(src, body)
	if err != nil || int64(n) == length {
		return body[:n], err
	}
	whole := make([]byte, length)
	_, err = io.ReadFull(src, whole[copy(whole, body):])
	return whole, err
}

// discarded is how often the largest body is read on, for nothing but that its sender comes to read the refusal: a connection that is
// closed under a sender loses the answer as well.
const discarded = 8

func tooLarge(in *inbound, r *http.Request) {
	in.Header()["Connection"] = []string{"close"}
	refuse(in, http.StatusRequestEntityTooLarge, nil,
		fault(wire.CodeInvalidRequest, "the request is larger than "+strconv.Itoa(maxBody)+" bytes"))
	in.readWithin(clientPatience)
	// The answer stands, whatever becomes of the rest.
	_ = http.NewResponseController(in).Flush()
	_, _ = io.CopyN(io.Discard, r.Body, discarded*maxBody)
}

// readBody reads the whole body, within the bound and a client's patience. It has answered where it reports false.
//
// At the body's end net/http lifts the deadline, and begins to watch for a disconnect.
func readBody(in *inbound, r *http.Request) ([]byte, bool) {
	in.readWithin(clientPatience)
	trusted := int64(anybodysLength)
	if in.caller != "" {
		trusted = callersLength
	}
	body, err := readAll(r.Body, r.ContentLength, trusted)
	if len(body) > maxBody {
		tooLarge(in, r)
		return nil, false
	}
	if err != nil {
		in.Header()["Connection"] = []string{"close"}
		refuse(in, http.StatusBadRequest, nil, fault(wire.CodeParse, "the body did not arrive whole"))
		return nil, false
	}
	return body, true
}
