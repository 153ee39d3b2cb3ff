package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"mcp-gateway/gateway"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "mcp-gateway", gateway.Version)
			return err
		},
	}
}
