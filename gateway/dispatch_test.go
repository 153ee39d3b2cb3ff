package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

func TestRoutesByPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{tools: oneTool}, &fake{tools: oneTool}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": b})
		reply := callTool(t, g, `{"arguments":{"n":12345678901234567890,"x":null},"name":"a__t","extra":1.0,"task":{}, "_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{},"traceparent":"00-x"}}`)
		if reply.Error != nil || string(reply.Result.Raw()) != `{"content":[]}` || reply.Revision != mcp.LegacyLatest {
			t.Fatalf("%+v", reply)
		}
		got := a.calls()
		if len(got) != 1 || len(b.calls()) != 0 {
			t.Fatalf("a was called %d times, b %d", len(got), len(b.calls()))
		}
		want := `{"arguments":{"n":12345678901234567890,"x":null},"name":"t","extra":1.0, "_meta":{"traceparent":"00-x"}}`
		if s := string(got[0].Params.Raw()); s != want || got[0].Target != "t" {
			t.Errorf("sent %s for %q, want %s", s, got[0].Target, want)
		}
		callTool(t, g, `{"name":"b__t","_meta":{"progressToken":1}}`)
		if s := string(b.calls()[0].Params.Raw()); s != `{"name":"t"}` {
			t.Errorf("sent %s, want no _meta where nothing is left of it", s)
		}
	})
}

func TestDeniedAndUnknownReadTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{tools: oneTool}, &fake{tools: oneTool}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": b})
		for _, name := range []string{"b__secret1", "b__secret2", "b__none", "none", "", "c__t", "B__t", "b__", "b_"} {
			reply := callTool(t, g, `{"name":`+string(wire.AppendString(nil, name))+`}`)
			if reply.Error == nil || reply.Error.Code != wire.CodeInvalidParams || reply.Error.Message != `unknown tool "`+name+`"` || reply.Error.Data != nil {
				t.Errorf("%q: %+v", name, reply.Error)
			}
		}
		if n := len(a.calls()) + len(b.calls()); n != 0 {
			t.Errorf("%d calls reached an upstream", n)
		}
	})
}

func TestUnlistedUpstreamIsCalledUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{}, &fake{}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": b})
		began := time.Now()
		if reply := callTool(t, g, `{"name":"a__anything"}`); reply.Error != nil || time.Since(began) != 0 {
			t.Errorf("after %v: %+v", time.Since(began), reply.Error)
		}
		if reply := callTool(t, g, `{"name":"b__secret1"}`); reply.Error == nil {
			t.Error("a denied tool of an upstream that has not listed was called")
		}
	})
}

func TestCallWaitsFiveSecondsForConnectAndListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{state: upstream.Connecting, call: func(ctx context.Context, _ *upstream.Request) (*upstream.Response, error) {
			t.Error("the upstream was called before it had listed")
			return result(`{}`), nil
		}}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		modernClient := func(r *front.Request) { r.Header = map[string][]string{} }
		began := time.Now()
		reply := callTool(t, g, `{"name":"a__t"}`, modernClient)
		if got := outcomeOf(t, reply); !strings.Contains(got, `"outcome":"not-sent","cause":"connecting"`) || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %s", time.Since(began), got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		p := params(t, `{"name":"a__t"}`)
		reply = g.dispatch(ctx, &front.Request{Method: mcp.MethodToolsCall, Params: p, Name: "a__t", Header: map[string][]string{}, Received: time.Now()})
		if got := outcomeOf(t, reply); !strings.Contains(got, `"cause":"canceled-unsent"`) {
			t.Error(got)
		}
		// The wait counts from the call's arrival, whatever has taken its time since.
		began = time.Now()
		reply = callTool(t, g, `{"name":"a__t"}`, modernClient, func(r *front.Request) { r.Received = began.Add(-3 * time.Second) })
		if got := outcomeOf(t, reply); !strings.Contains(got, `"cause":"connecting"`) || time.Since(began) != 2*time.Second {
			t.Errorf("after %v: %s", time.Since(began), got)
		}
		g = gatewayOver(t, "upstreams: {a: {command: a, timeout: 3s}}", map[string]*fake{"a": a})
		if got := outcomeOf(t, callTool(t, g, `{"name":"a__t"}`, modernClient)); !strings.Contains(got, `"cause":"deadline-unsent"`) {
			t.Error(got)
		}
	})
}

func TestHeaderParamsAreCheckedAndProduced(t *testing.T) {
	const list = `{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]}`
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{tools: list}, &fake{tools: list}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": b})
		header := func(values ...string) func(*front.Request) {
			return func(r *front.Request) {
				r.Header = map[string][]string{"Mcp-Param-Other": {"x"}}
				if values != nil {
					r.Header["Mcp-Param-Region"] = values
				}
			}
		}
		for _, bad := range []func(*front.Request){header(), header("us"), header("eu", "eu"), header("")} {
			reply := callTool(t, g, `{"name":"a__t","arguments":{"r":"eu"}}`, bad)
			if reply.Error == nil || reply.Error.Code != mcp.CodeHeaderMismatch {
				t.Errorf("%+v", reply.Error)
			}
		}
		if len(a.calls()) != 0 {
			t.Fatal("a call with wrong headers was sent")
		}
		callTool(t, g, `{"name":"a__t","arguments":{"r":"eu"}}`, header("eu"))
		callTool(t, g, `{"name":"a__t","arguments":{"r":"é"}}`) // a client whose revision has no such headers
		got := a.calls()
		if len(got) != 2 || got[0].Header.Get("Mcp-Param-Region") != "eu" || got[1].Header.Get("Mcp-Param-Region") != "=?base64?w6k=?=" {
			t.Errorf("%d calls, headers %v", len(got), got)
		}
	})
}

const (
	byRegion = `{"tools":[{"name":"t","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]}`
	byPlace  = `{"tools":[{"name":"t","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"Place"}}}}]}`
)

func (f *fake) lists(tools string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tools = tools
}

func TestRefusedHeadersAreSentOnceMoreAfterAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const call = `{"name":"a__t","arguments":{"r":"eu"}}`
		a := &fake{tools: oneTool}
		refusal := &upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, HTTPStatus: 400, Err: upstream.ErrHeaderMismatch}
		a.call = func(context.Context, *upstream.Request) (*upstream.Response, error) {
			if len(a.calls()) == 1 {
				a.lists(byRegion)
				return nil, refusal
			}
			return result(`{"content":[]}`), nil
		}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		if reply := callTool(t, g, call); reply.Error != nil || reply.Result.Has("isError") {
			t.Errorf("%+v", reply)
		}
		<-time.After(10 * time.Second) // until it may be listed anew
		a.call = func(context.Context, *upstream.Request) (*upstream.Response, error) {
			a.lists(byPlace)
			return nil, refusal
		}
		a.mu.Lock()
		a.got = nil
		a.mu.Unlock()
		reply := callTool(t, g, call)
		if got := outcomeOf(t, reply); !strings.Contains(got, `"cause":"hop-error"`) || !strings.Contains(got, `"retry":"no"`) || len(a.calls()) != 2 {
			t.Errorf("after %d sends: %s", len(a.calls()), got)
		}
		<-time.After(10 * time.Second)
		a.call = func(_ context.Context, req *upstream.Request) (*upstream.Response, error) {
			req.Resend.Take() // for a token that was refused
			a.lists(byRegion)
			return nil, refusal
		}
		if callTool(t, g, call); len(a.calls()) != 3 {
			t.Errorf("a call that had been sent twice was sent again")
		}
	})
}

// A server that refuses the very headers that its listing asks for proves nothing by that, and would refuse them again.
func TestRefusedHeadersThatAreRightAreNotSentAgain(t *testing.T) {
	for _, tools := range []string{oneTool, byRegion} {
		synctest.Test(t, func(t *testing.T) {
			a := &fake{tools: tools}
			stated := &wire.Error{Code: mcp.CodeHeaderMismatch, Message: "no"}
			refusal := &upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, HTTPStatus: 400, Err: fmt.Errorf("%w: %w", upstream.ErrHeaderMismatch, stated)}
			a.call = func(context.Context, *upstream.Request) (*upstream.Response, error) { return nil, refusal }
			var out bytes.Buffer
			g := loggedGateway(t, &out, two, map[string]*fake{"a": a, "b": {}})
			reply := callTool(t, g, `{"name":"a__t","arguments":{"r":"eu"}}`)
			const want = `{"outcome":"error-response","cause":"hop-error","upstream":"a","method":"tools/call","retry":"check","httpStatus":400}`
			if got := outcomeOf(t, reply); got != want || len(a.calls()) != 1 {
				t.Errorf("after %d sends: %s, want %s", len(a.calls()), got, want)
			}
			reply.After(front.Answer{})
			_ = g.closeLog()
			if !strings.Contains(out.String(), "-32020") {
				t.Errorf("the log does not say what the server stated: %s", &out)
			}
			if !errors.Is(refusal, upstream.ErrHeaderMismatch) {
				t.Error("the engine's own error was changed")
			}
		})
	}
}

func TestHeadersAreMadeOfTheFreshListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool}
		a.call = func(context.Context, *upstream.Request) (*upstream.Response, error) {
			if len(a.calls()) > 1 {
				return result(`{"content":[]}`), nil
			}
			a.lists(byRegion)
			return nil, &upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, HTTPStatus: 400, Err: upstream.ErrHeaderMismatch}
		}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		if reply := callTool(t, g, `{"name":"a__t","arguments":{"r":"eu"}}`); reply.Error != nil || reply.Result.Has("isError") {
			t.Fatalf("%+v", reply)
		}
		got := a.calls()
		if len(got) != 2 || got[1].Header.Get("Mcp-Param-Region") != "eu" {
			t.Errorf("%d calls, the last with %v", len(got), got[len(got)-1].Header)
		}
	})
}

// Only what is configured to cross does, with the Mcp-Param-* headers beside it, on both sends of a call.
func TestHeadersAreForwarded(t *testing.T) {
	const text = `upstreams: {a: {url: 'http://127.0.0.1/', forward_headers: [x-tenant, {name: X-User, required: true}]}, b: {url: 'http://127.0.0.2/'}}`
	const list = `{"tools":[{"name":"t"},{"name":"p","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]}`
	sent := func(header http.Header) func(*front.Request) {
		header["Authorization"], header["X-Other"] = []string{"Bearer mine"}, []string{"x"}
		return func(r *front.Request) { r.Sent = header }
	}
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{tools: list}, &fake{tools: list}
		g := gatewayOver(t, text, map[string]*fake{"a": a, "b": b})
		for _, tt := range []struct {
			call string
			sent http.Header
			want http.Header // nil is refused
		}{
			{`{"name":"a__t"}`, http.Header{"X-Tenant": {"1", "2"}, "X-User": {"u"}}, http.Header{"X-Tenant": {"1", "2"}, "X-User": {"u"}}},
			{`{"name":"a__t"}`, http.Header{"X-User": {"u"}}, http.Header{"X-User": {"u"}}},
			{`{"name":"a__t"}`, http.Header{"X-User": {"u"}, "X-Tenant": {""}}, http.Header{"X-User": {"u"}}},
			{`{"name":"a__p","arguments":{"r":"eu"}}`, http.Header{"X-User": {"u"}}, http.Header{"X-User": {"u"}, "Mcp-Param-Region": {"eu"}}},
			{`{"name":"a__t"}`, http.Header{"X-Tenant": {"1"}}, nil},
			{`{"name":"a__t"}`, http.Header{"X-Tenant": {"1"}, "X-User": {""}}, nil},
			{`{"name":"b__t"}`, http.Header{"X-User": {"u"}}, http.Header{}},
		} {
			before := len(a.calls()) + len(b.calls())
			reply := callTool(t, g, tt.call, sent(tt.sent))
			got := append(a.calls(), b.calls()...)
			if tt.want == nil {
				if reply.Error == nil || reply.Error.Code != wire.CodeInvalidParams || !strings.Contains(reply.Error.Message, "X-User") || len(got) != before {
					t.Errorf("%v: %+v", tt.sent, reply)
				}
				continue
			}
			if len(got) != before+1 {
				t.Fatalf("%v: %d calls, %+v", tt.sent, len(got)-before, reply)
			}
			header := a.last().Header
			if strings.Contains(tt.call, "b__") {
				header = b.last().Header
			}
			if len(header) != len(tt.want) || len(header) > 0 && !reflect.DeepEqual(header, tt.want) {
				t.Errorf("sent %v, want %v", header, tt.want)
			}
		}
		a.call = func(context.Context, *upstream.Request) (*upstream.Response, error) {
			a.lists(byRegion)
			return nil, &upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, Err: upstream.ErrHeaderMismatch}
		}
		callTool(t, g, `{"name":"a__t","arguments":{"r":"eu"}}`, sent(http.Header{"X-User": {"again"}}))
		if got := a.last().Header; got.Get("X-User") != "again" || got.Get("Mcp-Param-Region") != "eu" {
			t.Errorf("the second send has %v", got)
		}
	})
}

// The engine puts a token of its own in place of the client's, and who cannot be told of progress asks for none.
func TestProgressTokenStaysWhereSomebodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		const call = `{"name":"a__t","_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"info"}}`
		callTool(t, g, call, func(r *front.Request) { r.Notify = func(upstream.Notification) {} })
		if got := a.last(); string(got.Params.Raw()) != `{"name":"t","_meta":{"progressToken":"p"}}` || got.Notify == nil {
			t.Errorf("sent %s", got.Params.Raw())
		}
		callTool(t, g, call)
		if got := a.last(); string(got.Params.Raw()) != `{"name":"t"}` || got.Notify != nil {
			t.Errorf("sent %s", got.Params.Raw())
		}
	})
}

func TestClientIsToldToTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		var hold upstream.Hold
		callTool(t, g, `{"name":"a__t"}`, can(canElicit), func(r *front.Request) { r.Client.LogLevel, r.Hold = "info", &hold })
		if got := a.last(); string(got.Client.Capabilities) != canElicit || got.Client.LogLevel != "info" || got.Hold != &hold || got.Method != mcp.MethodToolsCall {
			t.Errorf("%+v", got)
		}
	})
}
