package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Names of the peers.
const (
	direct       = "direct"
	reverseProxy = "ReverseProxy"
	nginx        = "nginx"
	typedGateway = "typed SDK gateway"
	gateway      = "mcp-gateway"
)

// A fleet is every process of a run: the backend and the peers in front of it.
type fleet struct {
	dir     string
	key     string // lets callers into the gateway
	peers   map[string]*process
	started []*process
	absent  map[string]string // why a peer does not run, by its name
	targets []*target
}

// startFleet starts the peers, each in front of the one backend. The gateway logs at the level of log.
func startFleet(ctx context.Context, log string) (_ *fleet, err error) {
	dir, err := os.MkdirTemp("", "mcp-gateway-bench-")
	if err != nil {
		return nil, err
	}
	f := &fleet{dir: dir, key: "mcpgw_" + secret(43), peers: map[string]*process{}, absent: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.stop())
		}
	}()
	binary, err := buildGateway(ctx, dir)
	if err != nil {
		return f, err
	}
	if err := f.add(direct)(start(ctx, "the backend", role("backend"))); err != nil {
		return f, err
	}
	backend := f.peers[direct].address
	if err := f.add(reverseProxy)(start(ctx, reverseProxy, role("proxy", "-to", backend))); err != nil {
		return f, err
	}
	if err := f.add(typedGateway)(start(ctx, typedGateway, role("typed", "-to", backend))); err != nil {
		return f, err
	}
	if err := f.add(nginx)(startNginx(ctx, dir, backend)); err != nil {
		return f, err
	}
	return f, f.add(gateway)(startGateway(ctx, binary, dir, gatewayConfig(f.key, backend, log)))
}

// add takes what a start has given for the peer of that name.
func (f *fleet) add(name string) func(*process, error) error {
	return func(p *process, err error) error {
		if errors.Is(err, errNotInstalled) {
			f.absent[name] = err.Error()
			return nil
		}
		if err != nil {
			return err
		}
		f.peers[name] = p
		f.started = append(f.started, p)
		return nil
	}
}

// stop ends all processes, the last first, and removes what they wrote.
func (f *fleet) stop() error {
	for _, t := range f.targets {
		t.close()
	}
	var problems []error
	for i := len(f.started) - 1; i >= 0; i-- {
		problems = append(problems, f.started[i].stop())
	}
	return errors.Join(append(problems, os.RemoveAll(f.dir))...)
}

// emptyLog takes what the gateway has logged off the disk.
func (f *fleet) emptyLog() error { return os.Truncate(filepath.Join(f.dir, "log"), 0) }

// secrets is how many the gateway holds and looks for in each answer.
const secrets = 50

// secret is a random one of that length.
func secret(length int) string {
	var text strings.Builder
	for text.Len() < length {
		text.WriteString(rand.Text())
	}
	return text.String()[:length]
}

// gatewayConfig has on what a deployment may have on: callers with keys, prefixes, lists of tools, deadlines and secrets.
// Metrics are kept in any case.
func gatewayConfig(key, backend, log string) string {
	var c strings.Builder
	left := 0
	// Lengths from 20 to 64, as those of the services that issue them.
	token := func() string { left++; return secret(20 + left*7%45) }
	fmt.Fprintf(&c, "log_level: %s\n", log)
	fmt.Fprintf(&c, "callers:\n  keys:\n    bench: sha256:%s\n    other: sha256:%s\n", digest(key), digest(secret(43)))
	fmt.Fprintf(&c, `upstreams:
  bench:
    url: http://%[1]s/mcp
    prefix: bench__
    timeout: 30s
    tools:
      allow: ["*"]
      deny: ["secret-*", "tool-9*", "admin_?"]
      timeouts: {"accept": 25s, "text*": 20s}
    headers: {X-Api-Key: %[2]s}
    credential: {bearer: %[3]s}
  spare:
    url: http://%[1]s/mcp
    prefix: spare__
    timeout: 30s
    tools: {allow: ["small", "text"]}
    headers: {X-Api-Key: %[4]s}
    credential: {bearer: %[5]s}
  pipe:
    command: %[6]s
    prefix: pipe__
    timeout: 30s
    tools: {allow: ["small", "accept", "text", "notify"], deny: ["escapes"]}
    env:
      %[7]s: stdio
`, backend, token(), token(), token(), token(), self(), roleEnv)
	for left < secrets {
		fmt.Fprintf(&c, "      SERVICE_%d_TOKEN: %s\n", left+1, token())
	}
	return c.String()
}

// handshake begins a session with the gateway as a client of revision 2025-11-25, and gives its id.
func handshake(ctx context.Context, address, key string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	url := "http://" + address + "/mcp"
	post := func(session, body string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+key)
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
			req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode >= 300 {
			err = fmt.Errorf("HTTP %d %s", resp.StatusCode, bytes.TrimSpace(text))
		}
		return resp, err
	}
	first, err := post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},`+
		`"clientInfo":{"name":"bench","version":"1"}}}`)
	if err != nil {
		return "", fmt.Errorf("initialize: %w", err)
	}
	session := first.Header.Get("Mcp-Session-Id")
	if _, err := post(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return "", fmt.Errorf("notifications/initialized: %w", err)
	}
	return session, nil
}
