package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// A client is never asked for what it has not declared on this request.
func TestOnlyWhatIsDeclaredIsAsked(t *testing.T) {
	const (
		form      = `{"method":"elicitation/create","params":{"message":"?"}}`
		namedForm = `{"method":"elicitation/create","params":{"mode":"form"}}`
		url       = `{"method":"elicitation/create","params":{"mode":"url"}}`
		fax       = `{"method":"elicitation/create","params":{"mode":"fax"}}`
		noMode    = `{"method":"elicitation/create","params":{"mode":null}}`
		sample    = `{"method":"sampling/createMessage","params":{"messages":[]}}`
		tools     = `{"method":"sampling/createMessage","params":{"tools":[]}}`
		choice    = `{"method":"sampling/createMessage","params":{"toolChoice":{}}}`
		context   = `{"method":"sampling/createMessage","params":{"includeContext":"thisServer"}}`
		noContext = `{"method":"sampling/createMessage","params":{"includeContext":"none"}}`
		roots     = `{"method":"roots/list"}`
		other     = `{"method":"ping"}`
	)
	for _, tt := range []struct {
		declared, asked string
		relayed         bool
	}{
		{`{"elicitation":{}}`, form, true},
		{`{"elicitation":{}}`, namedForm, true},
		{`{"elicitation":{}}`, url, false},
		{`{"elicitation":{"url":{}}}`, url, true},
		{`{"elicitation":{"url":{}}}`, form, false},
		{`{"elicitation":{"url":{}}}`, namedForm, false},
		{`{"elicitation":{"url":{},"form":{}}}`, form, true},
		{`{"elicitation":{"url":{},"form":{}}}`, fax, false},
		{`{"elicitation":{"url":{},"form":{}}}`, noMode, false},
		{`{"elicitation":null}`, form, false},
		{`{"sampling":{}}`, form, false},
		{`{"sampling":{}}`, sample, true},
		{`{"sampling":{}}`, noContext, true},
		{`{"sampling":{}}`, tools, false},
		{`{"sampling":{}}`, choice, false},
		{`{"sampling":{"context":{}}}`, tools, false},
		{`{"sampling":{"tools":{}}}`, tools, true},
		{`{"sampling":{"tools":{}}}`, choice, true},
		{`{"sampling":{"tools":{}}}`, context, false},
		{`{"sampling":{"context":{}}}`, context, true},
		{`{"roots":{}}`, roots, true},
		{`{}`, roots, false},
		{`{}`, sample, false},
		{`{"elicitation":{},"sampling":{},"roots":{}}`, other, false},
		{`{"elicitation":{}}`, form + `,"l":` + roots, false}, // one of two
	} {
		synctest.Test(t, func(t *testing.T) {
			a := script(answers(asks(`{"resultType":"input_required","inputRequests":{"k":` + tt.asked + `}}`)))
			g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
			reply := callTool(t, g, `{"name":"a__t"}`, can(tt.declared))
			if tt.relayed {
				stateOf(t, reply)
				return
			}
			if got := outcomeOf(t, reply); !strings.Contains(got, `"outcome":"no-response","cause":"caller-cannot-continue"`) || strings.Contains(string(reply.Result.Raw()), "inputRequests") {
				t.Errorf("%s is asked %s: %s", tt.declared, tt.asked, reply.Result.Raw())
			}
		})
	}
}

// A client whose revision has no further rounds could not even make one that asks nobody.
func TestClientThatKnowsNoRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{tools: oneTool, call: func(context.Context, *upstream.Request) (*upstream.Response, error) { return asks(stateOnly), nil }}
		g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
		if got := outcomeOf(t, callTool(t, g, `{"name":"a__t"}`)); !strings.Contains(got, `"cause":"caller-cannot-continue"`) {
			t.Error(got)
		}
	})
}

func TestUnreadableInputRequired(t *testing.T) {
	const request = `{"method":"elicitation/create","params":{}}`
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":%s`, i, request)
		}
		return `{"inputRequests":{` + b.String()[1:] + `}}`
	}
	state := func(n int) string { return `{"requestState":"` + strings.Repeat("s", n-2) + `"}` }
	for _, tt := range []struct {
		text string
		good bool
	}{
		{`{}`, false},
		{`{"requestState":"s"}`, true},
		{`{"inputRequests":{}}`, true},
		{`{"inputRequests":{"k":` + request + `}}`, true},
		{`{"requestState":7}`, false},
		{`{"requestState":null}`, false},
		{`{"requestState":"s","requestState":"t"}`, false},
		{`{"requestState":"s","inputRequests":[]}`, false},
		{`{"requestState":"s","inputRequests":null}`, false},
		{`{"inputRequests":{},"inputRequests":{"k":` + request + `}}`, false},
		{`{"inputRequests":{"k":` + request + `,"\u006b":` + request + `}}`, false},
		{`{"inputRequests":{"k":7}}`, false},
		{`{"inputRequests":{"k":{}}}`, false},
		{`{"inputRequests":{"k":{"method":7}}}`, false},
		{`{"inputRequests":{"k":{"method":"roots/list","method":"elicitation/create"}}}`, false},
		{`{"inputRequests":{"k":{"method":"elicitation/create","params":{},"params":{"mode":"url"}}}}`, false},
		{`{"inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","mode":"url"}}}}`, false},
		{`{"_meta":{},"_meta":{},"requestState":"s"}`, false},
		{many(maxInputRequests), true},
		{many(maxInputRequests + 1), false},
		{state(maxServerState), true},
		{state(maxServerState + 1), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := script(answers(asks(tt.text)))
			g := gatewayOver(t, modernOne, map[string]*fake{"a": a})
			reply := callTool(t, g, `{"name":"a__t"}`, can(`{"elicitation":{"form":{},"url":{}},"roots":{}}`))
			name := tt.text[:min(len(tt.text), 200)]
			if tt.good {
				if len(stateOf(t, reply)) > 2<<20 {
					t.Errorf("%s: the state is too large to come back", name)
				}
				return
			}
			if got := outcomeOf(t, reply); !strings.Contains(got, `"outcome":"no-response","cause":"unusable"`) {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}

// Of a client that has declared nothing, nothing is asked, whatever the server writes.
func FuzzInputRequired(f *testing.F) {
	for _, text := range []string{elicits, stateOnly, `{"inputRequests":{"k":{"method":"roots/list","params":null}}}`, `{"inputRequests":{"":{"method":"\u0000"}},"requestState":null}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := wire.ParseObject(text)
		if err != nil {
			return
		}
		in, err := readInputRequired(o)
		if err != nil {
			return
		}
		if in.state == nil && !o.Has("inputRequests") {
			t.Error("a result that asks for nothing is taken")
		}
		for _, r := range in.requests {
			if r.missing(wire.Object{}) == "" {
				t.Errorf("%s is asked of a client that has declared nothing", r.method)
			}
		}
	})
}
