// Package example is the MCP server behind the quickstart: four small tools that need no set-up, change nothing and
// reach nothing, so that a first call has something to show. [Run] serves it over standard input and output.
//
// It is written on the official Go SDK alone and knows nothing of the gateway, like any server that a user would put
// there.
package example

import (
	"context"
	"encoding/json"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Run serves one client, messages as lines, and returns when in ends, without an error, or ctx does, with its error. It
// closes in and out.
func Run(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	return newServer().Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
}

func newServer() *mcp.Server {
	server := mcp.NewServer(
		&mcp.Implementation{Name: "example", Title: "Example server", Version: "1.0.0"},
		&mcp.ServerOptions{
			Instructions: "Small tools to try a connection with. None of them changes or reaches anything.",
			// The list never changes, and nothing is logged to the client.
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		})
	mcp.AddTool(server, tool("echo", "Echo", "Returns the message as it was given.", echoSchema), echo)
	mcp.AddTool(server, tool("add", "Add two numbers", "Returns the sum of a and b.", addSchema), add)
	mcp.AddTool(server, tool("current_time", "Current time",
		"Returns the current date and time in a time zone, UTC where none is given.", currentTimeSchema), currentTime)
	mcp.AddTool(server, tool("wait", "Wait",
		"Waits for up to 60 seconds and reports its progress each second. It can be cancelled.", waitSchema), wait)
	return server
}

// tool describes a tool that changes nothing and reaches nothing beyond its own arguments.
func tool(name, title, description, input string) *mcp.Tool {
	no := false
	return &mcp.Tool{
		Name:        name,
		Title:       title,
		Description: description,
		InputSchema: json.RawMessage(input),
		Annotations: &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
	}
}

const (
	echoSchema = `{"type":"object","additionalProperties":false,"required":["message"],"properties":{
		"message":{"type":"string","description":"The text to return."}}}`
	addSchema = `{"type":"object","additionalProperties":false,"required":["a","b"],"properties":{
		"a":{"type":"number","description":"The first number."},
		"b":{"type":"number","description":"The second number."}}}`
	currentTimeSchema = `{"type":"object","additionalProperties":false,"properties":{
		"timezone":{"type":"string","maxLength":64,"default":"UTC","description":"An IANA time zone, such as Europe/Berlin."}}}`
	waitSchema = `{"type":"object","additionalProperties":false,"required":["seconds"],"properties":{
		"seconds":{"type":"integer","minimum":0,"maximum":60,"description":"How long to wait."}}}`
)
