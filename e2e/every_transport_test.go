package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestEveryTransport has one gateway in front of servers on every transport, and shows each client of each era what it
// would see without the gateway.
func TestEveryTransport(t *testing.T) {
	servers := everyServer(t)
	config := "upstreams:\n"
	var calls []toolCall
	for _, s := range servers {
		config += "  " + s.id + ": {" + s.config + "}\n"
		calls = append(calls, withPrefix(s.id+"__", s.calls)...)
	}
	g := serve(t, config)
	g.allListed(t)

	// What handshake clients see without the gateway is held against several clients.
	legacy := make([]account, len(servers))
	t.Run("without the gateway", func(t *testing.T) {
		for i, s := range servers {
			t.Run(s.id, func(t *testing.T) {
				t.Parallel()
				legacy[i] = talk(t, "client-legacy.mjs", s.calls, s.env, s.direct...)
				legacy[i].leaveOutTasks()
			})
		}
	})
	for _, c := range []struct {
		name    string
		calls   []toolCall
		through func(t *testing.T, calls []toolCall) account
		without func(t *testing.T, s server, legacy account) account
	}{
		{"client-modern.mjs", calls,
			func(t *testing.T, calls []toolCall) account {
				return talk(t, "client-modern.mjs", calls, nil, g.URL)
			},
			func(t *testing.T, s server, legacy account) account {
				if s.modern {
					return talk(t, "client-modern.mjs", s.calls, s.env, s.direct...)
				}
				return legacy.without("execution").plain() // which this client does not show
			}},
		{"client-legacy.mjs", calls,
			func(t *testing.T, calls []toolCall) account {
				return talk(t, "client-legacy.mjs", calls, nil, g.URL)
			},
			func(_ *testing.T, _ server, legacy account) account { return legacy }},
		{"Go SDK 2026-07-28", calls,
			func(t *testing.T, calls []toolCall) account {
				return converse(t, &mcp.StreamableClientTransport{Endpoint: g.URL, HTTPClient: direct}, "2026-07-28", calls)
			}, withGoSDK("2026-07-28")},
		{"Go SDK 2025-11-25", calls,
			func(t *testing.T, calls []toolCall) account {
				return converse(t, &mcp.StreamableClientTransport{Endpoint: g.URL, HTTPClient: direct}, "2025-11-25", calls)
			}, withGoSDK("2025-11-25")},
		{"raw 2026-07-28", calls,
			func(t *testing.T, calls []toolCall) account { return rawAccount(t, modernClient{g.URL}, calls) },
			func(_ *testing.T, _ server, legacy account) account { return legacy.raw() }},
		{"raw 2025-06-18", calls,
			func(t *testing.T, calls []toolCall) account {
				return rawAccount(t, handshake(t, g.URL, "2025-06-18"), calls)
			},
			func(_ *testing.T, _ server, legacy account) account { return legacy.raw() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := c.through(t, c.calls)
			known := 0
			for i, s := range servers {
				t.Run(s.id, func(t *testing.T) {
					want := c.without(t, s, legacy[i])
					known += len(want.Tools)
					compareAccounts(t, got.of(s.id+"__"), want)
				})
			}
			if len(got.Tools) != known {
				t.Errorf("%d tools are listed, the servers have %d", len(got.Tools), known)
			}
		})
	}
}

// withGoSDK asks a server with the client of the Go SDK, which knows no WebSocket.
func withGoSDK(revision string) func(*testing.T, server, account) account {
	return func(t *testing.T, s server, _ account) account {
		t.Helper()
		revision := revision
		if !s.modern {
			revision = "2025-11-25"
		}
		var transport mcp.Transport
		switch target := s.direct[0]; {
		case strings.HasSuffix(target, "/sse"):
			transport = &mcp.SSEClientTransport{Endpoint: target, HTTPClient: direct}
		case strings.HasPrefix(target, "http"):
			transport = &mcp.StreamableClientTransport{Endpoint: target, HTTPClient: direct}
		default:
			command := s.direct
			if strings.HasPrefix(target, "ws") {
				command = everything(t)
			}
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = os.Environ()
			for name, value := range s.env {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			cmd.Env = append(cmd.Env, runEnv+"="+run.id)
			transport = &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Second}
		}
		a := converse(t, transport, revision, s.calls)
		a.Tools = slices.DeleteFunc(a.Tools, func(tool map[string]any) bool { return tool["name"] == "simulate-research-query" })
		return a
	}
}

// rawAccount lists and calls with a raw client.
func rawAccount(t *testing.T, client rawClient, calls []toolCall) account {
	t.Helper()
	var a account
	names, definitions := listed(t, client)
	for _, name := range names {
		a.Tools = append(a.Tools, decoded(t, definitions[name]))
	}
	for _, call := range calls {
		args, err := json.Marshal(call.Arguments)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(call.Name, "__region") {
			continue // it needs a header that the raw client does not make
		}
		o := outcome{Name: call.Name}
		r := client.ask(t, `1`, "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, call.Name, args))
		if r.result == nil {
			o.Error = decoded(t, r.failure)
		} else {
			o.Result = decoded(t, without(t, r.result, "resultType"))
		}
		a.Results = append(a.Results, o)
	}
	return a
}

// plain is the account with errors in the server's own words, which one of the clients puts some of its own before.
func (a account) plain() account {
	results := slices.Clone(a.Results)
	for i, result := range results {
		if result.Error == nil {
			continue
		}
		e := maps.Clone(result.Error)
		e["message"] = strings.TrimPrefix(e["message"].(string), fmt.Sprintf("MCP error %v: ", e["code"]))
		results[i].Error = e
	}
	return account{a.Tools, results}
}

// raw is the account as a raw client gives it, without the call that it cannot make.
func (a account) raw() account {
	a = a.plain()
	a.Results = slices.DeleteFunc(a.Results, func(result outcome) bool { return result.Name == "region" })
	return a
}

func decoded(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Errorf("%v: %s", err, raw)
	}
	return m
}
