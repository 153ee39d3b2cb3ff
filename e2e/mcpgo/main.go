// Mcpgo is a server on mark3labs/mcp-go, in a module of its own so that what it needs is not what the gateway needs.
// "mcpgo stdio" serves its standard input; "mcpgo http" serves Streamable HTTP at /mcp and HTTP+SSE at /sse, prints
// {"listening":PORT}, and ends when its standard input does, so that it never outlives a test.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	log.SetFlags(0)
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "stdio":
		err = server.ServeStdio(build())
	case len(os.Args) == 2 && os.Args[1] == "http":
		err = serve()
	default:
		err = errors.New("usage: mcpgo stdio|http")
	}
	if err != nil {
		log.Fatal("mcpgo: ", err)
	}
}

func serve() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(build(), server.WithStateful(true)))
	events := server.NewSSEServer(build())
	mux.Handle("/sse", events.SSEHandler())
	mux.Handle("/message", events.MessageHandler())
	fmt.Printf("{\"listening\":%d}\n", ln.Addr().(*net.TCPAddr).Port)
	go func() {
		// Whatever ends the input, nobody is left who needs this server.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(ln, mux)
}

type sum struct {
	Sum float64 `json:"sum"`
}

func build() *server.MCPServer {
	s := server.NewMCPServer("mcpgo", "1.0.0", server.WithToolCapabilities(true), server.WithLogging(), server.WithRecovery())
	s.AddTool(mcp.NewTool("echo", mcp.WithDescription("Gives the message back."), mcp.WithReadOnlyHintAnnotation(true),
		mcp.WithString("message", mcp.Required(), mcp.Description("what to give back"))), echo)
	s.AddTool(mcp.NewTool("add", mcp.WithDescription("Adds two numbers."), mcp.WithOutputSchema[sum](),
		mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required())), add)
	s.AddTool(mcp.NewTool("steps", mcp.WithDescription("Reports progress."),
		mcp.WithNumber("steps", mcp.Required(), mcp.Min(1), mcp.Max(10))), steps)
	s.AddTool(mcp.NewTool("fail", mcp.WithDescription("Fails as a tool does.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultError("It broke: \U0001F4A5"), nil
		})
	s.AddTool(mcp.NewTool("broken", mcp.WithDescription("Fails as a protocol does.")),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("it broke inside")
		})
	return s
}

func echo(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	message, err := req.RequireString("message")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	return mcp.NewToolResultText("Echo: " + message), nil
}

func add(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	total := sum{req.GetFloat("a", 0) + req.GetFloat("b", 0)}
	return mcp.NewToolResultStructured(total, fmt.Sprint(total.Sum)), nil
}

func steps(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	total := req.GetInt("steps", 1)
	if meta := req.Params.Meta; meta != nil && meta.ProgressToken != nil {
		for i := 1; i <= total; i++ {
			// A client that takes no notifications still gets its result.
			_ = server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", map[string]any{
				"progressToken": meta.ProgressToken, "progress": i, "total": total,
			})
		}
	}
	return mcp.NewToolResultText(fmt.Sprintf("%d steps", total)), nil
}
