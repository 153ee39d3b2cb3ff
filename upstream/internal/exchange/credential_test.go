package exchange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/upstream"
)

// A source hands out its tokens one by one: Refresh moves to the next.
type source struct {
	tokens      []uint64
	at          int
	sign, fresh error
}

func (s *source) Sign(_ context.Context, r *http.Request) (uint64, error) {
	if s.sign != nil {
		return 0, s.sign
	}
	token := s.tokens[min(s.at, len(s.tokens)-1)]
	r.Header.Set("Authorization", fmt.Sprint("Bearer ", token))
	return token, nil
}

func (*source) Changed() <-chan struct{} { return nil }

func (s *source) Refresh(context.Context, uint64) error {
	s.at++
	return s.fresh
}

func TestRefusedToken(t *testing.T) {
	for _, test := range []struct {
		name   string
		source source
		budget *upstream.Budget
		seen   []string
		status int // of the refusal that stands, 0 for none
	}{
		{"refreshed", source{tokens: []uint64{1, 2}}, new(upstream.Budget), []string{"Bearer 1", "Bearer 2"}, 0},
		{"refreshed and refused", source{tokens: []uint64{1, 3}}, new(upstream.Budget), []string{"Bearer 1", "Bearer 3"}, 401},
		{"the same again", source{tokens: []uint64{1}}, new(upstream.Budget), []string{"Bearer 1"}, 401},
		{"no budget", source{tokens: []uint64{1, 2}}, nil, []string{"Bearer 1"}, 401},
		{"refresh fails", source{tokens: []uint64{1, 2}, fresh: errors.New("down")}, new(upstream.Budget), []string{"Bearer 1"}, 401},
	} {
		t.Run(test.name, func(t *testing.T) {
			var seen []string
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				seen = append(seen, r.Header.Get("Authorization"))
				if seen[len(seen)-1] != "Bearer 2" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				answer(200, jsonType, ours)(w, r)
			})
			c := newClient(t, s.URL, func(cfg *Config) { cfg.Credential = &test.source })
			req := request()
			req.Resend = test.budget
			_, err := c.Do(t.Context(), req)
			if test.status != 0 {
				want(t, err, upstream.ErrorResponse, upstream.Refused, test.status)
			} else if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(seen, test.seen) {
				t.Errorf("the server saw %q, want %q", seen, test.seen)
			}
		})
	}
}

func TestNoCredentialIsToBeHad(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
	c := newClient(t, s.URL, func(cfg *Config) { cfg.Credential = &source{sign: errors.New("down")} })
	_, err := c.Do(t.Context(), request())
	want(t, err, upstream.NotSent, upstream.NoCredential, 0)
}

// hanging is a source that never settles by itself.
type hanging struct{ signs bool }

func (h hanging) Sign(ctx context.Context, _ *http.Request) (uint64, error) {
	if h.signs {
		return 1, nil
	}
	<-ctx.Done()
	return 0, ctx.Err()
}

func (hanging) Changed() <-chan struct{} { return nil }

func (h hanging) Refresh(ctx context.Context, _ uint64) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestDeadlineWhileACredentialIsFetched(t *testing.T) {
	for _, signs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, "http://server", func(cfg *Config) { cfg.Credential = hanging{signs} })
			end := pipes(c, func(_ int64, r *bufio.Reader, far net.Conn) {
				readRequest(t, r)
				_, _ = io.WriteString(far, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
				_, _ = r.ReadByte()
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			req := request()
			req.Resend = new(upstream.Budget)
			_, err := c.Do(ctx, req)
			want(t, err, upstream.NotSent, upstream.DeadlineUnsent, 0)
			end()
		})
	}
}
