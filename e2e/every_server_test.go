package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A server is one that others wrote, on one transport.
type server struct {
	id     string
	config string // its members in a configuration
	calls  []toolCall
	// direct is how to reach it without the gateway: a url, or a command.
	direct []string
	env    map[string]string // of the command
	modern bool              // the configuration has the gateway speak 2026-07-28 to it
}

// overCommand is a server that the gateway starts.
func overCommand(id, members string, calls []toolCall, env map[string]string, command ...string) server {
	env = maps.Clone(env)
	if env == nil {
		env = map[string]string{}
	}
	env[runEnv] = run.id
	args, _ := json.Marshal(command[1:])
	environ, _ := json.Marshal(env)
	return server{id: id, calls: calls, direct: command, env: env, modern: strings.Contains(members, "modern"),
		config: fmt.Sprintf("command: %s, args: %s, env: %s%s", quoted(command[0]), args, environ, members)}
}

// overURL is a server that listens.
func overURL(id, members string, calls []toolCall, url string) server {
	return server{id: id, calls: calls, direct: []string{url}, modern: members == "", config: "url: " + quoted(url) + members}
}

// mcpgoOnce builds the server on mark3labs/mcp-go, which is a module of its own.
var mcpgoOnce = sync.OnceValues(func() (string, error) {
	path := filepath.Join(run.dir, "mcpgo.exe") // Windows needs a suffix, and nobody else minds
	var failure error
	// What it is made of may have to be fetched, and that fails now and then.
	for range 4 {
		out, err := exec.Command("go", "build", "-C", "mcpgo", "-o", path, ".").CombinedOutput()
		if err == nil {
			return path, nil
		}
		failure = fmt.Errorf("building e2e/mcpgo: %w\n%s", err, out)
	}
	return "", failure
})

const (
	legacyPin = ", protocol: legacy"
	modernPin = ", protocol: modern"
	ssePin    = legacyPin + ", transport: sse"
)

// statelessCalls are those of everythingCalls whose answer does not depend on the calls before it: several clients share a
// session with the server.
var statelessCalls = slices.DeleteFunc(slices.Clone(everythingCalls), func(call toolCall) bool { return strings.HasPrefix(call.Name, "toggle-") })

// mcpgoCalls are a call of each tool of the server on mcp-go.
var mcpgoCalls = []toolCall{
	{Name: "echo", Arguments: map[string]any{"message": "hi \U0001F4A5"}},
	{Name: "add", Arguments: map[string]any{"a": 1, "b": 2.5}},
	{Name: "steps", Arguments: map[string]any{"steps": 3}},
	{Name: "fail", Arguments: map[string]any{}},
	{Name: "broken", Arguments: map[string]any{}},
	{Name: "echo", Arguments: map[string]any{}},
}

var thinkingCalls = []toolCall{{Name: "sequentialthinking", Arguments: map[string]any{
	"thought": "first things first", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2,
}}}

var memoryCalls = []toolCall{
	{Name: "read_graph", Arguments: map[string]any{}},
	{Name: "search_nodes", Arguments: map[string]any{"query": "gateway"}},
	{Name: "open_nodes", Arguments: map[string]any{"names": []string{"nobody"}}},
}

func filesCalls(dir string) []toolCall {
	return []toolCall{
		{Name: "list_allowed_directories", Arguments: map[string]any{}},
		{Name: "list_directory", Arguments: map[string]any{"path": dir}},
		{Name: "read_text_file", Arguments: map[string]any{"path": filepath.Join(dir, "note.txt")}},
		{Name: "read_text_file", Arguments: map[string]any{"path": filepath.Join(dir, "..", "secret.txt")}},
	}
}

// everyServer starts all that listen and gives every server on every transport.
func everyServer(t *testing.T) []server {
	t.Helper()
	mcpgo, err := mcpgoOnce()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	note, graph := filepath.Join(dir, "note.txt"), filepath.Join(t.TempDir(), "graph.jsonl")
	for path, text := range map[string]string{
		note:  "a note, é \U0001F4A5\n",
		graph: `{"type":"entity","name":"mcp","entityType":"protocol","observations":["has a gateway"]}` + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	official := func(name string) string { return installed(t, "@modelcontextprotocol/"+name+"/dist/index.js") }
	everythingJS, playwright, modernJS := official("server-everything"), installed(t, "@playwright/mcp/cli.js"), filepath.Join(peers(t), "modern-server.mjs")

	started := map[string]*listener{
		"sse":        nodeServer(t, everythingJS, "sse"),
		"streamable": nodeServer(t, everythingJS, "streamableHttp"),
		"agreed":     nodeServer(t, installed(t, "supergateway/dist/index.js"), "--logLevel", "none", "--outputTransport", "ws", "--port", "0", "--stdio", strings.Join(everything(t), " ")),
		"plain":      nodeServer(t, filepath.Join(peers(t), "websocket-server.mjs"), everything(t)[1:]...),
		"modern":     nodeServer(t, modernJS, "http"),
		"playwright": nodeServer(t, playwright, "--port", "0"),
		"mcpgo":      startListener(t, mcpgo, "http"),
	}
	at := func(format, name string) string { return fmt.Sprintf(format, started[name].port(t)) }

	plain := overURL("ws-plain", legacyPin, statelessCalls, at("ws://127.0.0.1:%d/", "plain"))
	plain.direct = everything(t) // the SDK's client insists on the subprotocol, and this is what is behind
	return []server{
		overCommand("stdio", "", statelessCalls, nil, everything(t)...),
		overURL("sse", ssePin, statelessCalls, at("http://127.0.0.1:%d/sse", "sse")),
		overURL("streamable", legacyPin, statelessCalls, at("http://127.0.0.1:%d/mcp", "streamable")),
		overURL("ws-agreed", legacyPin, statelessCalls, at("ws://127.0.0.1:%d/message", "agreed")),
		plain,
		overCommand("modern-stdio", modernPin, modernCalls, nil, "node", modernJS, "stdio"),
		overURL("modern", "", modernCalls, at("http://127.0.0.1:%d/mcp", "modern")),
		overCommand("modern-as-legacy", "", modernCalls, nil, "node", modernJS, "stdio"),
		overURL("modern-http-as-legacy", legacyPin, modernCalls, at("http://127.0.0.1:%d/mcp", "modern")),
		overCommand("go-stdio", "", mcpgoCalls, nil, mcpgo, "stdio"),
		overCommand("go-modern-stdio", modernPin, mcpgoCalls, nil, mcpgo, "stdio"),
		overURL("go-sse", ssePin, mcpgoCalls, at("http://127.0.0.1:%d/sse", "mcpgo")),
		overURL("go-streamable", legacyPin, mcpgoCalls, at("http://127.0.0.1:%d/mcp", "mcpgo")),
		overURL("go-modern", "", mcpgoCalls, at("http://127.0.0.1:%d/mcp", "mcpgo")),
		overCommand("files", "", filesCalls(dir), nil, "node", official("server-filesystem"), dir),
		overCommand("memory", "", memoryCalls, map[string]string{"MEMORY_FILE_PATH": graph}, "node", official("server-memory")),
		overCommand("thinking", "", thinkingCalls, map[string]string{"DISABLE_THOUGHT_LOGGING": "true"}, "node", official("server-sequential-thinking")),
		// Its tools need a browser. Over HTTP it takes no other Host than this one.
		overCommand("browser", "", nil, nil, "node", playwright),
		overURL("browser-http", legacyPin, nil, at("http://localhost:%d/mcp", "playwright")),
	}
}
