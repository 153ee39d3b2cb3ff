package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
)

// callLines are the lines of a log that tell of calls.
func callLines(t *testing.T, log []byte) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range bytes.Lines(log) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if fields["request"] != nil {
			lines = append(lines, fields)
		}
	}
	return lines
}

func TestEachFailureIsOneLineOnceTheClientHasItsAnswer(t *testing.T) {
	stated := func(text string) error {
		m, err := wire.ParseReply([]byte(`{"id":1,"error":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return m.Error
	}
	for _, tt := range []struct {
		name string
		err  error
		want map[string]any
	}{
		{"failure", &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.HTTPError, HTTPStatus: 502, Err: errors.New("bad gateway, Bearer abcdefgh12345678")},
			map[string]any{"level": "WARN", "outcome": "no-response", "cause": "http-error", "httpStatus": 502.0, "code": nil, "error": "bad gateway, Bearer [redacted]"}},
		{"hop error", &upstream.Error{Outcome: upstream.ErrorResponse, Cause: upstream.HopError, HTTPStatus: 400, Err: stated(`{"code":-32022,"message":"m"}`)},
			map[string]any{"level": "WARN", "outcome": "error-response", "cause": "hop-error", "httpStatus": 400.0, "code": -32022.0}},
		{"the server's own", stated(`{"code":-32050,"message":"m"}`),
			map[string]any{"level": "INFO", "outcome": "error-response", "cause": nil, "code": -32050.0}},
		{"one without a message", stated(`{"code":0,"message":""}`),
			map[string]any{"level": "WARN", "outcome": "error-response", "cause": "error-without-message"}},
		{"canceled", &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.Canceled},
			map[string]any{"level": "INFO", "outcome": "no-response", "cause": "canceled"}},
		{"canceled before", &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.CanceledUnsent},
			map[string]any{"level": "INFO", "outcome": "not-sent", "cause": "canceled-unsent"}},
		{"success", nil, map[string]any{"level": "DEBUG", "outcome": "ok", "cause": nil, "error": nil}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			a := &fake{tools: oneTool, call: func(context.Context, *upstream.Request) (*upstream.Response, error) {
				<-time.After(2 * time.Second)
				if tt.err != nil {
					return nil, tt.err
				}
				return result(`{"content":[]}`), nil
			}}
			g := loggedGateway(t, &log, "callers: {keys: {x: 'sha256:"+strings.Repeat("0", 64)+"'}}\nupstreams: {a: {command: a, env: {TOKEN: abcdefgh12345678}}}", map[string]*fake{"a": a})
			reply := callTool(t, g, `{"name":"a__t"}`, as("me"), func(r *front.Request) { r.ID, r.Received = "r1", r.Received.Add(-time.Second) })
			g.log.Info("answered", "request", "r1")
			<-time.After(time.Second)
			reply.After(front.Answer{Status: 200, Bytes: 77})
			if err := g.closeLog(); err != nil {
				t.Fatal(err)
			}
			lines := callLines(t, log.Bytes())
			if len(lines) != 2 || lines[0]["msg"] != "answered" {
				t.Fatalf("%s: %v", tt.name, lines)
			}
			for name, value := range map[string]any{
				"request": "r1", "method": "tools/call", "name": "a__t", "upstream": "a", "target": "t", "caller": "me",
				"status": 200.0, "bytes": 77.0, "duration": 3e9, "upstreamDuration": 2e9, // the time until the answer is written is the client's
			} {
				tt.want[name] = value
			}
			for name, value := range tt.want {
				if lines[1][name] != value {
					t.Errorf("%s: %s is %v, want %v", tt.name, name, lines[1][name], value)
				}
			}
		})
	}
}

func TestToolErrorIsRecordedAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a := script(answers(result(`{"content":[],"isError":true}`)), answers(result(`{"content":[],"isError":false}`)))
		g := loggedGateway(t, &log, two, map[string]*fake{"a": a, "b": {}})
		for range 2 {
			callTool(t, g, `{"name":"a__t"}`).After(front.Answer{})
		}
		if err := g.closeLog(); err != nil {
			t.Fatal(err)
		}
		lines := callLines(t, log.Bytes())
		if len(lines) != 2 || lines[0]["outcome"] != "tool-error" || lines[1]["outcome"] != "ok" {
			t.Errorf("%v", lines)
		}
	})
}

func TestForeignStateIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := loggedGateway(t, &log, two, map[string]*fake{"a": {tools: oneTool}, "b": {}})
		reply := callTool(t, g, `{"name":"a__t","requestState":"x"}`, as("me"), func(r *front.Request) { r.ID = "r1" })
		reply.After(front.Answer{})
		if err := g.closeLog(); err != nil {
			t.Fatal(err)
		}
		lines := callLines(t, log.Bytes())
		if len(lines) != 1 || lines[0]["caller"] != "me" || lines[0]["upstream"] != "a" || lines[0]["level"] != "WARN" {
			t.Errorf("%v", lines)
		}
	})
}

func TestCutOffCallsSayWhy(t *testing.T) {
	closed := &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.ClosedByGateway}
	unsent := &upstream.Error{Outcome: upstream.NotSent, Cause: upstream.ClosedByGateway}
	for _, tt := range []struct {
		name             string
		err              *upstream.Error // nil is that of the ended ctx
		sent             bool
		shutdown, reload bool
		want             string
	}{
		{"shutdown", nil, true, true, false, `"outcome":"no-response","cause":"shutdown"`},
		{"shutdown before it was sent", nil, false, true, false, `"outcome":"not-sent","cause":"closed"`},
		{"closed by the shutdown", closed, true, true, false, `"outcome":"no-response","cause":"shutdown"`},
		{"closed", closed, true, false, false, `"outcome":"no-response","cause":"closed"`},
		{"closed by a reload", closed, true, false, true, `"outcome":"no-response","cause":"reload"`},
		{"closed by a reload before it was sent", unsent, false, false, true, `"outcome":"not-sent","cause":"reload"`},
		{"closed before it was sent", unsent, false, false, false, `"outcome":"not-sent","cause":"closed"`},
		{"lost by itself in a shutdown", &upstream.Error{Outcome: upstream.NoResponse, Cause: upstream.ConnectionLost}, true, true, true, `"cause":"connection-lost"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cut := context.WithCancelCause(t.Context())
			a := &fake{tools: oneTool}
			g := gatewayOver(t, two, map[string]*fake{"a": a, "b": {}})
			a.call = func(ctx context.Context, _ *upstream.Request) (*upstream.Response, error) {
				if tt.reload {
					g.snapshot.Load().member("a").leaving.Store(true)
				}
				if tt.shutdown {
					cut(front.ErrShutdown)
				}
				if tt.err != nil {
					return nil, tt.err
				}
				<-ctx.Done()
				return nil, upstream.Ended(ctx, tt.sent, context.Cause(ctx))
			}
			reply := g.dispatch(ctx, &front.Request{Method: mcp.MethodToolsCall, Params: params(t, `{"name":"a__t"}`), Name: "a__t", Received: time.Now()})
			if got := outcomeOf(t, reply); !strings.Contains(got, tt.want) {
				t.Errorf("%s: %s", tt.name, got)
			}
			cut(nil)
		})
	}
}
