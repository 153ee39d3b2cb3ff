package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mcp-gateway/gateway"
)

// exitToolFailed is for a tool that says that it has failed.
const exitToolFailed = exit(3)

type callFlags struct {
	clientFlags
	args string
}

func callCommand() *cobra.Command {
	var flags callFlags
	cmd := &cobra.Command{
		Use:   "call NAME [--args JSON] (-c FILE | --url URL)",
		Short: "Call one tool and print what it gives",
		Long: "Call one tool and print what it gives, through a running gateway or straight from a configuration, whose server is\n" +
			"started for this and ended again.\n\n" +
			"It exits with 0 for a result, 3 where the tool itself says that it has failed, 2 where the gateway could not complete the\n" +
			"call (the words say whether it may have run), 1 where the configuration or the command line is wrong.",
		Example: "  mcp-gateway call files__read_file --args '{\"path\": \"README.md\"}' -c gateway.yaml\n" +
			"  mcp-gateway call files__write_file --args @arguments.json --url http://127.0.0.1:8080/mcp",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("call takes the name of one tool, as `mcp-gateway tools` lists it; its arguments go into --args")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return call(cmd, &flags, args[0]) },
	}
	cmd.Flags().StringVar(&flags.args, "args", "", "the arguments as `JSON`, @FILE, or - for standard input")
	flags.add(cmd)
	return cmd
}

func call(cmd *cobra.Command, flags *callFlags, name string) (err error) {
	forProgram, err := asJSON(flags.output)
	if err == nil {
		err = flags.check()
	}
	if err != nil {
		return err
	}
	arguments, err := gateway.Arguments(flags.args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	client, err := flags.open(ctx, cmd, name)
	if err != nil {
		return err
	}
	defer func() { err = closed(cmd, client, err) }()
	if unreached := client.Unreached(); len(unreached) > 0 {
		w := cmd.ErrOrStderr()
		// There is nowhere left to say that this cannot be written.
		_ = gateway.WriteReached(w, styleOf(w), unreached)
		if !forProgram { // which wants the outcome that a call would have
			return failed(cmd, errors.New("the call was not sent, so nothing took effect"))
		}
	}
	answer, err := flags.ask(ctx, cmd, client, name, arguments)
	if err != nil {
		if text := gateway.ErrorJSON(err); forProgram && text != nil {
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text); err != nil {
				return err
			}
		}
		return refused(ctx, cmd, client, name, err)
	}
	return flags.print(cmd, answer, forProgram)
}

// ask makes the call, and shows its progress on a terminal.
func (f *callFlags) ask(ctx context.Context, cmd *cobra.Command, client *gateway.Client, name string, arguments []byte) (*gateway.Answer, error) {
	p := newProgress(cmd.ErrOrStderr())
	defer p.end()
	p.waiting([]string{name})
	var tell func(string)
	if p != nil {
		tell = p.say
	}
	return client.Call(ctx, name, arguments, tell)
}

// print shows the result, and gives the exit code. What the gateway says of a call that it could not complete is no result.
func (f *callFlags) print(cmd *cobra.Command, answer *gateway.Answer, forProgram bool) error {
	out := cmd.OutOrStdout()
	var err error
	switch {
	case forProgram:
		_, err = fmt.Fprintf(out, "%s\n", answer.Result)
	case answer.Failed:
		err = answer.WriteText(cmd.ErrOrStderr(), terminal(cmd.ErrOrStderr()))
	default:
		err = answer.WriteText(out, terminal(out))
	}
	switch {
	case err != nil:
		return err
	case answer.Failed:
		return exit(2)
	case answer.IsError:
		return exitToolFailed
	}
	return nil
}

// refused tells why there is no result, and which tool may have been meant.
func refused(ctx context.Context, cmd *cobra.Command, client *gateway.Client, name string, err error) error {
	list, listing := client.Tools(ctx)
	if listing == nil && !list.Has(name) {
		if similar := list.Similar(name); len(similar) > 0 {
			err = fmt.Errorf("%w\n  did you mean %s?", err, strings.Join(similar, " or "))
		}
	}
	return failed(cmd, err)
}
