package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// typed is a role: a gateway as one builds it from the official SDK, a server on one side and a client of -to on the other,
// with each call decoded, passed to CallTool and encoded again.
func typed(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("typed", flag.ContinueOnError)
	to := flags.String("to", "", "host:port of the backend")
	if err := flags.Parse(args); err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, upstreamConnections
	about := &mcp.Implementation{Name: "typed", Version: "1"}
	session, err := mcp.NewClient(about, nil).Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: "http://" + *to + "/mcp", HTTPClient: &http.Client{Transport: transport}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		return fmt.Errorf("connecting to the backend: %w", err)
	}
	defer session.Close()
	srv := mcp.NewServer(about, nil)
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("listing the backend: %w", err)
		}
		srv.AddTool(tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return session.CallTool(ctx, &mcp.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments})
		})
	}
	return serveHTTP(ctx, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
}
