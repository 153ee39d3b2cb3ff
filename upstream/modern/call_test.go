package modern

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

func parse(t testing.TB, text string) wire.Object {
	t.Helper()
	o, err := wire.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestResultTypes(t *testing.T) {
	const list, tool = mcp.MethodToolsList, mcp.MethodToolsCall
	for _, test := range []struct {
		name, method, result, kind string
	}{
		{"complete", list, `{"resultType":"complete"}`, "complete"},
		{"escaped", list, `{"result\u0054ype":"c\u006fmplete"}`, "complete"},
		{"input required", tool, `{"resultType":"input_required","requestState":"s"}`, "input_required"},
		{"input required by a list", list, `{"resultType":"input_required"}`, ""},
		{"missing", tool, `{"content":[]}`, ""},
		{"null", tool, `{"resultType":null}`, ""},
		{"twice", tool, `{"resultType":"complete","resultType":"input_required"}`, ""},
		{"other case", tool, `{"resulttype":"complete"}`, ""},
		{"undefined", tool, `{"resultType":"task"}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := started(t, scripted(t, discovered, step{200, result(test.result), ""}).URL)
			upstreamtest.Await(t, u, upstream.Live)
			resp, err := u.Call(t.Context(), &upstream.Request{Method: test.method})
			if test.kind == "" {
				wantError(t, err, upstream.NoResponse, upstream.Unusable, 200)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if resp.Type != test.kind || string(resp.Result.Raw()) != test.result || resp.Revision != mcp.Modern {
				t.Errorf("response %+v with %s", resp, resp.Result.Raw())
			}
		})
	}
}

func TestServerErrors(t *testing.T) {
	const mismatch, version = `{"code":-32020,"message":"m"}`, `{"code":-32022,"message":"m","data":{"supported":["2099-01-01"]}}`
	const null = `{"jsonrpc":"2.0","id":null,"error":`
	for _, test := range []struct {
		name   string
		step   step
		own    int64 // code of the server's own error, else 0
		status int
		proof  bool
	}{
		{"method not found", step{404, failure(`{"code":-32601,"message":"m"}`), ""}, -32601, 0, false},
		{"missing capability", step{400, failure(`{"code":-32021,"message":"m"}`), ""}, -32021, 0, false},
		{"header mismatch", step{400, failure(mismatch), ""}, 0, 400, true},
		{"header mismatch without an id", step{400, null + mismatch + "}", ""}, 0, 400, true},
		{"header mismatch at 200", step{200, failure(mismatch), ""}, 0, 200, false},
		{"header mismatch in a stream", step{400, "data: " + failure(mismatch) + "\n\n", "text/event-stream"}, 0, 400, false},
		{"version", step{400, failure(version), ""}, 0, 400, false},
		{"version without an id", step{400, null + version + "}", ""}, 0, 400, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := started(t, scripted(t, discovered, test.step).URL)
			upstreamtest.Await(t, u, upstream.Live)
			_, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsCall, Target: "x"})
			stated, ok := errors.AsType[*wire.Error](err)
			if !ok {
				t.Fatalf("error is %v, want the server's in its chain", err)
			}
			if test.own != 0 {
				if err != error(stated) || stated.Code != test.own {
					t.Errorf("error is %v, want %d passed on", err, test.own)
				}
				return
			}
			wantError(t, err, upstream.ErrorResponse, upstream.HopError, test.status)
			if errors.Is(err, upstream.ErrHeaderMismatch) != test.proof {
				t.Errorf("%v proves that the call did not run: %v, want %v", err, !test.proof, test.proof)
			}
			if status, _ := u.Status(); status.State != upstream.Live {
				t.Errorf("one call's error made the upstream %s", status.State)
			}
		})
	}
}

func TestNotificationsOfACall(t *testing.T) {
	s := upstreamtest.HTTP(t, func(r *upstreamtest.Request) {
		meta, _ := r.Message.Params.Object("_meta")
		token, _ := meta.Value(mcp.MetaProgressToken)
		if r.Name() == "deaf" {
			if token != nil {
				t.Errorf("the server got the token %s of a call that does not listen", token)
			}
			r.Send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`)
			r.Result("")
			return
		}
		for _, token := range []string{`"t"`, string(token), "12345"} {
			r.Send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1,"x":1.0}}`)
		}
		r.Send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		r.Send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`)
		r.Result("")
	})
	u := started(t, s.URL)
	var got []string
	for _, test := range []struct {
		params string
		notify func(upstream.Notification)
	}{
		{`{"name":"listens","_meta":{"progressToken":"t"}}`, func(n upstream.Notification) { got = append(got, n.Method+string(n.Params.Raw())) }},
		{`{"name":"deaf","_meta":{"progressToken":"t"}}`, nil},
	} {
		req := &upstream.Request{Method: mcp.MethodToolsCall, Target: "x", Params: parse(t, test.params), Notify: test.notify}
		if _, err := u.Call(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`notifications/progress{"progressToken":"t","progress":1,"x":1.0}`, `notifications/message{"level":"info"}`}
	if !slices.Equal(got, want) {
		t.Errorf("notifications %q, want %q", got, want)
	}
}

// A server may answer any method as a stream, the first one too.
func TestEveryMethodMayBeAnsweredAsAStream(t *testing.T) {
	const kind = "text/event-stream; charset=utf-8"
	stream := func(text string) step { return step{200, ": hello\n\nid: 1\ndata:\n\ndata: " + text + "\n\n", kind} }
	u := started(t, scripted(t, stream(discovered.text), stream(result(`{"resultType":"complete","tools":[]}`)),
		stream(failure(`{"code":-32602,"message":"no"}`)), step{200, "event: ping\ndata: {}\n\n", kind}).URL)
	upstreamtest.Await(t, u, upstream.Live)
	resp, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsList})
	if err != nil || string(resp.Result.Raw()) != `{"resultType":"complete","tools":[]}` {
		t.Fatalf("%+v, %v", resp, err)
	}
	_, err = u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsCall, Target: "x"})
	if stated, ok := errors.AsType[*wire.Error](err); !ok || stated.Code != -32602 {
		t.Errorf("error is %v, want the server's", err)
	}
	_, err = u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsCall, Target: "x"})
	wantError(t, err, upstream.NoResponse, upstream.ConnectionLost, 200) // the stream had no reply
}

// What is not what its content type says fails the call in words, and says nothing of the server.
func TestContentTypesAreToldApart(t *testing.T) {
	text := result(`{"resultType":"complete"}`)
	for _, test := range []struct {
		name  string
		step  step
		cause upstream.Cause
		words string
	}{
		{"HTML", step{200, "<html>", "text/html"}, upstream.Unusable, `"text/html"`},
		{"JSON as text", step{200, text, "text/plain"}, upstream.Unusable, `"text/plain"`},
		{"HTML as JSON", step{200, "<html>", "application/json"}, upstream.Unusable, "cannot be used"},
		{"nothing as JSON", step{200, "", "application/json"}, upstream.Unusable, "0 bytes"},
		{"a stream as JSON", step{200, "data: " + text + "\n\n", "application/json"}, upstream.Unusable, "cannot be used"},
		{"JSON as a stream", step{200, text, "text/event-stream"}, upstream.Unusable, "no event stream"},
		{"HTML at 502", step{502, "<html>", "text/html"}, upstream.HTTPError, "HTTP 502"},
		{"nothing at 404", step{404, "", "text/plain"}, upstream.HTTPError, "HTTP 404"},
		{"a result at 500", step{500, text, ""}, upstream.HTTPError, "HTTP 500"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := started(t, scripted(t, discovered, test.step, step{200, text, ""}).URL)
			upstreamtest.Await(t, u, upstream.Live)
			_, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsCall, Target: "x"})
			wantError(t, err, upstream.NoResponse, test.cause, test.step.status)
			if !strings.Contains(err.Error(), test.words) {
				t.Errorf("%q does not say %q", err, test.words)
			}
			if _, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsCall, Target: "x"}); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	var h http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(mcp.HeaderMethod) == mcp.MethodDiscover { // of the upstream's own connect
			w.WriteHeader(http.StatusNotFound)
			return
		}
		h = r.Header
		body, _ := io.ReadAll(r.Body)
		m, err := wire.ParseRequest(body)
		if err != nil {
			t.Error(err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(wire.AppendResult(nil, m.ID, []byte("{}")))
	}))
	t.Cleanup(server.Close)
	at := started(t, server.URL, func(cfg *Config) {
		cfg.Header = http.Header{"x-team": {"a", "b"}, "Accept": {"text/plain"}, "Mcp-Param-Region": {"fixed"}, "mcp-name": {"fixed"}}
	})
	large := parse(t, `{"a":"`+strings.Repeat("x", 64<<10)+`"}`) // which net/http's transport carries
	for _, test := range []struct {
		method, target string
		header         http.Header
		want           map[string]string
	}{
		{mcp.MethodToolsCall, "echo", http.Header{"Mcp-Param-Zone": {""}}, map[string]string{"Mcp-Name": "echo", "Mcp-Param-Zone": ""}},
		{mcp.MethodToolsCall, "", nil, map[string]string{"Mcp-Name": ""}},
		{mcp.MethodToolsCall, "größe ", nil, map[string]string{"Mcp-Name": "=?base64?Z3LDtsOfZSA=?="}},
		{mcp.MethodResourcesRead, "file:///a", nil, map[string]string{"Mcp-Name": "file:///a"}},
		{mcp.MethodToolsList, "ignored", http.Header{"Mcp-Name": {"forged"}, "Mcp-Method": {"forged"}, "Mcp-Protocol-Version": {"forged"}}, nil},
	} {
		for _, params := range []wire.Object{{}, large} {
			req := &upstream.Request{Method: test.method, Target: test.target, Header: test.header, Params: params}
			if _, err := at.transport.(*overHTTP).ask(t.Context(), req); err != nil {
				t.Error(err)
				continue
			}
			h.Del("Content-Length")
			compareHeader(t, h, test.method, test.target, test.want)
		}
	}
}

func compareHeader(t *testing.T, h http.Header, method, target string, more map[string]string) {
	t.Helper()
	want := map[string]string{
		"Accept": "application/json, text/event-stream", "Accept-Encoding": "identity", "Content-Type": "application/json",
		"Mcp-Method": method, "Mcp-Protocol-Version": "2026-07-28", "User-Agent": "mcp-gateway/1.2.3", "Mcp-Param-Region": "fixed",
	}
	maps.Copy(want, more)
	if len(h["X-Team"]) != 2 || len(h) != len(want)+1 {
		t.Errorf("header of %s: %v", method, h)
	}
	for name, value := range want {
		if got, ok := h[name]; !ok || len(got) != 1 || got[0] != value {
			t.Errorf("%s of %s %q is %q, want %q", name, method, target, got, value)
		}
	}
}

func TestBodies(t *testing.T) {
	u := started(t, "http://127.0.0.1:1")
	const hop = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"mcp-gateway","version":"1.2.3"}`
	for _, test := range []struct{ name, params, capabilities, want string }{
		{"no params", ``, ``, `{"_meta":{` + hop + `}}`},
		{"no _meta", `{"name":"x"}`, ``, `{"name":"x","_meta":{` + hop + `}}`},
		{"empty _meta", `{"_meta":{ },"name":"x"}`, ``, `{"_meta":{` + hop + `},"name":"x"}`},
		{"kept members", `{"_meta":{"a/b":1.0},"z":[ 1 ]}`, ``, `{"_meta":{"a/b":1.0,` + hop + `},"z":[ 1 ]}`},
		{"_meta of another kind", `{"_meta":3}`, ``, `{"_meta":{` + hop + `}}`},
		{"a forged member", `{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"evil"}}}`, ``,
			`{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"mcp-gateway","version":"1.2.3"},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`},
		{"capabilities", `{}`, `{"roots":{}}`,
			`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"mcp-gateway","version":"1.2.3"}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := &upstream.Request{Method: mcp.MethodToolsCall}
			if test.params != "" {
				req.Params = parse(t, test.params)
			}
			if test.capabilities != "" {
				req.Client.Capabilities = []byte(test.capabilities)
			}
			body, id, _ := u.body([]byte("42"), req, req.Params)
			if want := `{"jsonrpc":"2.0","id":42,"method":"tools/call","params":` + test.want + `}`; string(body) != want {
				t.Errorf("body is %s, want %s", body, want)
			}
			if string(id) != "42" {
				t.Errorf("id is %q", id)
			}
		})
	}
}

// A refusal that came after events, or that names another request, is no proof that this one did not run.
func TestWhatDoesNotProveThatHeadersWereRefused(t *testing.T) {
	const mismatch = `"error":{"code":-32020,"message":"m"}}`
	for name, step := range map[string]step{
		"in a stream, without an id": {400, `data: {"jsonrpc":"2.0","id":null,` + mismatch + "\n\n", "text/event-stream"},
		"after an event": {400, `data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}` + "\n\n" +
			`data: {"jsonrpc":"2.0","id":null,` + mismatch + "\n\n", "text/event-stream"},
		"of another request": {400, `{"jsonrpc":"2.0","id":987654,` + mismatch, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := started(t, scripted(t, discovered, step).URL)
			upstreamtest.Await(t, u, upstream.Live)
			_, err := u.Call(t.Context(), &upstream.Request{Method: mcp.MethodToolsCall, Target: "x"})
			wantError(t, err, upstream.NoResponse, upstream.HTTPError, 400)
			if errors.Is(err, upstream.ErrHeaderMismatch) {
				t.Errorf("%v counts as proof", err)
			}
		})
	}
}

// Log messages are asked for where somebody takes them and where each is known to be of its call.
func TestLogLevel(t *testing.T) {
	const asks = `"io.modelcontextprotocol/logLevel":`
	for _, test := range []struct {
		name, level, params string
		notify              func(upstream.Notification)
		want                string
	}{
		{"wanted", "warning", `{"name":"x"}`, func(upstream.Notification) {}, asks + `"warning"`},
		{"wanted by nobody", "debug", `{"name":"x"}`, nil, ""},
		{"not wanted", "", `{"name":"x"}`, func(upstream.Notification) {}, ""},
		{"forged", "", `{"name":"x","_meta":{` + asks + `"debug","a":1}}`, func(upstream.Notification) {}, ""},
		{"forged and wanted", "error", `{"name":"x","_meta":{` + asks + `"debug","a":1}}`, func(upstream.Notification) {}, asks + `"error"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := func(r *upstreamtest.Request) {
				meta, _ := r.Message.Params.Value("_meta")
				if strings.Count(string(meta), asks) != min(1, len(test.want)) || !strings.Contains(string(meta), test.want) {
					t.Errorf("the server got %s, want %q", meta, test.want)
				}
				r.Result("")
			}
			u := started(t, upstreamtest.HTTP(t, h).URL)
			req := &upstream.Request{
				Method: mcp.MethodToolsCall, Target: "x", Params: parse(t, test.params), Notify: test.notify, Client: upstream.Client{LogLevel: test.level},
			}
			if _, err := u.Call(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			child, _ := scriptedChild(t, func(r *upstreamtest.Request) {
				if meta, _ := r.Message.Params.Value("_meta"); strings.Contains(string(meta), asks) {
					t.Errorf("the server on a pipe got %s", meta)
				}
				r.Result("")
			})
			if _, err := child.Call(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		})
	}
}
