// Command mcp-gateway serves many MCP servers at one URL. One file holds one subcommand: flags, signals and exit codes,
// and nothing else. Start with serve.go.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// An exit ends the program with that code when all that there is to say has been said.
type exit int

// Error is for whoever takes it for an error as any other.
func (e exit) Error() string { return fmt.Sprintf("exit with %d", int(e)) }

const errReported = exit(1)

func main() { os.Exit(run(rootCommand())) }

// run gives the exit code of the program.
func run(root *cobra.Command) int {
	err := root.Execute()
	if code, said := errors.AsType[exit](err); said {
		return int(code)
	}
	if err != nil {
		fmt.Fprintln(root.ErrOrStderr(), "mcp-gateway:", strings.TrimSpace(err.Error()))
		return 1
	}
	return 0
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "mcp-gateway",
		Short:         "One URL in front of many MCP servers",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(serveCommand(), checkCommand(), toolsCommand(), callCommand(), inspectCommand(), importCommand(), keyCommand(),
		versionCommand(), exampleCommand(), healthcheckCommand())
	return root
}
