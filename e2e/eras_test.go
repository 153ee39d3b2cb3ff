package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPinsTheOtherEra sets the gateway to another era, or another transport, than the server has. What the gateway says
// names the setting that works, and it gives up where the server itself has stated what it speaks.
func TestPinsTheOtherEra(t *testing.T) {
	everythingJS, modernJS := everything(t)[1], filepath.Join(peers(t), "modern-server.mjs")
	streamable, events := nodeServer(t, everythingJS, "streamableHttp"), nodeServer(t, everythingJS, "sse")
	modernOnly := nodeServer(t, modernJS, "http", "reject")
	socket := nodeServer(t, filepath.Join(peers(t), "websocket-server.mjs"), modernJS, "stdio", "reject")
	unknowing := newFaulty(t, false)

	url := func(format string, l *listener, members string) string {
		return overURL("", members, nil, fmt.Sprintf(format, l.port(t))).config
	}
	cases := []struct {
		id, config string
		verdict    bool
		names      []string
	}{
		{"modern-on-stdio", overCommand("", modernPin, nil, nil, everything(t)...).config, true, []string{"`protocol: legacy`"}},
		{"modern-on-http", url("http://127.0.0.1:%d/mcp", streamable, ""), false, []string{"`protocol: legacy`", "`transport: sse`"}},
		{"modern-on-sse", url("http://127.0.0.1:%d/sse", events, ""), false, []string{"`protocol: legacy`", "`transport: sse`"}},
		// It states in JSON-RPC that it does not know the method.
		{"modern-on-stated", overURL("", "", nil, unknowing.URL).config, true, []string{"`protocol: legacy`"}},
		{"legacy-on-stdio", overCommand("", "", nil, nil, modernStdio(t, "reject")...).config, true, []string{"`protocol: modern`", "2026-07-28"}},
		{"legacy-on-http", url("http://127.0.0.1:%d/mcp", modernOnly, legacyPin), true, []string{"`protocol: modern`", "2026-07-28"}},
		{"legacy-on-ws", url("ws://127.0.0.1:%d/", socket, ""), true, []string{"2026-07-28", "`url`"}},
		{"sse-on-modern", url("http://127.0.0.1:%d/mcp", modernOnly, ssePin), false, []string{"`protocol: modern`"}},
		{"sse-on-http", url("http://127.0.0.1:%d/mcp", streamable, ssePin), false, []string{"`transport: sse`"}},
		{"http-on-sse", url("http://127.0.0.1:%d/sse", events, legacyPin), false, []string{"`transport: sse`"}},
	}
	config := "upstreams:\n"
	for _, c := range cases {
		config += "  " + c.id + ": {" + c.config + "}\n"
	}
	g := serve(t, config)
	for _, c := range cases {
		t.Run(c.id, func(t *testing.T) {
			g.await(t, "what is wrong with "+c.id, func(output string) bool {
				return slices.ContainsFunc(strings.Split(output, "\n"), func(line string) bool {
					return strings.HasPrefix(line, c.id+" ") && !slices.ContainsFunc(c.names, func(name string) bool { return !strings.Contains(line, name) })
				})
			})
			want, causes := verdict{"not-sent", "", c.id, "tools/call", "safe", 0}, []string{"unreachable", "reconnecting", "connecting"}
			if c.verdict {
				want.Retry, causes = "no", []string{"given-up"}
			}
			v, text, ok := failed(call(t, g, c.id+"__tool"))
			cause := v.Cause
			if v.Cause = ""; !ok || v != want || !slices.Contains(causes, cause) || text == "" {
				t.Errorf("a call: %+v %q %q, want %+v and one of %q", v, cause, text, want, causes)
			}
		})
	}
	if asked := unknowing.asked("server/discover"); asked != 1 {
		t.Errorf("it asked %d times what had been answered", asked)
	}
}
