package gateway

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

const planted = "s3cr3t-planted-1234"

// leaky is an upstream whose every answer holds a credential of the gateway.
func leaky(redacted bool) string {
	text := "upstreams: {a: {url: 'http://127.0.0.1/', credential: {bearer: " + planted + "}"
	if !redacted {
		text += ", redact: {results: false}"
	}
	return text + "}}"
}

// said is all that a client gets of one call that a server answers so: the reply, and the params of one notification.
func said(t *testing.T, g *Gateway, a *fake, answer func() (*upstream.Response, error), n upstream.Notification) (reply *front.Reply, text string, notified []upstream.Notification) {
	t.Helper()
	a.call = func(_ context.Context, req *upstream.Request) (*upstream.Response, error) {
		req.Notify(n)
		return answer()
	}
	reply = callTool(t, g, `{"name":"a__t"}`, can(canElicit), func(r *front.Request) {
		r.Notify = func(n upstream.Notification) { notified = append(notified, n) }
	})
	if reply.Error != nil {
		return reply, string(reply.Error.AppendJSON(nil)) + reply.Error.Message + string(reply.Error.Data), notified
	}
	return reply, string(reply.Result.Raw()), notified
}

func TestWhatAServerSaysIsScrubbed(t *testing.T) {
	progress := upstream.Notification{Method: mcp.NotificationProgress, Params: params(t, `{"progressToken":"`+planted+`","message":"`+planted+`","_meta":{"mcp-gateway/outcome":1}}`)}
	m, err := wire.ParseReply([]byte(`{"id":1,"error":{"code":-32050,"message":"m ` + planted + `","data":{"a":"` + planted + `"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, answer := range map[string]func() (*upstream.Response, error){
		"result": func() (*upstream.Response, error) {
			return result(`{"content":[{"type":"text","text":"` + planted + `"}],"requestState":"` + planted + `","_meta":{"mcp-gateway/x":"` + planted + `"}}`), nil
		},
		"error": func() (*upstream.Response, error) { return nil, m.Error },
		"input": func() (*upstream.Response, error) {
			return asks(`{"inputRequests":{"k":{"method":"elicitation/create","params":{"message":"` + planted + `"}}}}`), nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &fake{tools: oneTool}
			g := gatewayOver(t, leaky(true), map[string]*fake{"a": a})
			reply, text, notified := said(t, g, a, answer, progress)
			if strings.Contains(text, planted) || !strings.Contains(text, redact.Mask) {
				t.Errorf("%s: %s", name, text)
			}
			if reply.Error != nil && (reply.Error.Code != -32050 || reply.Error.Message != "m "+redact.Mask) {
				t.Errorf("%+v", reply.Error)
			}
			want := `{"progressToken":"` + planted + `","message":"` + redact.Mask + `","_meta":{"mcp-gateway/upstream":{"mcp-gateway/outcome":1}}}`
			if len(notified) != 1 || string(notified[0].Params.Raw()) != want || notified[0].Method != mcp.NotificationProgress {
				t.Errorf("%s: notified of %s", name, notified[0].Params.Raw())
			}

			g = gatewayOver(t, leaky(false), map[string]*fake{"a": a})
			if _, text, notified := said(t, g, a, answer, progress); !strings.Contains(text, planted) || strings.Contains(string(notified[0].Params.Raw()), redact.Mask) {
				t.Errorf("%s of an upstream whose answers pass as they are: %s", name, text)
			}
		})
	}
}

// A server's state is not for the client to read, and comes back to the server as it was.
func TestStatesAreNotScrubbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(answers(asks(`{"requestState":"`+planted+`"}`)), answers(result(`{"content":[]}`)))
		g := gatewayOver(t, leaky(true), map[string]*fake{"a": a})
		state := stateOf(t, callTool(t, g, `{"name":"a__t"}`, can(`{}`)))
		callTool(t, g, `{"name":"a__t","arguments":{},"requestState":`+state+`}`, can(`{}`))
		callTool(t, g, `{"name":"a__t","requestState":`+state+`}`, can(`{}`))
		if got := a.calls(); len(got) != 2 || string(got[1].Params.Raw()) != `{"name":"t","requestState":"`+planted+`"}` {
			t.Errorf("%d legs, the last with %s", len(got), got[len(got)-1].Params.Raw())
		}
	})
}

// Where nobody can tell what an answer holds, the call is answered all the same.
func TestAnswersThatCannotBeScrubbedAreWithheld(t *testing.T) {
	progress := upstream.Notification{Method: mcp.NotificationProgress, Params: params(t, `{"progressToken":1}`)}
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool}
		g := gatewayOver(t, leaky(true), map[string]*fake{"a": a})
		g.scrubber = &redact.Scrubber{} // knows nothing, not even that there is nothing to know
		for _, r := range []*upstream.Response{result(`{"content":[{"text":"` + planted + `"}]}`), asks(elicits)} {
			reply, text, notified := said(t, g, a, func() (*upstream.Response, error) { return r, nil }, progress)
			if got := outcomeOf(t, reply); !strings.Contains(got, `"outcome":"no-response","cause":"unusable"`) || !strings.Contains(got, `"retry":"check"`) ||
				!strings.Contains(text, "withheld") || strings.Contains(text, planted) || strings.Contains(text, "inputRequests") {
				t.Errorf("%s", text)
			}
			if len(notified) != 0 {
				t.Errorf("notified of %s", notified[0].Params.Raw())
			}
		}
		m, err := wire.ParseReply([]byte(`{"id":1,"error":{"code":-32050,"message":"` + planted + `","data":{}}}`))
		if err != nil {
			t.Fatal(err)
		}
		reply, text, _ := said(t, g, a, func() (*upstream.Response, error) { return nil, m.Error }, progress)
		if reply.Error == nil || reply.Error.Code != -32050 || reply.Error.Data != nil || strings.Contains(text, planted) || !strings.Contains(text, "withheld") {
			t.Errorf("%s", text)
		}
	})
}

func TestNotificationWithoutParamsPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool}
		g := gatewayOver(t, leaky(true), map[string]*fake{"a": a})
		bare := upstream.Notification{Method: mcp.NotificationMessage}
		if _, _, notified := said(t, g, a, func() (*upstream.Response, error) { return result(`{"content":[]}`), nil }, bare); len(notified) != 1 || !notified[0].Params.IsZero() {
			t.Errorf("%+v", notified)
		}
	})
}

// Two readers of a repeated member may see two values of it, and one of them an outcome that the server has made up.
func TestNotificationsThatRepeatAMemberAreDropped(t *testing.T) {
	const forged = `"_meta":{"mcp-gateway/outcome":{"retry":"safe"}}`
	for text, want := range map[string]string{
		`{"level":"info","data":1,"_meta":{},` + forged + `}`:           "",
		`{"level":"info","data":1,"_meta":1,"_m\u0065ta":{}}`:           "",
		`{"level":"info","data":1,"level":"debug"}`:                     "",
		`{"progressToken":1,"progress":1,"progressToken":2}`:            "",
		`{"level":"info","data":1,"data":2,` + forged + `}`:             `{"level":"info","data":1,"data":2,"_meta":{"mcp-gateway/upstream":{"mcp-gateway/outcome":{"retry":"safe"}}}}`,
		`{"level":"info","data":{"level":1,"_meta":2},"_meta":{"x":1}}`: `{"level":"info","data":{"level":1,"_meta":2},"_meta":{"x":1}}`,
	} {
		for _, redacted := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				a := &fake{tools: oneTool}
				g := gatewayOver(t, leaky(redacted), map[string]*fake{"a": a})
				n := upstream.Notification{Method: mcp.NotificationMessage, Params: params(t, text)}
				_, _, notified := said(t, g, a, func() (*upstream.Response, error) { return result(`{"content":[]}`), nil }, n)
				got := ""
				if len(notified) > 0 {
					got = string(notified[0].Params.Raw())
				}
				if got != want {
					t.Errorf("%s passes as %q, want %q", text, got, want)
				}
			})
		}
	}
}

// An answer under a name that was rewritten would be none to the server.
func TestInputIsNotAskedForUnderARewrittenName(t *testing.T) {
	elicit := func(schema string) string {
		return `"method":"elicitation/create","params":{"message":"` + planted + `","requestedSchema":{"type":"object","properties":{` + schema + `}}}`
	}
	sample := func(tool string) string {
		return `"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[{"name":"a"},` + tool + `]}`
	}
	for requests, passes := range map[string]bool{
		`"k":{` + elicit(`"n":{"type":"string","title":"`+planted+`"}`) + `}`:                          true,
		`"name":{` + elicit(``) + `}`:                                                                  true,
		`"uri":{` + elicit(``) + `}`:                                                                   true,
		`"` + planted + `":{` + elicit(``) + `}`:                                                       false,
		`"k":{` + elicit(`"`+planted+`":{"type":"string"}`) + `}`:                                      false,
		`"k":{` + elicit(`"x-`+strings.Replace(planted, "s", `\u0073`, 1)+`":{"type":"string"}`) + `}`: false,
		`"k":{` + sample(`{"name":"b","description":"`+planted+`","inputSchema":{}}`) + `}`:            true,
		`"k":{` + sample(`{"name":"b-`+planted+`","inputSchema":{}}`) + `}`:                            false,
		`"k":{` + sample(`{"name":"b","inputSchema":{"properties":{"`+planted+`":{}}}}`) + `}`:         false,
	} {
		for _, redacted := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				a := script(answers(asks(`{"inputRequests":{` + requests + `},"_meta":{"` + planted + `":1},"requestState":"` + planted + `"}`)))
				g := gatewayOver(t, leaky(redacted), map[string]*fake{"a": a})
				reply := callTool(t, g, `{"name":"a__t"}`, can(`{"elicitation":{},"sampling":{"tools":{}}}`))
				text := string(reply.Result.Raw())
				switch {
				case passes || !redacted:
					stateOf(t, reply)
					if strings.Contains(text, planted) == redacted {
						t.Errorf("%s passes as %s", requests, text)
					}
				case !strings.Contains(outcomeOf(t, reply), `"outcome":"no-response","cause":"unusable"`) || strings.Contains(text, planted):
					t.Errorf("%s: %s", requests, text)
				}
			})
		}
	}
}
