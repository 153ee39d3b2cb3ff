package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcp-gateway/gateway"
)

type inspectFlags struct {
	keyEnv, output string
	env            []string
	timeout        time.Duration
	verbose        bool
}

func inspectCommand() *cobra.Command {
	var flags inspectFlags
	cmd := &cobra.Command{
		Use:   "inspect URL | inspect -- COMMAND [ARGUMENT...]",
		Short: "Ask a server which revisions and transports it speaks, and print the configuration that fits",
		Long: "Ask a server which revisions and transports it speaks, and print the configuration that fits. A url is asked in every way\n" +
			"that the gateway knows; a command is started twice, once for each era. No tool is called.\n\n" +
			"It exits with 0 where a configuration fits, 2 where none does, 1 where the command line is wrong.",
		Example: "  mcp-gateway inspect https://mcp.example.com/mcp --key-env EXAMPLE_TOKEN\n" +
			"  mcp-gateway inspect -- npx -y @modelcontextprotocol/server-everything",
		Args: inspectArguments,
		RunE: func(cmd *cobra.Command, args []string) error { return inspect(cmd, &flags, args) },
	}
	cmd.Flags().StringVar(&flags.keyEnv, "key-env", "", "the environment variable `NAME` with the token that a url wants")
	cmd.Flags().StringArrayVar(&flags.env, "env", nil, "the environment variable `NAME` is passed on to a command; may stand again")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", 0, "how long the server may take to answer (15s for a url, 2m for a command)")
	outputFlag(cmd, &flags.output)
	verboseFlag(cmd, &flags.verbose)
	return cmd
}

func inspectArguments(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash == 0 && len(args) > 0:
		return nil
	case dash < 0 && len(args) == 1 && strings.Contains(args[0], "://"):
		return nil
	case dash < 0 && len(args) > 0 && !strings.Contains(args[0], "://"):
		return fmt.Errorf("%q is no url; a command stands after two dashes: mcp-gateway inspect -- %s", args[0], strings.Join(args, " "))
	}
	return errors.New("inspect takes one url, or two dashes and a command: mcp-gateway inspect -- npx -y SERVER")
}

func inspect(cmd *cobra.Command, flags *inspectFlags, args []string) error {
	forProgram, err := asJSON(flags.output)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	found, err := flags.ask(ctx, cmd, args)
	if err != nil {
		return err
	}
	if forProgram {
		err = writeJSON(cmd.OutOrStdout(), found)
	} else {
		err = found.WriteText(cmd.OutOrStdout(), styleOf(cmd.OutOrStdout()))
	}
	switch {
	case err != nil:
		return err
	case found.Entry == "":
		return exit(2)
	}
	return nil
}

func (f *inspectFlags) ask(ctx context.Context, cmd *cobra.Command, args []string) (*gateway.Inspection, error) {
	p := newProgress(cmd.ErrOrStderr())
	defer p.end()
	opts := gateway.InspectOptions{Timeout: f.timeout, KeyEnv: f.keyEnv, Env: f.env, Log: logOf(cmd, f.verbose), Waiting: p.waiting}
	isURL := cmd.ArgsLenAtDash() < 0
	switch {
	case f.timeout < 0 || f.timeout > 24*time.Hour:
		return nil, errors.New("--timeout: is not from 1ms to 24h")
	case isURL && len(f.env) > 0:
		return nil, errors.New("--env: has no effect on a url, take it out")
	case !isURL && f.keyEnv != "":
		return nil, errors.New("--key-env: has no effect on a command, pass its token on with --env NAME")
	case f.timeout == 0 && isURL:
		opts.Timeout = 15 * time.Second
	case f.timeout == 0:
		opts.Timeout = 2 * time.Minute
	}
	if isURL {
		return gateway.InspectURL(ctx, args[0], opts)
	}
	return gateway.InspectCommand(ctx, args, opts)
}
