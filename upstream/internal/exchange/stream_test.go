package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/internal/sse"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// A script answers the requests of a client one after the other, in memory, and the last answer again.
type script struct {
	answers []scripted
	began   time.Time
	seen    []string // method, place and time of each
}

type scripted struct {
	status int
	text   string
}

var errDown = errors.New("down")

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	a := s.answers[min(len(s.seen), len(s.answers)-1)]
	s.seen = append(s.seen, strings.Join(strings.Fields(fmt.Sprint(r.Method, " ", r.Header.Get("Last-Event-Id"), " ", time.Since(s.began))), " "))
	if a.status == 0 {
		return nil, errDown
	}
	return &http.Response{
		StatusCode: a.status, ContentLength: -1, Body: io.NopCloser(strings.NewReader(a.text)),
		Header: http.Header{"Content-Type": {"text/event-stream"}},
	}, nil
}

func (s *script) client() *Client {
	s.began = time.Now()
	return newPlain(Config{Transport: s})
}

func newPlain(cfg Config) *Client {
	r, err := http.NewRequest(http.MethodGet, "http://server", nil)
	if err != nil {
		panic(err) // the url is the test's own
	}
	cfg.URL = r.URL
	return New(cfg)
}

func TestFollowOpensAgainAfterTheLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []scripted{
			{200, "id: a\nretry: 2000\ndata: 1\n\n"},
			{200, ""},
			{0, ""},
			{503, ""},
			{401, ""},
			{200, "id: b\n\ndata: 2\n\n"},
			{405, ""},
		}}
		c := s.client()
		defer c.Close()
		var got []string
		opened, err := c.Follow(t.Context(), func() http.Header { return http.Header{} }, func(e sse.Event) { got = append(got, string(e.Data)) })
		if e, ok := errors.AsType[*upstream.Error](err); !opened || !ok || e.HTTPStatus != 405 {
			t.Errorf("it ended with %v after it had opened: %v", err, opened)
		}
		if want := []string{"1", "", "2"}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		want := []string{"GET 0s", "GET a 2s", "GET a 6s", "GET a 14s", "GET a 30s", "GET a 1m0s", "GET b 1m2s"}
		if !slices.Equal(s.seen, want) {
			t.Errorf("requests %q, want %q", s.seen, want)
		}
	})
}

func TestFollowAsksNoServerAgainThatHasNoStream(t *testing.T) {
	for _, status := range []int{400, 404, 405, 406, 410, 501} {
		s := &script{answers: []scripted{{status, ""}}}
		c := s.client()
		opened, err := c.Follow(t.Context(), func() http.Header { return http.Header{} }, nil)
		if e, ok := errors.AsType[*upstream.Error](err); opened || !ok || e.HTTPStatus != status || len(s.seen) != 1 {
			t.Errorf("HTTP %d: %v after %d requests, opened: %v", status, err, len(s.seen), opened)
		}
		c.Close()
	}
}

func TestFollowEndsWithItsContextAndItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, byContext := range []bool{true, false} {
			c := (&script{answers: []scripted{{503, ""}}}).client()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() {
				_, err := c.Follow(ctx, func() http.Header { return http.Header{} }, nil)
				done <- err
			}()
			<-time.After(time.Hour)
			if byContext {
				cancel()
			} else {
				c.Close()
			}
			if err := <-done; err != nil {
				t.Errorf("by its context %v: %v", byContext, err)
			}
			cancel()
			c.Close()
		}
	})
}

func resumable() *Request {
	r := request()
	r.Legacy = &Legacy{Asked: func(*wire.Message) {}, Resume: func() http.Header { return http.Header{} }}
	return r
}

func TestResumePauses(t *testing.T) {
	const reply = "id: z\ndata: " + ours + "\n\n"
	for _, test := range []struct {
		name    string
		answers []scripted
		want    []string
	}{
		{"the server names none", []scripted{{200, "id: a\n\n"}, {200, reply}}, []string{"POST 0s", "GET a 1s"}},
		{"none", []scripted{{200, "id: a\nretry: 0\n\n"}, {200, reply}}, []string{"POST 0s", "GET a 100ms"}},
		{"a long one", []scripted{{200, "id: a\nretry: 60000\n\n"}, {503, ""}, {200, reply}}, []string{"POST 0s", "GET a 1m0s", "GET a 2m0s"}},
		{"growing", []scripted{{200, "id: a\n\n"}, {0, ""}, {409, ""}, {200, ""}, {200, reply}}, []string{"POST 0s", "GET a 1s", "GET a 3s", "GET a 7s", "GET a 15s"}},
		{"an event resets it", []scripted{{200, "id: a\n\n"}, {0, ""}, {200, "id: b\n\n"}, {200, reply}}, []string{"POST 0s", "GET a 1s", "GET a 3s", "GET b 4s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: test.answers}
				c := s.client()
				defer c.Close()
				if _, err := c.Do(t.Context(), resumable()); err != nil {
					t.Error(err)
				}
				if !slices.Equal(s.seen, test.want) {
					t.Errorf("requests %q, want %q", s.seen, test.want)
				}
			})
		})
	}
}

func TestResumeGivesUp(t *testing.T) {
	long := "id: " + strings.Repeat("x", maxPlace+1) + "\n\n"
	for _, test := range []struct {
		name    string
		answers []scripted
		sent    int
	}{
		{"nothing comes", []scripted{{200, "id: a\n\n"}, {200, ""}}, 1 + resumes},
		{"it refuses", []scripted{{200, "id: a\n\n"}, {404, ""}}, 2},
		{"it has no GET", []scripted{{200, "id: a\n\n"}, {501, ""}}, 2},
		{"an id too long to repeat", []scripted{{200, long}}, 1},
		{"an id that no header holds", []scripted{{200, "id: a\x01\n\n"}}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: test.answers}
				c := s.client()
				defer c.Close()
				_, err := c.Do(t.Context(), resumable())
				want(t, err, upstream.NoResponse, upstream.ConnectionLost, 200)
				if len(s.seen) != test.sent {
					t.Errorf("%d requests, want %d", len(s.seen), test.sent)
				}
			})
		})
	}
}

func TestResumeEndsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&script{answers: []scripted{{200, "id: a\nretry: 3600000\n\n"}}}).client()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Do(ctx, resumable())
		want(t, err, upstream.NoResponse, upstream.Deadline, 0)
		time.AfterFunc(time.Minute, c.Close)
		_, err = c.Do(t.Context(), resumable())
		want(t, err, upstream.NoResponse, upstream.ClosedByGateway, 0)
	})
}
