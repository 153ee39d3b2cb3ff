package gateway

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcp-gateway/gateway/config"
	"mcp-gateway/gateway/front"
	"mcp-gateway/internal/mcp"
	"mcp-gateway/internal/wire"
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

func (f *fake) Start()              {}
func (f *fake) Refuse(error)        {}
func (f *fake) Quiesce()            {}
func (f *fake) Load() upstream.Load { return upstream.Load{} }
func (f *fake) Close() error        { return nil }

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

// last is the call that came last.
func (f *fake) last() *upstream.Request {
	all := f.calls()
	return all[len(all)-1]
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
	return loggedGateway(t, io.Discard, text, fakes)
}

// loggedGateway is gatewayOver with a log as JSON lines, which w has once closeLog has returned.
func loggedGateway(t *testing.T, w io.Writer, text string, fakes map[string]*fake) *Gateway {
	t.Helper()
	cfg, _, err := config.Parse("test", []byte("state_dir: "+t.TempDir()+"\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	g, err := assemble(cfg, Options{Log: w, LogJSON: true, LogLevel: new(slog.LevelDebug), Status: io.Discard}, func(u config.Upstream, _ parts) (engine, error) {
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
