package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"mcp-gateway/gateway"
	"mcp-gateway/gateway/config"
)

type checkFlags struct {
	config, output string
	dial, verbose  bool
}

func checkCommand() *cobra.Command {
	var flags checkFlags
	cmd := &cobra.Command{
		Use:   "check -c FILE [--dial]",
		Short: "Check a configuration, and with --dial whether its servers can be reached",
		Long: "Check a configuration without serving it: every problem at once. With --dial each server is also connected as serving\n" +
			"would, asked for its tools, and left again.\n\n" +
			"It exits with 0 where all is well, 1 where the configuration is not, 2 where a server is not.",
		Example: "  mcp-gateway check -c gateway.yaml\n  mcp-gateway check -c gateway.yaml --dial -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return check(cmd, flags) },
	}
	cmd.Flags().StringVarP(&flags.config, "config", "c", "", "the configuration `FILE`")
	_ = cmd.MarkFlagRequired("config") // fails only for a flag that does not exist
	cmd.Flags().BoolVar(&flags.dial, "dial", false, "connect to each server and list its tools")
	outputFlag(cmd, &flags.output)
	verboseFlag(cmd, &flags.verbose)
	return cmd
}

func check(cmd *cobra.Command, flags checkFlags) error {
	forProgram, err := asJSON(flags.output)
	if err != nil {
		return err
	}
	cfg, warnings, err := config.Load(flags.config)
	var reached []gateway.Reached
	if !forProgram {
		printProblems(cmd.ErrOrStderr(), warnings, err)
	}
	if err == nil && flags.dial {
		ctx, stop := interruptible(cmd)
		defer stop()
		reached = dial(ctx, cmd, cfg, flags)
	}
	if forProgram {
		if err := writeJSON(cmd.OutOrStdout(), gateway.NewChecked(flags.config, warnings, err, reached)); err != nil {
			return err
		}
	} else if err == nil {
		if err := printChecked(cmd.OutOrStdout(), flags, cfg, reached); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		return errReported
	case gateway.Unreached(reached) > 0:
		return exit(2)
	}
	return nil
}

func dial(ctx context.Context, cmd *cobra.Command, cfg *config.Config, flags checkFlags) []gateway.Reached {
	p := newProgress(cmd.ErrOrStderr())
	defer p.end()
	return gateway.Dial(ctx, cfg, gateway.DialOptions{Log: logOf(cmd, flags.verbose), Waiting: p.waiting})
}

func printChecked(w io.Writer, flags checkFlags, cfg *config.Config, reached []gateway.Reached) error {
	if err := gateway.WriteReached(w, styleOf(w), reached); err != nil {
		return err
	}
	verdict := "ok, " + count(len(cfg.Upstreams), "upstream")
	if flags.dial {
		verdict += " reached"
	} else {
		verdict += "; whether they can be reached is asked with --dial"
	}
	if failed := gateway.Unreached(reached); failed > 0 {
		verdict = fmt.Sprintf("%d of %s cannot be used", failed, count(len(reached), "upstream"))
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", flags.config, verdict)
	return err
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
