package main

import (
	"errors"
	"fmt"
	"strings"
)

// A kind is one of the calls that are measured.
type kind struct {
	name      string
	tool      string // in the backend's words
	arguments string // with holes
	progress  bool   // it asks for progress
	check     func(i id, a *answered) error
}

// kinds are the calls by their tool, in the order of the table.
func kinds() []kind {
	blob := prose(256 << 10)
	return []kind{
		{name: "small call", tool: "small", arguments: `{"message":"#` + hole + `"}`,
			check: func(i id, a *answered) error { return a.says("#" + i.String()) }},
		{name: "256 KB arguments", tool: "accept", arguments: `{"call":` + hole + `,"blob":` + string(blob) + `}`,
			check: func(i id, a *answered) error { return a.says(accepted(i.String(), text(blob))) }},
		{name: "1 MB text", tool: "text", arguments: `{}`,
			check: func(_ id, a *answered) error { return a.carries(largeText()) }},
		{name: "1 MB text with escapes", tool: "escapes", arguments: `{}`,
			check: func(_ id, a *answered) error { return a.carries(largeEscapes()) }},
		{name: "1 MB structured", tool: "structured", arguments: `{}`,
			check: func(_ id, a *answered) error { return a.carries(largeStructured()) }},
		{name: "20 notifications", tool: "notify", arguments: `{}`, progress: true,
			check: func(i id, a *answered) error { return errors.Join(a.says("notified"), a.notified(i)) }},
	}
}

// verify holds the body of an answer against what the call with that id asked for.
func (k kind) verify(i id, body []byte) error {
	a, err := readAnswer(i, body)
	if err != nil {
		return err
	}
	return k.check(i, a)
}

const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
	`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}`

// body is the JSON-RPC request that calls the tool by that name, with this in its _meta.
func (k kind) body(name, meta string) string {
	if k.progress {
		meta = strings.TrimPrefix(meta+`,"progressToken":`+hole, ",")
	}
	if meta != "" {
		meta = `,"_meta":{` + meta + `}`
	}
	return `{"jsonrpc":"2.0","id":` + hole + `,"method":"tools/call","params":{"name":"` + name + `","arguments":` + k.arguments + meta + `}}`
}

// modern is the HTTP request that calls the tool by that name in revision 2026-07-28, with holes.
func (k kind) modern(address, key, name string) []byte {
	return request(address, key, k.body(name, modernMeta), "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: "+name)
}

// legacy is the same on a session of revision 2025-11-25.
func (k kind) legacy(address, key, session, name string) []byte {
	return request(address, key, k.body(name, ""), "MCP-Protocol-Version: 2025-11-25", "Mcp-Session-Id: "+session)
}

// request is a POST with an API key.
func request(address, key, body string, headers ...string) []byte {
	length := len(body) + strings.Count(body, hole)*(idDigits-len(hole))
	return fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"Authorization: Bearer %s\r\n%s\r\nContent-Length: %d\r\n\r\n%s", address, key, strings.Join(headers, "\r\n"), length, body)
}
