package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"mcp-gateway/gateway/config"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
	"mcp-gateway/redact"
	"mcp-gateway/upstream"
)

// A RemoteError says why a running gateway could not be reached.
type RemoteError struct{ Phase Phase }

// Error gives what is wrong; Phase.Fix is what to do about it.
func (e *RemoteError) Error() string { return e.Phase.Name + ": " + e.Phase.Error }

// Remote gives a Client of the gateway at target, a url with http or https, that shows the API key in the environment
// variable keyEnv, where that is not "". The warnings say that the key goes in the clear. An error is a *RemoteError where the
// gateway cannot be reached.
func Remote(ctx context.Context, target, keyEnv string, opts DialOptions) (client *Client, warnings []string, err error) {
	cfg, problems, err := config.Parse("--url", remoteConfig(target, keyEnv))
	if err != nil {
		return nil, nil, refusedEntry(err)
	}
	for _, p := range problems {
		warnings = append(warnings, p.Text)
	}
	d := newDialer(cfg, opts.Log)
	u := cfg.Upstreams[0]
	w, e, err := d.connect(u)
	if err != nil {
		return nil, warnings, err
	}
	if opts.Waiting != nil {
		opts.Waiting([]string{address(u)})
		defer opts.Waiting(nil)
	}
	if status := settled(ctx, e); status.State != upstream.Live {
		phases := w.phases(ctx, status)
		failed := phases[len(phases)-1]
		if failed.Name == phaseHandshake || failed.Name == phaseCredential {
			failed.Error = d.shown(plainly(w.reason(ctx, status)))
		}
		failed.Fix = fixRemote(failed, keyEnv)
		return nil, warnings, errors.Join(&RemoteError{failed}, d.shownError(e.Close()))
	}
	r := &remote{engine: e, scrubber: d.parts.scrubber}
	return &Client{ask: r.ask, upstreamOf: func(string) string { return "" }, close: func() error { return d.shownError(e.Close()) }}, warnings, nil
}

// remoteConfig has the gateway at target as its one upstream, which bounds the calls by itself.
func remoteConfig(target, keyEnv string) []byte {
	text := append([]byte(`{"upstreams":{"gateway":{"prefix":"","timeout":"24h","start_timeout":"15s","url":`), wire.AppendString(nil, literal(target))...)
	if keyEnv != "" {
		text = append(text, `,"credential":{"bearer":`...)
		text = append(wire.AppendString(text, "${env:"+keyEnv+"}"), '}')
	}
	return append(text, "}}}"...)
}

// literal is text as a configuration has it that means just that.
func literal(text string) string { return strings.ReplaceAll(text, "${", "$${") }

// fixRemote is what to do where a running gateway could not be reached.
func fixRemote(p Phase, keyEnv string) string {
	switch {
	case p.Name == phaseConnect:
		return "start it (mcp-gateway serve -c FILE), or correct --url"
	case p.Name == phaseCredential && keyEnv == "":
		return "it wants an API key: put the key into an environment variable, and name that with --key-env NAME"
	case p.Name == phaseCredential:
		return "it does not know the key in " + keyEnv + ": make one with `mcp-gateway key NAME`"
	case p.Name == phaseHandshake:
		return "is that a gateway, and its path? `mcp-gateway serve` prints the whole url, such as http://127.0.0.1:8080/mcp"
	}
	return p.Fix
}

// A remote asks a running gateway.
type remote struct {
	engine   engine
	scrubber *redact.Scrubber
}

// ask makes the request, and once more with the headers that the tool's definition wants where it was refused for them.
func (r *remote) ask(ctx context.Context, req *upstream.Request) (wire.Object, error) {
	resp, err := r.engine.Call(ctx, req)
	if errors.Is(err, upstream.ErrHeaderMismatch) {
		if req.Header, err = r.headers(ctx, req); err == nil {
			resp, err = r.engine.Call(ctx, req)
		}
	}
	if stated, ok := errors.AsType[*wire.Error](err); ok {
		return wire.Object{}, r.cleanError(stated)
	}
	if err != nil {
		return wire.Object{}, errors.New(redact.Printable(r.scrubber.String(err.Error())))
	}
	text, err := r.scrubber.JSON(resp.Result.Raw())
	if err != nil {
		return wire.Object{}, err
	}
	return wire.ParseObject(text)
}

func (r *remote) cleanError(e *wire.Error) error {
	text, err := r.scrubber.JSON(e.AppendJSON(nil))
	if err != nil {
		return err
	}
	clean := *e
	clean.Message = r.scrubber.String(e.Message)
	if clean.Raw, err = wire.ParseObject(text); err != nil {
		return err
	}
	return &clean
}

// headers are the arguments of a call that its tool's definition wants in headers as well.
func (r *remote) headers(ctx context.Context, req *upstream.Request) (http.Header, error) {
	h := http.Header{}
	err := pages(ctx, r.ask, func(tool wire.Object) {
		if name, _ := tool.String("name"); name != req.Target {
			return
		}
		schema, _ := tool.Value("inputSchema")
		params, _ := mcp.HeaderParams(schema) // a gateway leaves out a tool whose schema is invalid
		arguments, _ := req.Params.Object("arguments")
		for _, p := range params {
			if value, ok := p.Value(arguments); ok {
				h[p.Header] = []string{value}
			}
		}
	})
	return h, err
}
