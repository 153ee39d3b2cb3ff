package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

func TestStateOpensOnlyForItsCall(t *testing.T) {
	const config = `upstreams: {a: {command: a, protocol: modern}, b: {command: a, protocol: modern}}`
	const arguments = `"arguments":{"b":"é","a":{"n":1.0}}`
	synctest.Test(t, func(t *testing.T) {
		ask := func(context.Context, *upstream.Request) (*upstream.Response, error) { return asks(stateOnly), nil }
		fakes := map[string]*fake{"a": {tools: `{"tools":[{"name":"t"},{"name":"u"}]}`, call: ask}, "b": {tools: oneTool, call: ask}}
		g := gatewayOver(t, config, fakes)
		state := stateOf(t, callTool(t, g, `{"name":"a__t",`+arguments+`}`, can(`{}`), as("me")))
		other := stateOf(t, callTool(t, g, `{"name":"a__t",`+arguments+`}`, can(`{}`), as("you")))
		token := strings.Trim(state, `"`)
		good := `{"name":"a__t",` + arguments + `,"requestState":` + state + `}`
		binding, text := bindingOf(t, g, good), sealed{expires: time.Now().Add(time.Hour), issued: time.Now()}.text()
		for name, tt := range map[string]struct{ caller, text string }{
			"another caller":    {"you", good},
			"another's state":   {"me", strings.Replace(good, state, other, 1)},
			"no caller":         {"", good},
			"another tool":      {"me", strings.Replace(good, "a__t", "a__u", 1)},
			"another server":    {"me", strings.Replace(good, "a__t", "b__t", 1)},
			"another argument":  {"me", strings.Replace(good, "1.0", "1.5", 1)},
			"one argument less": {"me", strings.Replace(good, `"b":"é",`, ``, 1)},
			"one member more":   {"me", strings.Replace(good, `{"name"`, `{"x":1,"name"`, 1)},
			"changed":           {"me", strings.Replace(good, token[len(token)-9:len(token)-5], "AAAA", 1)},
			"cut":               {"me", strings.Replace(good, token, token[:len(token)-1], 1)},
			"empty":             {"me", strings.Replace(good, token, "", 1)},
			"the server's own":  {"me", strings.Replace(good, token, "s", 1)},
			"no string":         {"me", strings.Replace(good, state, "7", 1)},
			"null":              {"me", strings.Replace(good, state, "null", 1)},
			"a cursor":          {"me", strings.Replace(good, token, g.sealCursor(1, "me", make([]byte, 32)), 1)},
			"another layout":    {"me", strings.Replace(good, token, g.ring.Seal(purposeState, append([]byte{sealedLayout + 1}, text[1:]...), binding), 1)},
			"a shorter one":     {"me", strings.Replace(good, token, g.ring.Seal(purposeState, text[:sealedHead-1], binding), 1)},
			"none":              {"me", strings.Replace(good, token, g.ring.Seal(purposeState, nil, binding), 1)},
		} {
			sent := len(fakes["a"].calls()) + len(fakes["b"].calls())
			reply := callTool(t, g, tt.text, can(`{}`), as(tt.caller))
			if reply.Error == nil || reply.Error.Code != wire.CodeInvalidParams || reply.Error.Data != nil || reply.Error.Message != foreignState {
				t.Errorf("%s: %+v", name, reply)
			}
			if len(fakes["a"].calls())+len(fakes["b"].calls()) != sent {
				t.Errorf("%s: sent", name)
			}
		}
		for name, text := range map[string]string{
			"as it was":      good,
			"written anew":   `{"requestState":` + state + `,"arguments":{"a":{"n":10e-1},"b":"\u00e9"},"name":"a__t"}`,
			"with responses": strings.Replace(good, `{"name"`, `{"inputResponses":{},"_meta":{"progressToken":1},"name"`, 1),
		} {
			stateOf(t, callTool(t, g, text, can(`{}`), as("me")))
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
}

// bindingOf is what the state of that call by "me" is bound to.
func bindingOf(t *testing.T, g *Gateway, text string, change ...func(*front.Request)) []byte {
	t.Helper()
	route, target := g.snapshot.Load().route("a__t")
	req := &front.Request{Caller: "me", Method: mcp.MethodToolsCall, Params: params(t, text)}
	for _, c := range change {
		c(req)
	}
	binding, err := (&toolCall{route: route, sent: upstream.Request{Target: target}, req: req}).binding()
	if err != nil {
		t.Fatal(err)
	}
	return binding
}

// What no client can send yet is bound all the same.
func TestStateIsBoundToTheMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gatewayOver(t, modernOne, map[string]*fake{"a": {tools: oneTool}})
		other := bindingOf(t, g, `{"name":"a__t"}`, func(r *front.Request) { r.Method = mcp.MethodPromptsGet })
		if bytes.Equal(other, bindingOf(t, g, `{"name":"a__t"}`)) {
			t.Error("two methods have one binding")
		}
	})
}

func TestStateOutlivesReplicasAndRotationAndNoRedirect(t *testing.T) {
	key := func(b byte) string {
		return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(b)), 32)))
	}
	config := func(upstream string, keys ...string) string {
		return fmt.Sprintf("seal: {keys: ['%s']}\nupstreams: {a: {%s, protocol: modern}}", strings.Join(keys, "', '"), upstream)
	}
	const command = "command: a, args: [x, y]"
	for _, tt := range []struct {
		name, before, after string
		good                bool
	}{
		{"another replica", config(command, key('1')), config(command, key('1')), true},
		{"a key has been added", config(command, key('1')), config(command, key('1'), key('2')), true},
		{"and moved first", config(command, key('1'), key('2')), config(command, key('2'), key('1')), true},
		{"and before it, a replica that has moved it", config(command, key('2'), key('1')), config(command, key('1'), key('2')), true},
		{"the key has gone", config(command, key('1')), config(command, key('2')), false},
		{"another command", config(command, key('1')), config("command: b, args: [x, y]", key('1')), false},
		{"other arguments", config(command, key('1')), config("command: a, args: [xy]", key('1')), false},
		{"another kind", config("url: 'http://h/a'", key('1')), config("command: 'http://h/a'", key('1')), false},
		{"another url", config("url: 'http://h/a'", key('1')), config("url: 'http://h/b'", key('1')), false},
		{"another prefix, with which the name is another tool's", config(command, key('1')), config(command+", prefix: a_", key('1')), false},
		{"another credential", config("url: 'http://127.0.0.1/a'", key('1')), config("url: 'http://127.0.0.1/a', credential: {bearer: abcdefgh12345678}", key('1')), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := script(answers(asks(stateOnly)), answers(result(`{"content":[]}`)))
			state := stateOf(t, callTool(t, gatewayOver(t, tt.before, map[string]*fake{"a": a}), `{"name":"a__t"}`, can(`{}`)))
			reply := callTool(t, gatewayOver(t, tt.after, map[string]*fake{"a": a}), `{"name":"a__t","requestState":`+state+`}`, can(`{}`))
			if (reply.Error == nil) != tt.good || !tt.good && reply.Error.Message != foreignState {
				t.Errorf("%s: %+v", tt.name, reply)
			}
		})
	}
}

func TestFieldsDoNotRunTogether(t *testing.T) {
	one := appendField(nil, "a"+strings.Repeat("\x00", 8)+"b")
	if two := appendField(appendField(nil, "a"), "b"); bytes.Equal(one, two) {
		t.Error("one field and two have the same text")
	}
}
