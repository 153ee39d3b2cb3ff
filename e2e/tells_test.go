package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestProgressReachesOfficialClients counts what a client was told. It may miss the last one, which it forgets with the answer
// that comes right behind.
func TestProgressReachesOfficialClients(t *testing.T) {
	everything := everything(t)
	args, _ := json.Marshal(everything[1:])
	g := serve(t, fmt.Sprintf("upstreams:\n  everything:\n    command: %s\n    args: %s\n    env: {%s: %s}\n  web:\n%s  pipe:\n%s",
		everything[0], args, runEnv, quoted(run.id), livelyHTTP(t), lively(t)))
	g.allListed(t)
	const steps = 4
	calls := []toolCall{
		{Name: "everything__trigger-long-running-operation", Arguments: map[string]any{"duration": 0.4, "steps": steps}, Progress: true},
		{Name: "web__steps", Arguments: map[string]any{"steps": steps}, Progress: true},
		{Name: "pipe__steps", Arguments: map[string]any{"steps": steps}, Progress: true},
	}
	for _, script := range []string{"client-modern.mjs", "client-legacy.mjs"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			for i, result := range talk(t, script, calls, nil, g.URL).Results {
				if result.Result["isError"] == true || result.Error != nil || result.Progress < steps-1 || result.Progress > steps {
					t.Errorf("%s: told %d steps of %d: %+v", calls[i].Name, result.Progress, steps, result)
				}
			}
		})
	}
}

// told makes a call and gives what its stream said before the answer.
func told(t *testing.T, url string, header http.Header, body []byte) (notifications []map[string]json.RawMessage, answer map[string]json.RawMessage) {
	t.Helper()
	s := openStream(t, http.MethodPost, url, header, body)
	for message := range s.events {
		if answer != nil {
			t.Errorf("after the answer comes %s", message)
		}
		if message["method"] == nil {
			answer = message
			continue
		}
		notifications = append(notifications, message)
	}
	return notifications, answer
}

// TestProgressTokensKeepTheirType looks at every message of calls that run at once with tokens that look alike.
func TestProgressTokensKeepTheirType(t *testing.T) {
	t.Parallel()
	g := serve(t, "upstreams:\n  web:\n"+livelyHTTP(t)+"  pipe:\n"+lively(t))
	g.allListed(t)
	session := handshake(t, g.URL, "2025-11-25")
	for _, upstream := range []string{"web", "pipe"} {
		for _, token := range []string{`7`, `"7"`} {
			for _, era := range []string{"modern", "legacy"} {
				t.Run(upstream+token+era, func(t *testing.T) {
					t.Parallel()
					name := upstream + "__steps"
					members := `"name":"` + name + `","arguments":{"steps":3}`
					header, body := modernHeader("tools/call", name), modernRequest(`1`, "tools/call", members)
					if era == "legacy" {
						header = legacyHeader(session.revision, session.session)
						body = legacyRequest(token, "tools/call", members+`,"_meta":{"progressToken":`+token+`}`)
					} else {
						body = []byte(strings.Replace(string(body), `"_meta":{`, `"_meta":{"progressToken":`+token+`,`, 1))
					}
					notifications, answer := told(t, g.URL, header, body)
					for i, n := range notifications {
						var params struct {
							ProgressToken   json.RawMessage
							Progress, Total json.RawMessage
						}
						if json.Unmarshal(n["params"], &params) != nil || string(n["method"]) != `"notifications/progress"` ||
							string(params.ProgressToken) != token || string(params.Progress) != fmt.Sprint(i+1) || string(params.Total) != "3" {
							t.Errorf("message %d is %s", i+1, n)
						}
					}
					if len(notifications) != 3 || answer["result"] == nil {
						t.Errorf("%d messages and the answer %s", len(notifications), answer)
					}
				})
			}
		}
	}
}

// TestLogMessagesReachTheirCall asks for levels; who asks for none is told nothing. Over stdio a log message names no call, so that
// it could reach another caller: none is asked for.
func TestLogMessagesReachTheirCall(t *testing.T) {
	t.Parallel()
	g := serve(t, "upstreams:\n  web:\n"+livelyHTTP(t)+"  pipe:\n"+lively(t))
	g.allListed(t)
	body := string(modernRequest(`1`, "tools/call", `"name":"web__tell","arguments":{}`))
	asked := func(level string) []byte {
		return []byte(strings.Replace(body, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"`+level+`",`, 1))
	}
	for level, want := range map[string]int{"debug": 3, "info": 2, "error": 1} {
		notifications, answer := told(t, g.URL, modernHeader("tools/call", "web__tell"), asked(level))
		last := ""
		for _, n := range notifications {
			if string(n["method"]) != `"notifications/message"` {
				t.Errorf("at %s: told %s", level, n)
			}
			last = string(n["params"])
		}
		if len(notifications) != want || answer["result"] == nil || !strings.Contains(last, `"loudly"`) {
			t.Errorf("at %s: %d messages, the last %s, and the answer %s", level, len(notifications), last, answer)
		}
	}
	for name, request := range map[string][]byte{
		"web__tell":  []byte(body),
		"pipe__tell": []byte(strings.Replace(string(asked("debug")), "web__", "pipe__", 1)),
	} {
		if r := post(t, g.URL, modernHeader("tools/call", name), request); textOf(r) != "told" || r.frame {
			t.Errorf("%s: %v, want the answer alone", name, r)
		}
	}
	if r := post(t, g.URL, modernHeader("tools/call", "web__tell"), asked("loud")); r.code() != -32602 {
		t.Errorf("at a level that is none: %v", r)
	}
}
