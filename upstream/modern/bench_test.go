package modern

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"
)

// canned answers each request with its id and one result, without a network.
type canned struct{ result []byte }

var cannedHeader = http.Header{"Content-Type": {"application/json"}}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	var room [512]byte
	n, _ := io.ReadFull(r.Body, room[:])
	_ = r.Body.Close()
	_, rest, _ := bytes.Cut(room[:n], []byte(`"id":`))
	id, _, _ := bytes.Cut(rest, []byte(","))
	text := make([]byte, 0, len(c.result)+64)
	text = append(append(append(text, `{"jsonrpc":"2.0","id":`...), id...), `,"result":`...)
	text = append(append(text, c.result...), '}')
	return &http.Response{
		StatusCode: 200, Header: cannedHeader, ContentLength: int64(len(text)), Body: io.NopCloser(bytes.NewReader(text)), Request: r,
	}, nil
}

// BenchmarkCall is the engine's share of a small call; the stub's own is five allocations.
func BenchmarkCall(b *testing.B) {
	stub := &canned{[]byte(upstreamtest.Discovered)}
	u := started(b, "http://server/mcp", func(cfg *Config) {
		cfg.Transport = stub
		cfg.Credential = bearer("token")
	})
	upstreamtest.Await(b, u, upstream.Live)
	stub.result = []byte(`{"content":[{"type":"text","text":"hello"}],"resultType":"complete"}`)
	req := &upstream.Request{
		Method: mcp.MethodToolsCall, Target: "echo",
		Params: parse(b, `{"name":"echo","arguments":{"message":"hello"}}`),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := u.Call(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
