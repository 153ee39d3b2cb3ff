package modern

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

const (
	discover = mcp.MethodDiscover
	listen   = mcp.MethodListen
)

func TestWhatIsAnnouncedIsListenedTo(t *testing.T) {
	b := &broadcaster{listens: []func(*subscription) (*http.Response, error){stays}}
	listening(t, b, func(t *testing.T, u *Upstream, _ *logged) {
		wantTold(t, b, discover+" 0s", listen+" 0s")
		const want = `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true},` +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"mcp-gateway","version":"1.2.3"}}}}`
		if b.asked != want {
			t.Errorf("it asked %s, want %s", b.asked, want)
		}
		wantChanges(t, u, 1, upstream.Changes{}) // nothing has been missed
	})
}

func TestNothingIsListenedToWhereNothingIsAnnounced(t *testing.T) {
	for _, capabilities := range []string{
		`{}`, `{"tools":{}}`, `{"tools":{"listChanged":false},"prompts":{"listChanged":"true"},"resources":[]}`, `{"resources":{"subscribe":true}}`,
	} {
		b := &broadcaster{discovers: []func(string) (*http.Response, error){
			discovers(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + capabilities + `}`)}}
		listening(t, b, func(t *testing.T, _ *Upstream, _ *logged) {
			<-time.After(time.Hour)
			wantTold(t, b, discover+" 0s")
		})
	}
}

// Only what the server has acknowledged of what was asked for counts, and only under the listen's own id.
func TestWhatCountsAsAChange(t *testing.T) {
	var s *subscription
	b := &broadcaster{listens: []func(*subscription) (*http.Response, error){func(opened *subscription) (*http.Response, error) {
		s = opened
		go s.acknowledge(`"toolsListChanged":true,"promptsListChanged":false,"resourcesListChanged":true`)
		return s.in, nil
	}}}
	listening(t, b, func(t *testing.T, u *Upstream, _ *logged) {
		for _, id := range []string{`"ID"`, `1`, `null`, `ID.0`} {
			s.tell(mcp.NotificationToolsChanged, id)
		}
		s.tell(mcp.NotificationPromptsChanged, "ID")
		s.tell(mcp.NotificationResourcesChanged, "ID")
		s.tell(mcp.NotificationResourceUpdated, "ID")
		s.acknowledge(all) // a second one changes nothing
		s.tell(mcp.NotificationPromptsChanged, "ID")
		wantChanges(t, u, 1, upstream.Changes{})
		s.tell(mcp.NotificationToolsChanged, "ID")
		wantChanges(t, u, 1, upstream.Changes{Tools: 1})
		<-time.After(time.Hour)
		s.event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) // it can be nobody else's
		wantChanges(t, u, 1, upstream.Changes{Tools: 2})
	})
}

// A listen that the server ended is opened again after a pause, and what may have changed meanwhile counts as changed.
func TestAListenThatEndsIsOpenedAgain(t *testing.T) {
	over := result(`{"resultType":"complete"}`)
	b := &broadcaster{listens: []func(*subscription) (*http.Response, error){ends(time.Minute, over), ends(time.Minute, over), stays}}
	listening(t, b, func(t *testing.T, u *Upstream, out *logged) {
		<-time.After(time.Minute)
		wantChanges(t, u, 1, upstream.Changes{})
		<-time.After(4 * time.Second)
		wantChanges(t, u, 1, upstream.Changes{Tools: 1, Prompts: 1})
		<-time.After(time.Hour)
		wantChanges(t, u, 1, upstream.Changes{Tools: 2, Prompts: 2})
		wantTold(t, b, discover+" 0s", listen+" 0s", listen+" 1m4s", listen+" 2m8s")
		if strings.Contains(out.String(), "level=WARN") {
			t.Errorf("the log complains:\n%s", out)
		}
	})
}

func TestAServerWithoutListenIsNotAskedAgain(t *testing.T) {
	for name, play := range map[string]func(*subscription) (*http.Response, error){
		"no method":        answers(404, failure(`{"code":-32601,"message":"no"}`)),
		"no method at 200": answers(200, failure(`{"code":-32601,"message":"no"}`)),
		"it honours nothing": func(s *subscription) (*http.Response, error) {
			go func() { s.acknowledge(""); _ = s.out.Close() }()
			return s.in, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &broadcaster{listens: []func(*subscription) (*http.Response, error){play}}
			listening(t, b, func(t *testing.T, u *Upstream, out *logged) {
				<-time.After(time.Hour)
				wantChanges(t, u, 1, upstream.Changes{})
				wantTold(t, b, discover+" 0s", listen+" 0s")
				if got := out.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "noticed only by `poll`") {
					t.Errorf("the log:\n%s", got)
				}
				if _, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A refusal is told once, tried again with pauses, and harms no session.
func TestARefusedListenIsTriedAgain(t *testing.T) {
	for name, refusal := range map[string]func(*subscription) (*http.Response, error){
		"503":          answers(503, "<html>"),
		"401":          answers(401, ""),
		"404":          answers(404, "<html>"),
		"an error":     answers(400, failure(`{"code":-32602,"message":"no"}`)),
		"a result":     answers(200, result(`{"resultType":"complete"}`)),
		"what is none": answers(200, "<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			b := &broadcaster{listens: []func(*subscription) (*http.Response, error){refusal, refusal, refusal, stays}}
			listening(t, b, func(t *testing.T, u *Upstream, out *logged) {
				<-time.After(time.Hour)
				wantChanges(t, u, 1, upstream.Changes{Tools: 1, Prompts: 1})
				wantTold(t, b, discover+" 0s", listen+" 0s", listen+" 4s", listen+" 8s", listen+" 12s")
				got := out.String()
				if strings.Count(got, "level=WARN") != 1 || strings.Count(got, "refuses subscriptions/listen") != 3 || !strings.Contains(got, "takes subscriptions/listen again") {
					t.Errorf("the log:\n%s", got)
				}
			})
		})
	}
}

// A server that acknowledges late, or never, keeps no call waiting for long.
func TestAListenThatIsNotAcknowledged(t *testing.T) {
	late := func(s *subscription) (*http.Response, error) {
		go func() {
			for range 2 { // the second time says nothing
				<-time.After(20 * time.Second)
				s.acknowledge(all)
			}
		}()
		return s.in, nil
	}
	never := func(s *subscription) (*http.Response, error) { return s.in, nil }
	t.Run("late", func(t *testing.T) {
		b := &broadcaster{listens: []func(*subscription) (*http.Response, error){late}}
		listening(t, b, func(t *testing.T, u *Upstream, _ *logged) {
			if waited := time.Since(b.began); waited != headStart {
				t.Errorf("it was live after %v, want %v", waited, headStart)
			}
			<-time.After(time.Hour)
			wantChanges(t, u, 1, upstream.Changes{Tools: 1, Prompts: 1}) // which a list that was asked for before may lack
			wantTold(t, b, discover+" 0s", listen+" 0s")
		})
	})
	t.Run("never", func(t *testing.T) {
		b := &broadcaster{listens: []func(*subscription) (*http.Response, error){never, stays}}
		listening(t, b, func(t *testing.T, u *Upstream, out *logged) {
			<-time.After(time.Hour)
			wantChanges(t, u, 1, upstream.Changes{Tools: 1, Prompts: 1})
			wantTold(t, b, discover+" 0s", listen+" 0s", listen+" 34s")
			if !strings.Contains(out.String(), "has not acknowledged") {
				t.Errorf("the log:\n%s", out)
			}
		})
	})
}

// Where a listen breaks off, the server may have been replaced by another: it is asked who it is.
func TestAListenThatBreaksOff(t *testing.T) {
	other := strings.Replace(announces, `"resources":{}`, `"resources":{"subscribe":true}`, 1)
	for _, test := range []struct {
		name    string
		after   func(id string) (*http.Response, error) // the break, discover says this
		session uint64
		changes upstream.Changes
		told    []string
	}{
		{"the same server", discovers(strings.Replace(announces, `]`, `],"ttlMs":5`, 1)), 1, upstream.Changes{Tools: 1, Prompts: 1},
			[]string{discover + " 0s", listen + " 0s", discover + " 1m0s", listen + " 1m4s"}},
		{"a server that does not say", func(id string) (*http.Response, error) {
			resp := respond(strings.NewReader("<html>"))
			resp.StatusCode = 502
			return resp, nil
		}, 1, upstream.Changes{Tools: 1, Prompts: 1}, []string{discover + " 0s", listen + " 0s", discover + " 1m0s", listen + " 1m4s"}},
		{"another server", discovers(other), 2, upstream.Changes{},
			[]string{discover + " 0s", listen + " 0s", discover + " 1m0s", discover + " 1m0s", listen + " 1m0s"}},
		{"another build", discovers(strings.Replace(announces, `]`, `],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}}`, 1)),
			2, upstream.Changes{}, []string{discover + " 0s", listen + " 0s", discover + " 1m0s", discover + " 1m0s", listen + " 1m0s"}},
		{"other instructions", discovers(strings.Replace(announces, `]`, `],"instructions":"be kind"`, 1)),
			2, upstream.Changes{}, []string{discover + " 0s", listen + " 0s", discover + " 1m0s", discover + " 1m0s", listen + " 1m0s"}},
		{"none", unreachable, 2, upstream.Changes{},
			[]string{discover + " 0s", listen + " 0s", discover + " 1m0s", discover + " 1m4s", listen + " 1m4s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &broadcaster{
				discovers: []func(string) (*http.Response, error){discovers(announces), test.after, discovers(other)},
				listens:   []func(*subscription) (*http.Response, error){ends(time.Minute, ""), stays},
			}
			listening(t, b, func(t *testing.T, u *Upstream, _ *logged) {
				<-time.After(time.Hour)
				wantChanges(t, u, test.session, test.changes)
				wantTold(t, b, test.told...)
			})
		})
	}
}

func TestAListenThatBreaksOffAtAServerOfAnotherRevision(t *testing.T) {
	b := &broadcaster{
		discovers: []func(string) (*http.Response, error){discovers(announces), discovers(`{"resultType":"complete","supportedVersions":["2025-11-25"]}`)},
		listens:   []func(*subscription) (*http.Response, error){ends(time.Minute, "")},
	}
	listening(t, b, func(t *testing.T, u *Upstream, _ *logged) {
		<-time.After(time.Hour)
		if status := upstreamtest.Await(t, u, upstream.Verdict); !strings.Contains(status.Err.Error(), "2025-11-25") {
			t.Errorf("verdict %v", status.Err)
		}
	})
}

// What cannot be reached is lost, and not said to refuse.
func TestAListenThatIsNotReachable(t *testing.T) {
	gone := func(*subscription) (*http.Response, error) { return nil, io.ErrClosedPipe }
	b := &broadcaster{
		discovers: []func(string) (*http.Response, error){discovers(announces), unreachable, discovers(announces)},
		listens:   []func(*subscription) (*http.Response, error){gone, stays},
	}
	listening(t, b, func(t *testing.T, u *Upstream, out *logged) {
		<-time.After(time.Hour)
		wantChanges(t, u, 2, upstream.Changes{})
		wantTold(t, b, discover+" 0s", listen+" 0s", discover+" 0s", discover+" 4s", listen+" 4s")
		if strings.Contains(out.String(), "refuses") {
			t.Errorf("the log:\n%s", out)
		}
	})
}

// A listen ends with its session, and another begins with the next.
func TestAListenEndsWithItsSession(t *testing.T) {
	b := &broadcaster{listens: []func(*subscription) (*http.Response, error){stays}}
	listening(t, b, func(t *testing.T, u *Upstream, _ *logged) {
		s, err := u.link.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u.link.Lost(s, errors.New("a call could not reach it"))
		<-time.After(time.Hour)
		wantChanges(t, u, 2, upstream.Changes{})
		wantTold(t, b, discover+" 0s", listen+" 0s", discover+" 4s", listen+" 4s")
		if b.open != 1 {
			t.Errorf("%d listens are open", b.open)
		}
	})
}

// A stream may go on for as long as it likes: comments and events are bounded each, and not together.
func TestAListenWithoutEnd(t *testing.T) {
	var s *subscription
	b := &broadcaster{listens: []func(*subscription) (*http.Response, error){func(opened *subscription) (*http.Response, error) {
		s = opened
		go s.acknowledge(all)
		return s.in, nil
	}}}
	listening(t, b, func(t *testing.T, u *Upstream, _ *logged) {
		comment := ":" + strings.Repeat("x", 1<<20) + "\n"
		for range 40 {
			_, _ = io.WriteString(s.out, comment)
			s.event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}`)
		}
		s.tell(mcp.NotificationToolsChanged, "ID")
		wantChanges(t, u, 1, upstream.Changes{Tools: 1})
		wantTold(t, b, discover+" 0s", listen+" 0s")
	})
}
