package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestGoSDKClient(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2024-11-05"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			g, stdio, url := officialPair(t)
			got := converse(t, &mcp.StreamableClientTransport{Endpoint: g.URL, HTTPClient: direct}, revision,
				slices.Concat(withPrefix("everything__", everythingCalls), withPrefix("modern__", modernCalls)))

			cmd := exec.Command(stdio[0], stdio[1:]...)
			cmd.Env = append(os.Environ(), runEnv+"="+run.id)
			// The SDK's tools have no execution, so that a tool which only runs as a task cannot be told by it.
			legacy := converse(t, &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Second}, "2025-11-25", everythingCalls)
			legacy.Tools = slices.DeleteFunc(legacy.Tools, func(tool map[string]any) bool { return tool["name"] == "simulate-research-query" })
			if revision == "2024-11-05" {
				linksAsText(t, legacy.Results)
			}
			compareAccounts(t, got.of("everything__"), legacy)
			compareAccounts(t, got.of("modern__"),
				converse(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: direct}, revision, modernCalls))
		})
	}
}

// linksAsText puts in place of each resource link what a client whose revision has none gets instead.
func linksAsText(t *testing.T, results []outcome) {
	t.Helper()
	links := 0
	for _, result := range results {
		content, _ := result.Result["content"].([]any)
		for i, block := range content {
			if link := block.(map[string]any); link["type"] == "resource_link" {
				content[i] = map[string]any{"type": "text", "text": fmt.Sprintf("[resource %s] %s: %s", link["name"], link["uri"], link["description"])}
				links++
			}
		}
	}
	if links == 0 {
		t.Error("no server gave a resource link")
	}
}

// converse lists and calls as the scripts in peers/ do, with the client of the Go SDK.
func converse(t *testing.T, transport mcp.Transport, revision string, calls []toolCall) account {
	t.Helper()
	// By default the SDK declares roots, for which server-everything has one tool more. The gateway declares none.
	client := mcp.NewClient(&mcp.Implementation{Name: "client-go", Version: "1.0.0"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	// The revision is only a wish to the SDK: it falls back by itself.
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Errorf("the client and the server settled on %s, want %s", got, revision)
	}
	var a account
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		a.Tools = append(a.Tools, plain(t, tool))
	}
	for _, call := range calls {
		o := outcome{Name: call.Name}
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: call.Name, Arguments: call.Arguments})
		if err != nil {
			o.Error = map[string]any{"message": err.Error()}
		} else {
			o.Result = plain(t, result)
			// The SDK fills this in by the revision of the session.
			maps.DeleteFunc(o.Result, func(name string, _ any) bool { return name == "resultType" })
		}
		a.Results = append(a.Results, o)
	}
	return a
}

// plain is a value as JSON shows it.
func plain(t *testing.T, value any) map[string]any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
