package gateway

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
)

const (
	modernOne = "upstreams: {a: {command: a, protocol: modern, timeout: 600ms, input_timeout: 5s, rounds: 5}}"
	stateOnly = `{"resultType":"input_required","requestState":"s"}`
	elicits   = `{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?"}}},"requestState":"s"}`
)

// asks is a result that asks for another round.
func asks(text string) *upstream.Response {
	r := result(text)
	r.Type, r.Revision = mcp.ResultInputRequired, mcp.Modern
	return r
}

// script is a fake whose calls are answered by steps, one after another. A step that gives nothing hangs until its call ends.
func script(steps ...func() *upstream.Response) *fake {
	f := &fake{tools: oneTool}
	f.call = func(ctx context.Context, _ *upstream.Request) (*upstream.Response, error) {
		if n := len(f.calls()); n <= len(steps) {
			if r := steps[n-1](); r != nil {
				return r, nil
			}
		}
		<-ctx.Done()
		return nil, upstream.Ended(ctx, true, context.Cause(ctx))
	}
	return f
}

func answers(r *upstream.Response) func() *upstream.Response {
	return func() *upstream.Response { return r }
}

// after answers when d has passed.
func after(d time.Duration, r *upstream.Response) func() *upstream.Response {
	return func() *upstream.Response { <-time.After(d); return r }
}

func can(capabilities string) func(*front.Request) {
	return func(r *front.Request) { r.Client.Capabilities = []byte(capabilities) }
}

func as(caller string) func(*front.Request) { return func(r *front.Request) { r.Caller = caller } }

const canElicit = `{"elicitation":{}}`

// stateOf is the state of a reply that must ask for another round, as JSON text.
func stateOf(t *testing.T, reply *front.Reply) string {
	t.Helper()
	if reply.Error != nil || reply.Type != mcp.ResultInputRequired || reply.Revision != mcp.Modern {
		t.Fatalf("%+v", reply)
	}
	raw, ok := reply.Result.Value("requestState")
	if !ok {
		t.Fatalf("no state in %s", reply.Result.Raw())
	}
	return string(raw)
}

func TestRoundsAreRelayed(t *testing.T) {
	for _, state := range []string{``, `,"requestState":""`, `,"requestState":"a\/b\ud83d\u0000é"`} {
		synctest.Test(t, func(t *testing.T) {
			const requests = `"inputRequests":{ "k\u0031":{"params":{"message":"?","requestedSchema":{"n":12345678901234567890}},"method":"elicitation/create"}}`
			a := script(answers(asks(`{`+requests+`,"resultType":"input_required","_meta":{"x":1.0,"mcp-gateway/outcome":{}}`+state+`}`)), answers(result(`{"content":[]}`)))
			g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
			reply := callTool(t, g, `{"name":"a__t","arguments":{"n":1}}`, can(canElicit))
			sealed := stateOf(t, reply)
			text := string(reply.Result.Raw())
			if !strings.HasPrefix(text, `{`+requests+`,"resultType":"input_required","_meta":{"x":1.0,"mcp-gateway/upstream":{"mcp-gateway/outcome":{}}}`) || strings.Contains(sealed, `a\/b`) {
				t.Errorf("the client is asked %s", text)
			}
			const responses = `"inputResponses":{"k1":{"action":"accept","content":{"n":12345678901234567890}}}`
			reply = callTool(t, g, `{"name":"a__t",`+responses+`,"requestState":`+sealed+`,"arguments":{"n":1}}`, can(canElicit))
			if reply.Error != nil || string(reply.Result.Raw()) != `{"content":[]}` {
				t.Fatalf("%+v", reply)
			}
			if got, want := string(a.calls()[1].Params.Raw()), `{"name":"t",`+responses+state+`,"arguments":{"n":1}}`; got != want {
				t.Errorf("sent %s, want %s", got, want)
			}
		})
	}
}

// A leg that takes 100, 380, 450 or 550 ms of the 600 and then asks for another leaves the next one what is left, and no more.
func TestPacing(t *testing.T) {
	const timeout = 600 * time.Millisecond
	for _, first := range []time.Duration{100, 380, 450, 550} {
		first *= time.Millisecond
		for _, pause := range []time.Duration{0, 40 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				a := script(after(first, asks(stateOnly)))
				g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
				began := time.Now()
				state := stateOf(t, callTool(t, g, `{"name":"a__t"}`, can(`{}`)))
				<-time.After(pause)
				reply := callTool(t, g, `{"name":"a__t","requestState":`+state+`}`, can(`{}`))
				if got := outcomeOf(t, reply); !strings.Contains(got, `"outcome":"no-response","cause":"deadline"`) || len(a.calls()) != 2 {
					t.Errorf("%v, %v: %s after %d legs", first, pause, got, len(a.calls()))
				}
				if took := time.Since(began); took != timeout {
					t.Errorf("%v, %v: the call ended after %v", first, pause, took)
				}
			})
		}
	}
	synctest.Test(t, func(t *testing.T) { // asked at 100, 380, 450 and 550 ms of one call
		a := script(after(100*time.Millisecond, asks(stateOnly)), after(280*time.Millisecond, asks(stateOnly)),
			after(70*time.Millisecond, asks(stateOnly)), after(100*time.Millisecond, asks(stateOnly)))
		g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
		began := time.Now()
		text := `{"name":"a__t"}`
		for range 4 {
			text = `{"name":"a__t","requestState":` + stateOf(t, callTool(t, g, text, can(`{}`))) + `}`
		}
		if got := outcomeOf(t, callTool(t, g, text, can(`{}`))); !strings.Contains(got, `"cause":"deadline"`) || time.Since(began) != timeout {
			t.Errorf("after %v: %s", time.Since(began), got)
		}
	})
}

// lateCase is a second round of a call: what the first took and asked for, how long the client took, what became of it.
type lateCase struct {
	leg, pause time.Duration
	asked      string
	cause      string // "" goes on
	left       time.Duration
}

func TestPauses(t *testing.T) {
	const ms = time.Millisecond
	roots := `{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}`
	for _, tt := range []lateCase{
		{100 * ms, 499 * ms, stateOnly, "", 1 * ms},
		{100 * ms, 500 * ms, stateOnly, "state-used-up", 0},
		{100 * ms, time.Hour, stateOnly, "state-expired", 0},
		{100 * ms, 499 * ms, roots, "", 1 * ms}, // nobody is asked
		{100 * ms, 500 * ms, roots, "state-used-up", 0},
		{100 * ms, 499 * ms, `{"inputRequests":{},"requestState":""}`, "", 1 * ms},
		{100 * ms, 500 * ms, `{"inputRequests":{},"requestState":""}`, "state-used-up", 0},
		{100 * ms, 5000 * ms, elicits, "", 500 * ms},
		{100 * ms, 5001 * ms, elicits, "state-expired", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := script(after(tt.leg, asks(tt.asked)))
			g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
			both := can(`{"elicitation":{},"roots":{}}`)
			state := stateOf(t, callTool(t, g, `{"name":"a__t"}`, both))
			<-time.After(tt.pause)
			began := time.Now()
			reply := callTool(t, g, `{"name":"a__t","requestState":`+state+`}`, both)
			want, legs := `"outcome":"no-response","cause":"`+tt.cause+`"`, 1
			if tt.cause == "" {
				want, legs = `"cause":"deadline`, 2
			}
			if got := outcomeOf(t, reply); !strings.Contains(got, want) || len(a.calls()) != legs {
				t.Errorf("%v after %s: %s, %d legs", tt.pause, tt.asked, got, len(a.calls()))
			}
			if took := time.Since(began); took != tt.left {
				t.Errorf("%v after %s: %v were left, want %v", tt.pause, tt.asked, took, tt.left)
			}
		})
	}
}

// A replica whose clock is ahead has sealed the state in the future: no pause is charged, and none given back.
func TestPauseIsNeverNegative(t *testing.T) {
	for _, person := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := gatewayOver(t, modernOne, map[string]*fake{"a": script()})
			began := time.Now()
			s := sealed{person: person, legs: 1, issued: began.Add(time.Hour), used: 100 * time.Millisecond, expires: began.Add(2 * time.Hour)}
			token := g.ring.Seal(purposeState, s.text(), bindingOf(t, g, `{"name":"a__t"}`))
			got := outcomeOf(t, callTool(t, g, `{"name":"a__t","requestState":"`+token+`"}`, can(`{}`), as("me")))
			if took := time.Since(began); !strings.Contains(got, `"cause":"deadline"`) || took != 500*time.Millisecond {
				t.Errorf("after %v: %s", took, got)
			}
		})
	}
}

func TestTheBudgetIsThatOfTheConfigurationAsItIs(t *testing.T) {
	keyed := "seal: {keys: ['" + base64.StdEncoding.EncodeToString(make([]byte, 32)) + "']}\nupstreams: {a: {command: a, protocol: modern, "
	for _, tt := range []struct{ before, after, asked, cause string }{
		{"timeout: 1m}}", "timeout: 1s}}", stateOnly, "state-used-up"},
		{"timeout: 1m}}", "timeout: 1s}}", elicits, "state-used-up"}, // used by the leg
		{"rounds: 2}}", "rounds: 1}}", elicits, "rounds-exhausted"},
		{"input_timeout: 1h}}", "input_timeout: 2s}}", elicits, "state-expired"},
		{"input_timeout: 1s, timeout: 3s}}", "input_timeout: 1h, timeout: 1h}}", elicits, "state-expired"}, // its life was fixed
		{"tools: {timeouts: {t: 1m}}}}", "tools: {timeouts: {x: 1h, t: 1s, '*': 1h}}}}", elicits, "state-used-up"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := script(after(2*time.Second, asks(tt.asked)))
			before := gatewayOver(t, keyed+tt.before, map[string]*fake{"a": a})
			state := stateOf(t, callTool(t, before, `{"name":"a__t"}`, can(canElicit)))
			<-time.After(5 * time.Second)
			now := gatewayOver(t, keyed+tt.after, map[string]*fake{"a": a})
			got := outcomeOf(t, callTool(t, now, `{"name":"a__t","requestState":`+state+`}`, can(canElicit)))
			if !strings.Contains(got, `"outcome":"no-response","cause":"`+tt.cause+`"`) || len(a.calls()) != 1 {
				t.Errorf("%s, then %s: %s", tt.before, tt.after, got)
			}
		})
	}
}

func TestRoundsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool, call: func(context.Context, *upstream.Request) (*upstream.Response, error) { return asks(stateOnly), nil }}
		g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
		text := `{"name":"a__t"}`
		for range 4 {
			text = `{"name":"a__t","requestState":` + stateOf(t, callTool(t, g, text, can(`{}`))) + `}`
		}
		if got := outcomeOf(t, callTool(t, g, text, can(`{}`))); !strings.Contains(got, `"cause":"rounds-exhausted"`) || len(a.calls()) != 5 {
			t.Errorf("%s after %d legs", got, len(a.calls()))
		}
	})
}

func TestDeadlineBetweenRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The answer and the deadline come at the same moment, and the answer is taken.
		a := script(after(time.Second, asks(elicits)))
		g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
		if got := outcomeOf(t, callTool(t, g, `{"name":"a__t"}`, can(canElicit))); !strings.Contains(got, `"outcome":"no-response","cause":"deadline-between-rounds"`) {
			t.Error(got)
		}
	})
}

// What would say of a first round that nothing ran says of another that this one did not.
func TestFailuresOfLaterRounds(t *testing.T) {
	for _, tt := range []struct {
		err   *upstream.Error
		cause string
	}{
		{&upstream.Error{Outcome: upstream.NotSent, Cause: upstream.QueueFull}, "queue-full"},
		{&upstream.Error{Outcome: upstream.NotSent, Cause: upstream.DeadlineUnsent}, "deadline-between-rounds"},
		{&upstream.Error{Outcome: upstream.NotSent, Cause: upstream.CanceledUnsent}, "canceled-unsent"},
		{&upstream.Error{Outcome: upstream.NotSent, Cause: upstream.Unreachable}, "round-not-sent"},
		{&upstream.Error{Outcome: upstream.NotSent, Cause: upstream.Reconnecting}, "round-not-sent"},
		{&upstream.Error{Outcome: upstream.NotSent, Cause: upstream.NoCredential}, "no-credential"},
		{&upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.Refused, HTTPStatus: 401}, "refused-later"},
		{&upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, HTTPStatus: 400, Err: upstream.ErrHeaderMismatch}, "hop-error"},
		{&upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.ConnectionLost}, "connection-lost"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &fake{tools: oneTool}
			a.call = func(context.Context, *upstream.Request) (*upstream.Response, error) {
				if len(a.calls()) == 1 {
					return asks(stateOnly), nil
				}
				return nil, tt.err
			}
			g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
			state := stateOf(t, callTool(t, g, `{"name":"a__t"}`, can(`{}`)))
			for _, text := range []string{`{"name":"a__t","requestState":` + state + `}`, `{"name":"a__t","inputResponses":{}}`} {
				if got := outcomeOf(t, callTool(t, g, text, can(`{}`))); !strings.Contains(got, `"outcome":"no-response","cause":"`+tt.cause+`"`) || !strings.Contains(got, `"retry":"check"`) {
					t.Errorf("%v on a later round: %s", tt.err, got)
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		a := script(answers(asks(stateOnly)))
		g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
		state := stateOf(t, callTool(t, g, `{"name":"a__t"}`, can(`{}`)))
		a.mu.Lock()
		a.tools = `{"tools":[]}`
		a.mu.Unlock()
		<-time.After(50 * time.Millisecond)
		g.snapshot.Load().catalog.Relist(t.Context(), "a")
		if got := outcomeOf(t, callTool(t, g, `{"name":"a__t","requestState":`+state+`}`, can(`{}`))); !strings.Contains(got, `"cause":"round-not-sent"`) || len(a.calls()) != 1 {
			t.Errorf("a tool that has gone between two rounds: %s", got)
		}
		if reply := callTool(t, g, `{"name":"a__t"}`); reply.Error == nil {
			t.Errorf("%+v", reply)
		}
	})
}

// Without a state, what the client brings is for the server to judge, with a deadline of its own.
func TestResponsesWithoutStateAreAFirstRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(answers(result(`{"content":[]}`)))
		g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
		reply := callTool(t, g, `{"name":"a__t","inputResponses":{"k":{"action":"accept"}}}`, can(`{}`))
		if reply.Error != nil || reply.Result.Has("isError") {
			t.Fatalf("%+v", reply)
		}
		if got := string(a.calls()[0].Params.Raw()); got != `{"name":"t","inputResponses":{"k":{"action":"accept"}}}` {
			t.Errorf("sent %s", got)
		}
		began := time.Now()
		if got := outcomeOf(t, callTool(t, g, `{"name":"a__t","inputResponses":{}}`, can(`{}`))); !strings.Contains(got, `"cause":"deadline"`) || time.Since(began) != 600*time.Millisecond {
			t.Errorf("after %v: %s", time.Since(began), got)
		}
	})
}
