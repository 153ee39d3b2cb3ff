package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// outcomeOf is the outcome object of a reply that must be a failure in design's form.
func outcomeOf(t *testing.T, reply *front.Reply) string {
	t.Helper()
	if reply.Error != nil || reply.Revision != mcp.Modern {
		t.Fatalf("%+v", reply)
	}
	if raw, _ := reply.Result.Value("isError"); string(raw) != "true" {
		t.Fatalf("isError is %s", raw)
	}
	meta, _ := reply.Result.Object("_meta")
	raw, ok := meta.Value(mcp.MetaOutcome)
	if !ok {
		t.Fatalf("no outcome in %s", reply.Result.Raw())
	}
	return string(raw)
}

func TestFailuresSayWhetherTheCallRan(t *testing.T) {
	for _, tt := range []struct {
		err        error
		want, text string
	}{
		{&upstream.Error{Outcome: upstream.NotSent, Cause: upstream.Unreachable, Err: errors.New("dial s3cr3t")},
			`{"outcome":"not-sent","cause":"unreachable","upstream":"a","method":"tools/call","retry":"safe"}`, "nothing took effect"},
		{&upstream.Error{Outcome: upstream.NotSent, Cause: upstream.GivenUp},
			`{"outcome":"not-sent","cause":"given-up","upstream":"a","method":"tools/call","retry":"no"}`, "whoever runs the gateway"},
		{&upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.Refused, HTTPStatus: 403},
			`{"outcome":"error-response","cause":"refused","upstream":"a","method":"tools/call","retry":"no","httpStatus":403}`, "refused the gateway's access"},
		{&upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.Refused, HTTPStatus: 404},
			`{"outcome":"error-response","cause":"refused","upstream":"a","method":"tools/call","retry":"safe","httpStatus":404}`, "ended its session"},
		{&upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.ConnectionLost},
			`{"outcome":"no-response","cause":"connection-lost","upstream":"a","method":"tools/call","retry":"check"}`, "check before repeating"},
		{&upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.ClosedByGateway},
			`{"outcome":"no-response","cause":"closed","upstream":"a","method":"tools/call","retry":"check"}`, "when the gateway closed the connection"},
		{&upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, HTTPStatus: 200, Err: &wire.Error{Code: mcp.CodeUnsupportedVersion, Message: "hop"}},
			`{"outcome":"error-response","cause":"hop-error","upstream":"a","method":"tools/call","retry":"check","httpStatus":200}`, "check before repeating"},
		{&upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, HTTPStatus: 400, Err: upstream.ErrHeaderMismatch},
			`{"outcome":"error-response","cause":"hop-error","upstream":"a","method":"tools/call","retry":"check","httpStatus":400}`, "check before repeating"},
		{errors.New("an engine that breaks its promise"),
			`{"outcome":"no-response","cause":"unusable","upstream":"a","method":"tools/call","retry":"check"}`, "check before repeating"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &fake{tools: oneTool, call: func(context.Context, *upstream.Request) (*upstream.Response, error) { return nil, tt.err }}
			g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
			reply := callTool(t, g, `{"name":"a__t"}`)
			if got := outcomeOf(t, reply); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			text := string(reply.Result.Raw())
			if !strings.Contains(text, tt.text) || strings.Contains(text, "s3cr3t") {
				t.Errorf("%v reads %s", tt.err, text)
			}
		})
	}
}

func TestUnusableResults(t *testing.T) {
	for text, good := range map[string]bool{
		`{"_meta":{},"_meta":{"mcp-gateway/outcome":{"outcome":"not-sent","retry":"safe"}},"content":[]}`: false,
		`{"content":[],"resultType":"complete","result\u0054ype":"input_required"}`:                       false,
		`{"content":[],"isError":false,"isError":true}`:                                                   false,
		`{"content":[],"structuredContent":{},"structuredContent":[]}`:                                    false,
		`{"content":{}}`:                 false,
		`{"content":"text"}`:             false,
		`{"content":null}`:               false,
		`{"content":[],"isError":"no"}`:  false,
		`{"content":[],"isError":0}`:     false,
		`{"content":[],"isError":{}}`:    false,
		`{"content":[],"isError":null}`:  true, // what a reader may put up with
		`{"content":[],"isError":true}`:  true,
		`{"content":[],"isError":false}`: true,
		`{"structuredContent":[1]}`:      true,
		`{"x":1,"x":2,"content":[7]}`:    true,
	} {
		synctest.Test(t, func(t *testing.T) {
			a := script(answers(result(text)))
			g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
			reply := callTool(t, g, `{"name":"a__t"}`)
			if good {
				if string(reply.Result.Raw()) != text {
					t.Errorf("%s passes as %s", text, reply.Result.Raw())
				}
				return
			}
			if got := outcomeOf(t, reply); !strings.Contains(got, `"outcome":"no-response","cause":"unusable"`) {
				t.Errorf("%s: %s", text, got)
			}
		})
	}
}

func TestResponsesThatAreNoEndOfTheCall(t *testing.T) {
	for kind, want := range map[string]string{mcp.ResultInputRequired: "caller-cannot-continue", "task": "unusable", "": "unusable"} {
		synctest.Test(t, func(t *testing.T) {
			a := &fake{tools: oneTool, call: func(context.Context, *upstream.Request) (*upstream.Response, error) {
				r := result(`{"content":[]}`)
				r.Type = kind
				return r, nil
			}}
			g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
			if got := outcomeOf(t, callTool(t, g, `{"name":"a__t"}`)); !strings.Contains(got, `"outcome":"no-response","cause":"`+want+`"`) {
				t.Errorf("%q: %s", kind, got)
			}
			if reply := callTool(t, g, `{"name":"a__t","requestState":"x"}`); reply.Error == nil || reply.Error.Code != wire.CodeInvalidParams {
				t.Errorf("a state that nobody gave: %+v", reply)
			}
		})
	}
}

func TestOwnErrorsAndResultsPassWhole(t *testing.T) {
	const stated = `{"code":-32050,"message":"no","data":{"a":12345678901234567890},"more":null}`
	synctest.Test(t, func(t *testing.T) {
		var response *upstream.Response
		var failure error
		a := &fake{tools: oneTool, call: func(context.Context, *upstream.Request) (*upstream.Response, error) { return response, failure }}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		pass := func(text string) string {
			m, err := wire.ParseReply([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			response, failure = nil, m.Error
			if m.Kind == wire.Result {
				response, failure = &upstream.Response{Result: m.Result, Type: mcp.ResultComplete}, nil
			}
			reply := callTool(t, g, `{"name":"a__t"}`)
			if reply.Error != nil {
				return string(reply.Error.AppendJSON(nil))
			}
			return string(reply.Result.Raw())
		}
		for in, want := range map[string]string{
			`{"id":1,"error":` + stated + `}`:                                                                          stated,
			`{"id":1,"error":{"code":-32022,"message":"mine"}}`:                                                        `{"code":-32022,"message":"mine"}`,
			`{"id":1,"error":{"code":1,"message":7,"x":1}}`:                                                            `{"code":1,"message":"The tool server \"a\" answered with an error that says nothing about its reason. The call may or may not have taken effect: check before repeating it.","x":1}`,
			`{"id":1,"error":{"code":1,"message":"m","data":{"mcp-gateway/outcome":1,"b":2}}}`:                         `{"code":1,"message":"m","data":{"b":2,"mcp-gateway/upstream":{"mcp-gateway/outcome":1}}}`,
			`{"id":1,"error":{"code":-32050,"message":"m","mcp-gateway/outcome":{"retry":"safe"},"mcp-gateway\/x":2}}`: `{"code":-32050,"message":"m","mcp-gateway/upstream":{"mcp-gateway/outcome":{"retry":"safe"},"mcp-gateway/x":2}}`,
			`{"id":1,"result":{"isError":true,"content":[],"_meta":{"a":"\\"}}}`:                                       `{"isError":true,"content":[],"_meta":{"a":"\\"}}`,
			`{"id":1,"result":{"_meta":{"mcp-gateway\/outcome":{"retry":"safe"},"x":1.0}}}`:                            `{"_meta":{"x":1.0,"mcp-gateway/upstream":{"mcp-gateway/outcome":{"retry":"safe"}}}}`,
		} {
			if got := pass(in); got != want {
				t.Errorf("%s passes as %s, want %s", in, got, want)
			}
		}
	})
}

// Nothing that may have run is sent twice: whatever the engine reports, dispatch sends a call once, unless the server has proven that it
// compared its headers and did not begin.
func TestNothingIsSentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		sent := 0
		for how := range wordsOf {
			for _, status := range []int{0, 200, 400, 401, 404, 500} {
				a.call = func(context.Context, *upstream.Request) (*upstream.Response, error) {
					return nil, &upstream.Error{Outcome: how.Outcome, Cause: how.Cause, HTTPStatus: status, Err: &wire.Error{Code: mcp.CodeHeaderMismatch}}
				}
				callTool(t, g, `{"name":"a__t"}`)
				if sent++; len(a.calls()) != sent {
					t.Fatalf("%v with %d: sent %d times", how, status, len(a.calls())-sent+1)
				}
			}
		}
	})
}
