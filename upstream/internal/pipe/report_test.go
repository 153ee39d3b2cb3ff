package pipe

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"mcp-gateway/upstream"
)

// listening begins a call with a progress token, whose reports go to notify.
func listening(t *testing.T, p *Pipe, token string, notify func(upstream.Notification)) <-chan result {
	t.Helper()
	done := make(chan result, 1)
	go func() {
		m, err := p.Call(t.Context(), "a", []byte(`{"_meta":{"progressToken":`+token+`},"x":1}`), notify, nil)
		done <- result{m, err}
	}()
	synctest.Wait()
	return done
}

func report(token, progress any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%v,"progress":%v,"k":1.0}}`, token, progress)
}

// A log of what notify got, which fails the test once its call has returned.
type reports struct {
	got      []string
	returned bool
}

func (r *reports) notify(n upstream.Notification) {
	if r.returned {
		panic("notified after Call has returned")
	}
	r.got = append(r.got, n.Method+string(n.Params.Raw()))
}

func TestProgressReachesItsCallWithTheCallersToken(t *testing.T) {
	for _, token := range []string{`"a\u0062"`, `""`, `12345678901234567890`, `1`} {
		t.Run(token, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
				var first, second reports
				a := listening(t, p, token, first.notify)
				b := listening(t, p, token, second.notify)
				s.hear(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"progressToken":1},"x":1}}`)
				s.hear(`{"jsonrpc":"2.0","id":2,"method":"a","params":{"_meta":{"progressToken":2},"x":1}}`)
				s.says <- report(2, 5)
				s.says <- report(1, 6)
				s.says <- "[" + report(1, 7) + "," + report(1, 8) + `,{"jsonrpc":"2.0","id":1,"result":{}}]`
				wantResult(t, <-a, `{}`)
				first.returned = true
				s.says <- report(1, 9) // late
				s.says <- `{"jsonrpc":"2.0","id":2,"result":{}}`
				wantResult(t, <-b, `{}`)
				want := func(progress string) string {
					return `notifications/progress{"progressToken":` + token + `,"progress":` + progress + `,"k":1.0}`
				}
				if !slices.Equal(first.got, []string{want("6"), want("7"), want("8")}) || !slices.Equal(second.got, []string{want("5")}) {
					t.Errorf("got %v and %v", first.got, second.got)
				}
			})
		})
	}
}

func TestProgressOfNoCallIsDropped(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		var got reports
		listens := listening(t, p, `"1"`, got.notify)
		deaf := call(t.Context(), p, "a", `{"_meta":{"a":1}}`)
		for _, token := range []string{`"1"`, `1.0`, `2`, `3`, `null`, `-1`, `1,"progressToken":1`} {
			s.says <- report(token, 1)
		}
		s.says <- `{"jsonrpc":"2.0","method":"notifications/progress"}`
		s.says <- report(1, `"`+strings.Repeat("x", maxReport)+`"`)
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{}}`
		wantResult(t, <-listens, `{}`)
		s.says <- `{"jsonrpc":"2.0","id":2,"result":{}}`
		wantResult(t, <-deaf, `{}`)
		if got.got != nil {
			t.Errorf("got %.200v", got.got)
		}
	})
}

func TestATokenThatNobodyListensToIsTakenOff(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		call(t.Context(), p, "a", `{"_meta":{"a":1,"progress\u0054oken":3}}`)
		s.hear(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"a":1}}}`)
		listening(t, p, `null`, func(upstream.Notification) {})
		s.hear(`{"jsonrpc":"2.0","id":2,"method":"a","params":{"_meta":{},"x":1}}`)
	})
}

// What a server reported before it ended goes to the caller before the result does.
func TestProgressBeforeTheEndIsDelivered(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		var got reports
		c := listening(t, p, `"t"`, got.notify)
		s.says <- report(1, 1)
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{}}`
		s.says <- io.EOF
		wantResult(t, <-c, `{}`)
		if len(got.got) != 1 {
			t.Errorf("got %v", got.got)
		}
	})
}

func TestASlowCallerDelaysNobodyAndKeepsTheNewest(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *Pipe, s *server) {
		release := make(chan struct{})
		var got reports
		slow := listening(t, p, `"t"`, func(n upstream.Notification) {
			<-release
			got.notify(n)
		})
		other := call(t.Context(), p, "a", "{}")
		for i := range 900 {
			s.says <- report(1, i)
		}
		s.says <- `{"jsonrpc":"2.0","id":2,"result":{}}`
		wantResult(t, <-other, `{}`)
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{}}`
		synctest.Wait()
		close(release)
		wantResult(t, <-slow, `{}`)
		if len(got.got) < reportRoom || len(got.got) > reportRoom+1 {
			t.Fatalf("%d of 900 reports were delivered, want the newest %d and the one that was being delivered", len(got.got), reportRoom)
		}
		for i, text := range got.got[len(got.got)-reportRoom:] {
			if want := fmt.Sprintf(`"progress":%d,`, 900-reportRoom+i); !strings.Contains(text, want) {
				t.Errorf("report %d is %s, want %s", i, text, want)
			}
		}
	})
}

func TestWhereServersMayNotAskNothingIsAnswered(t *testing.T) {
	inBubble(t, func(c *Config) { c.NoAnswers = true }, func(t *testing.T, p *Pipe, s *server) {
		s.says <- `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		s.says <- `{"jsonrpc":"2.0","id":"x","method":"roots/list"}`
		s.silent()
		c := call(t.Context(), p, "a", "{}")
		s.says <- `{"jsonrpc":"2.0","id":1,"result":{}}`
		wantResult(t, <-c, `{}`)
	})
}
