// Command mcp-gateway serves many MCP servers at one URL. One file holds one subcommand: flags, signals and exit codes,
// and nothing else. Start with serve.go.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// errReported ends the program with exit code 1 when all that there is to say has been said.
var errReported = errors.New("")

func main() {
	if err := rootCommand().Execute(); err != nil {
		if !errors.Is(err, errReported) {
			fmt.Fprintln(os.Stderr, "mcp-gateway:", err)
		}
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:               "mcp-gateway",
		Short:             "One URL in front of many MCP servers",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(serveCommand(), checkCommand(), keyCommand(), versionCommand(), exampleCommand(), healthcheckCommand())
	return root
}
