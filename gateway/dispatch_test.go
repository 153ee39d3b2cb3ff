package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/gateway/config"
	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

// A fake is an upstream that a test writes.
type fake struct {
	state upstream.State // "" is live
	tools string         // what tools/list answers with; "" never lists
	call  func(ctx context.Context, req *upstream.Request) (*upstream.Response, error)

	mu  sync.Mutex
	got []*upstream.Request // of tools/call
}

func (f *fake) Start()       {}
func (f *fake) Close() error { return nil }

func (f *fake) Status() (upstream.Status, <-chan struct{}) {
	return upstream.Status{State: cmp.Or(f.state, upstream.Live), Session: 1, Revision: mcp.LegacyLatest}, nil
}

func (f *fake) Call(ctx context.Context, req *upstream.Request) (*upstream.Response, error) {
	f.mu.Lock()
	tools := f.tools
	f.mu.Unlock()
	if req.Method == mcp.MethodToolsList {
		if tools == "" {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return result(tools), nil
	}
	f.mu.Lock()
	f.got = append(f.got, req)
	f.mu.Unlock()
	if f.call == nil {
		return result(`{"content":[]}`), nil
	}
	return f.call(ctx, req)
}

func (f *fake) calls() []*upstream.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*upstream.Request(nil), f.got...)
}

func result(text string) *upstream.Response {
	o, err := wire.ParseObject([]byte(text))
	if err != nil {
		panic(err)
	}
	return &upstream.Response{Result: o, Type: mcp.ResultComplete, Revision: mcp.LegacyLatest}
}

// gatewayOver serves the configuration with the fakes in place of its upstreams, all listed that can be.
func gatewayOver(t *testing.T, text string, fakes map[string]*fake) *Gateway {
	t.Helper()
	cfg, _, err := config.Parse("test", []byte("state_dir: "+t.TempDir()+"\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	g, err := assemble(cfg, Options{Log: io.Discard, Status: io.Discard}, func(u config.Upstream, _ *slog.Logger, _ *redact.Scrubber) (engine, error) {
		return fakes[u.ID], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c := g.snapshot.Load().catalog
	c.Start()
	t.Cleanup(func() { c.Close(); _ = g.closeLog() })
	synctest.Wait()
	return g
}

func params(t *testing.T, text string) wire.Object {
	t.Helper()
	o, err := wire.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func callTool(t *testing.T, g *Gateway, text string, change ...func(*front.Request)) *front.Reply {
	t.Helper()
	p := params(t, text)
	name, _ := p.String("name")
	req := &front.Request{Method: mcp.MethodToolsCall, Params: p, Name: name, Received: time.Now()}
	for _, c := range change {
		c(req)
	}
	return g.dispatch(t.Context(), req)
}

const two = "upstreams: {a: {command: a, timeout: 30s}, b: {command: b, tools: {deny: ['secret*']}}}"

const oneTool = `{"tools":[{"name":"t"},{"name":"secret1"}]}`

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
		reply = callTool(t, g, `{"name":"a__t"}`, modernClient, func(r *front.Request) { r.Received = time.Now().Add(-29 * time.Second) })
		if got := outcomeOf(t, reply); !strings.Contains(got, `"cause":"deadline-unsent"`) {
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

func TestRefusedHeadersAreSentOnceMoreAfterAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool}
		refusal := &upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, HTTPStatus: 400, Err: upstream.ErrHeaderMismatch}
		a.call = func(context.Context, *upstream.Request) (*upstream.Response, error) {
			if len(a.calls()) == 1 {
				return nil, refusal
			}
			return result(`{"content":[]}`), nil
		}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		if reply := callTool(t, g, `{"name":"a__t"}`); reply.Error != nil || reply.Result.Has("isError") {
			t.Errorf("%+v", reply)
		}
		a.call = func(context.Context, *upstream.Request) (*upstream.Response, error) { return nil, refusal }
		a.mu.Lock()
		a.got = nil
		a.mu.Unlock()
		reply := callTool(t, g, `{"name":"a__t"}`)
		if got := outcomeOf(t, reply); !strings.Contains(got, `"cause":"hop-error"`) || len(a.calls()) != 2 {
			t.Errorf("after %d sends: %s", len(a.calls()), got)
		}
		a.call = func(_ context.Context, req *upstream.Request) (*upstream.Response, error) {
			req.Resend.Take() // for a token that was refused
			return nil, refusal
		}
		if callTool(t, g, `{"name":"a__t"}`); len(a.calls()) != 3 {
			t.Errorf("a call that had been sent twice was sent again")
		}
	})
}

func TestHeadersAreMadeOfTheFreshListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool}
		a.call = func(context.Context, *upstream.Request) (*upstream.Response, error) {
			if len(a.calls()) > 1 {
				return result(`{"content":[]}`), nil
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			a.tools = `{"tools":[{"name":"t","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]}`
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
		{&upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.ConnectionLost},
			`{"outcome":"no-response","cause":"connection-lost","upstream":"a","method":"tools/call","retry":"check"}`, "check before repeating"},
		{&upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.ClosedByGateway},
			`{"outcome":"no-response","cause":"closed","upstream":"a","method":"tools/call","retry":"check"}`, "when the gateway closed the connection"},
		{&upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, HTTPStatus: 200, Err: &wire.Error{Code: mcp.CodeUnsupportedVersion, Message: "hop"}},
			`{"outcome":"error-response","cause":"hop-error","upstream":"a","method":"tools/call","retry":"check","httpStatus":200}`, "check before repeating"},
		{&upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, HTTPStatus: 400, Err: upstream.ErrHeaderMismatch},
			`{"outcome":"error-response","cause":"hop-error","upstream":"a","method":"tools/call","retry":"no","httpStatus":400}`, "was not carried out"},
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

func TestNoTextOfAnUnsentCallIsSaidOfOneThatMayHaveRun(t *testing.T) {
	for cause, w := range wordsOf {
		f := &failure{Error: &upstream.Error{Outcome: upstream.NoResponse, Cause: cause}, upstream: "a", method: "m"}
		if got := f.words(); got.retry != retryCheck || strings.Contains(got.text, "nothing took effect") {
			t.Errorf("no-response, %s: %+v", cause, got)
		}
		if strings.Contains(w.text, "nothing took effect") && w.retry == retryCheck {
			t.Errorf("%s: says both that nothing ran and that it may have run", cause)
		}
	}
}

func TestResultThatSaysTwoThingsIsUnusable(t *testing.T) {
	for _, text := range []string{
		`{"_meta":{},"_meta":{"mcp-gateway/outcome":{"outcome":"not-sent","retry":"safe"}},"content":[]}`,
		`{"content":[],"resultType":"complete","result\u0054ype":"input_required"}`, `{"content":[],"isError":false,"isError":true}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &fake{tools: oneTool, call: func(context.Context, *upstream.Request) (*upstream.Response, error) { return result(text), nil }}
			g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
			if got := outcomeOf(t, callTool(t, g, `{"name":"a__t"}`)); !strings.Contains(got, `"outcome":"no-response","cause":"unusable"`) {
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
			`{"id":1,"error":{"code":1,"message":7,"x":1}}`:                                                            `{"code":1,"message":"The server answered with an error that says nothing about its reason.","x":1}`,
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

func TestOneDeadlineFromArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool, call: func(ctx context.Context, _ *upstream.Request) (*upstream.Response, error) {
			<-ctx.Done()
			return nil, &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Deadline, Err: context.Cause(ctx)}
		}}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		begin := time.Now()
		reply := callTool(t, g, `{"name":"a__t"}`, func(r *front.Request) { r.Received = begin.Add(-10 * time.Second) })
		if got := time.Since(begin); got != 20*time.Second {
			t.Errorf("ended after %v, want what was left of the 30 s", got)
		}
		if got := outcomeOf(t, reply); !strings.Contains(got, `"cause":"deadline"`) {
			t.Error(got)
		}
	})
}

func TestShutdownHasItsOwnCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool, call: func(ctx context.Context, _ *upstream.Request) (*upstream.Response, error) {
			<-ctx.Done()
			return nil, &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Canceled, Err: context.Cause(ctx)}
		}}
		g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(front.ErrShutdown) })
		reply := g.dispatch(ctx, &front.Request{Method: mcp.MethodToolsCall, Params: params(t, `{"name":"a__t"}`), Name: "a__t", Received: time.Now()})
		if got := outcomeOf(t, reply); !strings.Contains(got, `"outcome":"no-response","cause":"shutdown"`) {
			t.Error(got)
		}
	})
}

func TestListPages(t *testing.T) {
	var list strings.Builder
	list.WriteString(`{"tools":[`)
	for i := range 1500 {
		if i > 0 {
			list.WriteString(",")
		}
		list.WriteString(fmt.Sprintf(`{"name":"t%d"}`, i))
	}
	list.WriteString(`]}`)
	synctest.Test(t, func(t *testing.T) {
		fakeA := &fake{tools: list.String()}
		g := gatewayOver(t, two, map[string]*fake{"a": fakeA, "b": {tools: oneTool}})
		ask := func(caller, text string) *front.Reply {
			return g.dispatch(t.Context(), &front.Request{Method: mcp.MethodToolsList, Params: params(t, text), Caller: caller})
		}
		total, cursor := 0, `null`
		for pages := 1; ; pages++ {
			reply := ask("me", `{"cursor":`+cursor+`}`)
			if reply.Error != nil {
				t.Fatal(reply.Error)
			}
			raw, _ := reply.Result.Value("tools")
			tools, _ := wire.Elements(raw, 2000)
			total += len(tools)
			next, ok := reply.Result.Value("nextCursor")
			if !ok {
				if pages != 2 {
					t.Errorf("%d pages, want 2", pages)
				}
				break
			}
			cursor = string(next)
		}
		if total != 1501 {
			t.Errorf("%d tools, want 1501: all of a and the one of b that is not denied", total)
		}
		a := g.snapshot.Load().catalog
		fakeA.mu.Lock()
		fakeA.tools = strings.Replace(list.String(), `"t7"`, `"seven"`, 1)
		fakeA.mu.Unlock()
		<-time.After(5 * time.Second)
		a.Relist(t.Context(), "a")
		if reply := ask("me", `{"cursor":`+cursor+`}`); reply.Error == nil {
			t.Error("a cursor of a list that has changed is taken")
		}
		for caller, bad := range map[string]string{"other": cursor, "me": `"forged"`, "third": `7`, "fourth": `""`} {
			if reply := ask(caller, `{"cursor":`+bad+`}`); reply.Error == nil || reply.Error.Code != wire.CodeInvalidParams {
				t.Errorf("%s with cursor %s: %+v", caller, bad, reply)
			}
		}
		if reply := g.dispatch(t.Context(), &front.Request{Method: "prompts/list"}); reply.Error == nil || reply.Error.Code != wire.CodeMethodNotFound {
			t.Errorf("%+v", reply)
		}
	})
}
