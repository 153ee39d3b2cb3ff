package front

import (
	"net/http"
	"strings"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
)

// discoverResult is what server/discover answers (2026-07-28, server/discover). What the fronts serve is announced whether
// or not an upstream is up.
func discoverResult(serverInfo []byte, tools string) []byte {
	b := []byte(`{"resultType":"complete","supportedVersions":["` + mcp.Modern + `"],"capabilities":{` + tools + `,"logging":{}}` +
		`,"ttlMs":0,"cacheScope":"private","_meta":{"` + mcp.MetaServerInfo + `":`)
	return append(append(b, serverInfo...), `}}`...)
}

// serveModern answers one message of a modern client.
func (f *Front) serveModern(p *post, m *wire.Message, meta wire.Object) {
	switch m.Kind {
	case wire.Notification:
		// Over HTTP a modern client has nothing to notify of; a cancel's id would not even say whose request it means.
		p.nothing()
		return
	case wire.Result, wire.Failure:
		// The id, if any, is one of the client's own making for a request that nobody sent.
		refuse(p.in, http.StatusBadRequest, nil, fault(wire.CodeInvalidRequest, "a modern server asks nothing, so that there is nothing to respond to"))
		return
	}
	refusal := checkMetadata(p.r.Header, meta)
	if refusal == nil {
		refusal = checkHeaders(p.r.Header, m)
	}
	if refusal == nil {
		refusal = f.checkServed(m)
	}
	if refusal != nil {
		refuse(p.in, statusOfRefusal(refusal), m.ID, refusal)
		return
	}
	p.in.rpc = m.Method
	switch m.Method {
	case mcp.MethodDiscover:
		p.answer(http.StatusOK, wire.AppendResult(nil, m.ID, f.discover))
	case mcp.MethodListen:
		f.listenModern(p, m)
	default:
		f.callModern(p, m, meta)
	}
}

// checkMetadata holds the revision in the header against the one in the body, and asks for what each request must say.
func checkMetadata(h http.Header, meta wire.Object) *wire.Error {
	header, e := soleHeader(h, mcp.HeaderVersion)
	if e != nil {
		return e
	}
	if header == mcp.Modern && meta.Equals(mcp.MetaVersion, mcp.Modern) {
		if e := checkCapabilities(meta); e != nil {
			return e
		}
		return checkLogLevel(meta)
	}
	revision, ok := meta.String(mcp.MetaVersion)
	if !ok {
		return fault(wire.CodeInvalidParams, "params._meta needs "+mcp.MetaVersion+", the revision that MCP-Protocol-Version names. "+
			"A client of an older revision names that in MCP-Protocol-Version")
	}
	if header != revision {
		return fault(mcp.CodeHeaderMismatch, "MCP-Protocol-Version names another revision than params._meta")
	}
	data := append([]byte(nil), `{"supported":["`+mcp.Modern+`"],"requested":`...)
	data = append(wire.AppendString(data, revision), '}')
	return &wire.Error{Code: mcp.CodeUnsupportedVersion, Message: "this revision of MCP is not served", Data: data}
}

func checkCapabilities(meta wire.Object) *wire.Error {
	if raw, _ := meta.Value(mcp.MetaClientCapabilities); len(raw) == 0 || raw[0] != '{' {
		return fault(wire.CodeInvalidParams, "params._meta needs "+mcp.MetaClientCapabilities+", an object")
	}
	return nil
}

// checkHeaders holds the other Mcp-* headers against the body, which is the truth: whoever stands between may have
// decided by the headers.
func checkHeaders(h http.Header, m *wire.Message) *wire.Error {
	method, e := soleHeader(h, mcp.HeaderMethod)
	if e != nil {
		return e
	}
	if method != m.Method {
		return fault(mcp.CodeHeaderMismatch, "Mcp-Method names another method than the body")
	}
	if member := nameSource(m.Method); member != "" {
		value, e := soleHeader(h, mcp.HeaderName)
		if e != nil {
			return e
		}
		name, ok := mcp.DecodeHeader(value)
		if !ok {
			return fault(mcp.CodeHeaderMismatch, "Mcp-Name is not a valid value")
		}
		if m.Params.Has(member) && !m.Params.Equals(member, name) {
			return fault(mcp.CodeHeaderMismatch, "Mcp-Name differs from params."+member)
		}
	}
	for key := range h {
		if strings.HasPrefix(key, mcp.HeaderParamPrefix) {
			if _, e := soleHeader(h, key); e != nil {
				return e
			}
		}
	}
	return nil
}

// soleHeader is the value of a header that must be there, once, and in printable ASCII. The key is canonical.
func soleHeader(h http.Header, key string) (string, *wire.Error) {
	values := h[key]
	if len(values) == 0 {
		return "", fault(mcp.CodeHeaderMismatch, "the header "+key+" is missing")
	}
	if len(values) > 1 {
		return "", fault(mcp.CodeHeaderMismatch, "the header "+key+" stands twice")
	}
	value := strings.Trim(values[0], " \t")
	for i := range len(value) {
		if c := value[i]; (c < ' ' && c != '\t') || c > '~' {
			return "", fault(mcp.CodeHeaderMismatch, "the header "+key+" has characters that must be sent encoded")
		}
	}
	return value, nil
}

// nameSource is the member of params that Mcp-Name repeats; "" for methods without one.
func nameSource(method string) string {
	switch method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet:
		return "name"
	case mcp.MethodResourcesRead:
		return "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		return "taskId"
	}
	return ""
}

// checkServed refuses methods that are not served to modern clients. Those that only older revisions have are among
// them, also where legacy clients are served.
func (f *Front) checkServed(m *wire.Message) *wire.Error {
	switch m.Method {
	case mcp.MethodDiscover, mcp.MethodToolsList, mcp.MethodToolsCall:
		return checkNames(m.Method, m.Params)
	case mcp.MethodListen:
		if f.cfg.Changes != nil {
			return checkListen(m)
		}
	}
	return unknownMethod()
}

func unknownMethod() *wire.Error {
	return fault(wire.CodeMethodNotFound, "this method is not served here")
}

// callModern asks the gateway. The client's disconnect ends the call, as net/http sees it: at once where nothing follows the
// body, else when the next event or comment cannot be written. After what has been sent ahead, a pipelined request or a
// stray line end, net/http reads no further until this one is answered.
func (f *Front) callModern(p *post, m *wire.Message, meta wire.Object) {
	req := &Request{
		Caller: p.in.caller, ID: p.in.id, Method: m.Method, Params: m.Params, Meta: meta,
		Header: paramHeaders(p.r.Header), Sent: p.r.Header, Received: p.received, Hold: &p.hold,
	}
	if m.Method == mcp.MethodToolsCall {
		req.Name, _ = m.Params.String("name")
		w := wishOf(meta, true)
		req.Notify = p.notifier(w)
		capabilities, _ := meta.Value(mcp.MetaClientCapabilities)
		req.Client.Capabilities = passedOn(capabilities)
		if req.Notify != nil {
			req.Client.LogLevel = w.level
		}
	}
	p.wait()
	reply := f.dispatch(p.r.Context(), p, req)
	if p.r.Context().Err() != nil && f.base.Err() == nil {
		p.abandon()
	}
	if reply.Error == nil {
		p.answer(http.StatusOK, modernResult(m.ID, reply)...)
		return
	}
	capabilities, _ := meta.Object(mcp.MetaClientCapabilities)
	e := modernError(reply.Error, capabilities)
	status := statusOf(e)
	if reply.panicked {
		status = http.StatusInternalServerError
	}
	p.answer(status, wire.AppendError(nil, m.ID, e))
}

// paramHeaders are the Mcp-Param-* headers; never nil, since a modern client owes them.
func paramHeaders(h http.Header) http.Header {
	params := noParams
	for key, values := range h {
		if strings.HasPrefix(key, mcp.HeaderParamPrefix) {
			if len(params) == 0 {
				params = make(http.Header)
			}
			params[key] = values
		}
	}
	return params
}

// noParams is never written to.
var noParams = http.Header{}
