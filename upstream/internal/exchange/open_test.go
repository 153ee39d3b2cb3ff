package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"mcp-gateway/upstream"
)

func TestOpenAndPostJudgeByTheStatus(t *testing.T) {
	for _, test := range []struct {
		status  int
		outcome upstream.Outcome // empty is success
		cause   upstream.Cause
	}{
		{200, "", ""}, {202, "", ""}, {204, "", ""},
		{302, upstream.NoResponse, upstream.HTTPError},
		{401, upstream.ErrorResponse, upstream.Refused},
		{403, upstream.ErrorResponse, upstream.Refused},
		{404, upstream.NoResponse, upstream.HTTPError},
		{500, upstream.NoResponse, upstream.HTTPError},
	} {
		t.Run(fmt.Sprint(test.status), func(t *testing.T) {
			s := serve(t, answer(test.status, "text/html", ""))
			c := newClient(t, s.URL)
			resp, err := c.Open(t.Context(), http.Header{})
			if err == nil {
				_ = resp.Body.Close()
			}
			for _, err := range []error{err, c.Post(t.Context(), request())} {
				e, failed := errors.AsType[*upstream.Error](err)
				if failed != (test.outcome != "") || failed && (e.Outcome != test.outcome || e.Cause != test.cause || e.HTTPStatus != test.status) {
					t.Errorf("error %v, want %q (%s)", err, test.outcome, test.cause)
				}
			}
		})
	}
}

func TestOpenSendsNoBodyAndItsBodyEndsWithTheContext(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); r.Method != http.MethodGet || len(body) > 0 {
			t.Errorf("%s with %q", r.Method, body)
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	c := newClient(t, s.URL)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := c.Open(ctx, http.Header{})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestOpenAndPostAfterClose(t *testing.T) {
	c := newClient(t, "http://127.0.0.1:1")
	c.Close()
	_, err := c.Open(t.Context(), http.Header{})
	for _, err := range []error{err, c.Post(t.Context(), request())} {
		if e, ok := errors.AsType[*upstream.Error](err); !ok || e.Outcome != upstream.NotSent || e.Cause != upstream.ClosedByGateway {
			t.Errorf("error %v", err)
		}
	}
}
