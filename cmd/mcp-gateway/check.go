package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"mcp-gateway/gateway/config"
)

func checkCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "check -c FILE",
		Short: "Check a configuration without serving it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, warnings, err := config.Load(file)
			printProblems(cmd.ErrOrStderr(), warnings, err)
			if err != nil {
				return errReported
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: ok, %s\n", file, count(len(cfg.Upstreams), "upstream"))
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the configuration `FILE`")
	_ = cmd.MarkFlagRequired("config") // fails only for a flag that does not exist
	return cmd
}

// printProblems writes every warning and every problem, a line each.
func printProblems(w io.Writer, warnings []config.Problem, err error) {
	for _, warning := range warnings {
		fmt.Fprintln(w, "warning:", warning)
	}
	if err != nil {
		fmt.Fprintln(w, err)
	}
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
