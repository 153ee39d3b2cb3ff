package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestQuantilesAreOnePercentExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var h, half histogram
	var all []time.Duration
	for i := range 10_000 {
		d := time.Duration(random.Int64N(int64(1) << (i % 36)))
		all = append(all, d)
		if i%2 == 0 {
			h.record(d)
		} else {
			half.record(d)
		}
	}
	h.add(&half)
	slices.Sort(all)
	if h.count() != len(all) {
		t.Fatalf("%d durations were counted, not %d", h.count(), len(all))
	}
	for _, q := range []float64{0.001, 0.5, 0.9, 0.99, 1} {
		want := all[int(q*float64(len(all)))-1]
		if got := h.quantile(q); (got - want).Abs() > want/100 {
			t.Errorf("quantile %v is %v, not %v", q, got, want)
		}
	}
	if got := (&histogram{}).quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}

func TestAnswersAreComparedByteForByte(t *testing.T) {
	const due = `{"id":7305918299,"text":"#7305918299"}`
	answer := newTemplate([]byte(`{"id":7305918300,"text":"#7305918300"}`), "7305918300")
	for _, row := range []struct{ name, body, problem string }{
		{"as due", due, ""},
		{"of another call", strings.ReplaceAll(due, "99", "98"), "is due"},
		{"with another's text", strings.Replace(due, `#7305918299`, `#7305918298`, 1), "is due"},
		{"cut", due[:len(due)-1], "ends after"},
		{"cut in an id", due[:len(due)-3], "ends after"},
		{"empty", "", "ends after"},
		{"longer", due + "\n", "goes on"},
		{"another member", strings.Replace(due, "text", "test", 1), "is due"},
	} {
		for _, step := range []int{1, 7, 1000} {
			var c comparison
			c.begin(answer, 7305918299)
			var err error
			for part := range slices.Chunk([]byte(row.body), step) {
				if err = c.feed(part); err != nil {
					break
				}
			}
			if err == nil {
				err = c.end()
			}
			if row.problem == "" && err != nil || row.problem != "" && (err == nil || !strings.Contains(err.Error(), row.problem)) {
				t.Errorf("%s, %d bytes at a time: %v", row.name, step, err)
			}
		}
	}
}

// echo serves the tool small, and lets spoil change what it answers to each call, counted from 1.
func echo(t *testing.T, spoil func(n int64, body string) string) *httptest.Server {
	t.Helper()
	var calls atomic.Int64
	a := newAnswers(true, 0)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		m := readMessage(body)
		head, _ := a.reply(nil, &m)
		if text := spoil(calls.Add(1), string(head)); text != "" {
			fmt.Fprint(w, text)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	return server
}

func prepared(t *testing.T, server *httptest.Server) *target {
	t.Helper()
	small, address := kinds()[0], server.Listener.Addr().String()
	target, err := prepare(t.Context(), "echo", address, small.modern(address, "key", "small"), small.verify)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.close)
	return target
}

func TestLoadMakesAsManyCallsAsAsked(t *testing.T) {
	target := prepared(t, echo(t, func(n int64, body string) string { return body }))
	for range 2 {
		r, err := load(t.Context(), target, 3, limit{calls: 50})
		if err != nil || r.calls != 50 || r.latencies.quantile(1) <= 0 {
			t.Fatalf("%+v %v", r, err)
		}
	}
	if len(target.open) != 3 {
		t.Errorf("%d connections are kept, not 3", len(target.open))
	}
}

func TestOneWrongAnswerEndsTheLoad(t *testing.T) {
	for name, spoil := range map[string]func(body string) string{
		"of another call":      func(body string) string { return strings.Replace(body, `"id":73059`, `"id":73058`, 1) },
		"with another payload": func(body string) string { return strings.Replace(body, `"#73059`, `"#73058`, 1) },
		"of another length":    func(body string) string { return body + " " },
		"that is cut":          func(body string) string { return body[:len(body)-1] },
		"with a status":        func(string) string { return "" },
	} {
		target := prepared(t, echo(t, func(n int64, body string) string {
			if n == 40 {
				return spoil(body)
			}
			return body
		}))
		r, err := load(t.Context(), target, 4, limit{time: time.Minute})
		if err == nil || !strings.HasPrefix(err.Error(), "echo: call 73059") {
			t.Errorf("an answer %s: %+v %v", name, r, err)
		}
	}
}

func TestLoadGoesOnWhereTheServerClosesConnectionsInOrder(t *testing.T) {
	server := echo(t, func(n int64, body string) string { return body })
	target := prepared(t, server)
	server.Config.SetKeepAlivesEnabled(false)
	if r, err := load(t.Context(), target, 2, limit{calls: 20}); err != nil || r.calls != 20 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestLoadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hold := make(chan struct{})
	server := echo(t, func(n int64, body string) string {
		if n == 10 {
			cancel()
			<-hold
		}
		return body
	})
	defer close(hold)
	if r, err := load(ctx, prepared(t, server), 4, limit{time: time.Minute}); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v %v", r, err)
	}
}
