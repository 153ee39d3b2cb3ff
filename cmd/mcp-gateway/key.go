package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"mcp-gateway/auth"
)

func keyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key NAME",
		Short: "Make an API key for a caller",
		Long: "Make an API key for a caller. The key is shown once and goes to the caller; the lines for the configuration\n" +
			"hold only its SHA-256.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, stored := auth.NewKey()
			if _, err := auth.ParseKey(args[0], stored); err != nil {
				return fmt.Errorf("making a key: %w", err)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), `Give this key to the caller; it is not shown again:

  %s

Add this to the configuration:

  callers:
    keys:
      %s: "%s"

The caller sends it as: Authorization: Bearer KEY
`, key.Reveal(), args[0], stored)
			return err
		},
	}
}
