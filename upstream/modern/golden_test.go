package modern

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	"mcp-gateway/internal/mcp"
	"mcp-gateway/upstream"
	"mcp-gateway/upstream/upstreamtest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// bearer is a credential that does not change.
type bearer string

func (b bearer) Sign(_ context.Context, r *http.Request) (uint64, error) {
	r.Header.Set("Authorization", "Bearer "+string(b))
	return 1, nil
}

func (bearer) Changed() <-chan struct{} { return nil }

func (b bearer) Refresh(context.Context, uint64) error { return nil }

// The first messages on the wire, each byte of them, are in the golden file.
func TestFirstMessages(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(chan []byte, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			seen <- nil
			return
		}
		defer c.Close()
		var taken bytes.Buffer
		r := bufio.NewReader(io.TeeReader(c, &taken))
		for id := 1; id <= 3; id++ {
			req, err := http.ReadRequest(r)
			if err != nil {
				break
			}
			_, _ = io.Copy(io.Discard, req.Body)
			taken.WriteString("\n\n")
			text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, upstreamtest.Discovered)
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		}
		seen <- taken.Bytes()
	}()

	u := started(t, "http://"+l.Addr().String()+"/mcp?a=b", func(cfg *Config) {
		cfg.Header = http.Header{"X-Team": {"tools"}}
		cfg.Credential = bearer("token")
	})
	for _, req := range []*upstream.Request{
		{Method: mcp.MethodToolsList},
		{
			Method: mcp.MethodToolsCall, Target: "größe", Header: http.Header{"Mcp-Param-Region": {"eu"}},
			Params: parse(t, `{"name":"größe","arguments":{"region":"eu","n":12345678901234567890},"_meta":{"traceparent":"00"}}`),
		},
	} {
		if _, err := u.Call(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	got := bytes.ReplaceAll(<-seen, []byte(l.Addr().String()), []byte("server"))
	got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))
	const golden = "testdata/first.http"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the first messages differ (-want +got):\n%s", diff)
	}
}
