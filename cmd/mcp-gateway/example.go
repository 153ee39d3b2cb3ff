package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"mcp-gateway/internal/example"
)

// exampleCommand is the server that serve starts where it is given no configuration.
func exampleCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "example",
		Short:  "Be a small MCP server on standard input and output",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			return example.Run(ctx, os.Stdin, os.Stdout)
		},
	}
}
