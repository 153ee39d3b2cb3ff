package upstreamtest

import (
	"strings"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
)

// beside runs a call that is in flight on the same upstream while test runs, and must come out of it unharmed.
func beside(t *testing.T, tr Transport, h Handler, test func(u upstream.Upstream)) {
	t.Helper()
	arrived, release := make(chan struct{}), make(chan struct{})
	u := start(t, tr, func(r *Request) {
		if r.Name() != "beside" {
			h(r)
			return
		}
		close(arrived)
		r.Wait(release)
		r.Result("")
	})
	other := call(t.Context(), u, "beside", "{}")
	<-arrived
	test(u)
	close(release)
	(<-other).result(t, tr, "")
}

// preface makes what follows come as a stream, where the transport has a choice.
func (r *Request) preface() {
	r.Notification(mcp.NotificationMessage, `"level":"debug","data":1`)
}

// What is no message ends the call that it must be the reply to. Where it could be anything, it ends none.
func testMalformed(t *testing.T, tr Transport) {
	for _, bad := range []string{
		"Server started", "{broken", "[1,2", `{"jsonrpc":"2.0"}`, `"text"`, "<html>", `{"jsonrpc":"2.0","id":null}`,
	} {
		t.Run(bad, func(t *testing.T) {
			h := func(r *Request) {
				if r.Name() == "stream" {
					r.preface()
				}
				r.Send(bad)
				if !tr.Alone {
					r.Result("")
				}
			}
			beside(t, tr, h, func(u upstream.Upstream) {
				for _, tool := range []string{"plain", "stream"} {
					d := <-call(t.Context(), u, tool, "{}")
					if tr.Alone {
						d.failed(t, upstream.NoResponse, upstream.Unusable)
					} else {
						d.result(t, tr, "")
					}
				}
			})
		})
	}
}

// A reply over the limit of 32 MiB fails its call, and the connection goes on.
func testTooLarge(t *testing.T, tr Transport) {
	pad := `"pad":"` + strings.Repeat("0123456789abcdef", 33<<20/16) + `"`
	h := func(r *Request) {
		switch r.Name() {
		case "plain":
			r.Result(pad)
		case "stream":
			r.preface()
			r.Result(pad)
		default:
			r.Result("")
		}
	}
	beside(t, tr, h, func(u upstream.Upstream) {
		(<-call(t.Context(), u, "plain", "{}")).failed(t, upstream.NoResponse, upstream.TooLarge)
		(<-call(t.Context(), u, "stream", "{}")).failed(t, upstream.NoResponse, upstream.TooLarge)
		(<-call(t.Context(), u, "small", "{}")).result(t, tr, "")
	})
}

func testRepeatedReply(t *testing.T, tr Transport) {
	h := func(r *Request) {
		r.preface()
		r.Result(`"called":"` + r.Name() + `"`)
		r.Result(`"called":"` + r.Name() + `","repeated":true`)
	}
	beside(t, tr, h, func(u upstream.Upstream) {
		for _, tool := range []string{"first", "second"} {
			(<-call(t.Context(), u, tool, "{}")).result(t, tr, `"called":"`+tool+`"`)
		}
	})
}

// Servers that could not read a request say so without its id. With one call in flight there is no doubt whose it is. It is
// no answer to the request: only the server knows what it made of it.
func testErrorWithoutID(t *testing.T, tr Transport) {
	texts := map[string]string{
		"null": `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
		"none": `{"jsonrpc":"2.0","error":{"code":-32600,"message":"invalid request"}}`,
	}
	u := start(t, tr, func(r *Request) {
		if text, ok := texts[r.Name()]; ok {
			r.Send(text)
			return
		}
		r.Result("")
	})
	for name := range texts {
		(<-call(t.Context(), u, name, "{}")).failed(t, upstream.NoResponse, upstream.Unusable)
		(<-call(t.Context(), u, "good", "{}")).result(t, tr, "")
	}
}

// A reply of which only a part came is none: the call may have run.
func testServerDiesInReply(t *testing.T, tr Transport) {
	u := start(t, tr, func(r *Request) {
		if r.Name() == "stream" {
			r.preface()
		}
		r.Part(`{"jsonrpc":"2.0","res`)
		r.Die()
	})
	for _, tool := range []string{"plain", "stream"} {
		Await(t, u, upstream.Live)
		(<-call(t.Context(), u, tool, "{}")).failed(t, upstream.NoResponse, upstream.ConnectionLost)
	}
}

// A reply that comes byte by byte is whole at its end.
func testSlowDrip(t *testing.T, tr Transport) {
	const members = `"text":"\u00e9 é","n":[1.0, 2]`
	u := start(t, tr, func(r *Request) {
		if r.Name() == "stream" {
			r.preface()
		}
		text := r.resultText(members)
		for i := range len(text) - 1 {
			r.Part(text[i : i+1])
		}
		r.Send(text[len(text)-1:])
	})
	for _, tool := range []string{"plain", "stream"} {
		(<-call(t.Context(), u, tool, "{}")).result(t, tr, members)
	}
}
