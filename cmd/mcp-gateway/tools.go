package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"mcp-gateway/gateway"
	"mcp-gateway/gateway/config"
)

// clientFlags are the ways to a gateway: one that runs, or one that is started for this.
type clientFlags struct {
	config, url, keyEnv, output string
	verbose                     bool
}

func (f *clientFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.config, "config", "c", "", "the configuration `FILE`, whose servers are started for this and ended again")
	cmd.Flags().StringVar(&f.url, "url", "", "the `URL` of a running gateway, in place of a configuration")
	cmd.Flags().StringVar(&f.keyEnv, "key-env", "", "the environment variable `NAME` with the API key for --url")
	outputFlag(cmd, &f.output)
	verboseFlag(cmd, &f.verbose)
}

// check refuses what does not name one way.
func (f *clientFlags) check() error {
	switch {
	case f.config == "" && f.url == "":
		return errors.New("name a configuration with -c FILE, or a running gateway with --url URL")
	case f.config != "" && f.url != "":
		return errors.New("-c and --url are two ways to a gateway: take one of them out")
	case f.config != "" && f.keyEnv != "":
		return errors.New("--key-env is for --url: with -c nobody has to show a key, take it out")
	}
	return nil
}

func toolsCommand() *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "tools (-c FILE | --url URL)",
		Short: "List the tools as a client sees them",
		Long: "List the tools as a client sees them, of a running gateway or straight from a configuration.\n\n" +
			"It exits with 0 where all servers have listed, 1 where the configuration or the command line is wrong, 2 where a server\n" +
			"or the gateway cannot be reached.",
		Example: "  mcp-gateway tools -c gateway.yaml\n  mcp-gateway tools --url http://127.0.0.1:8080/mcp --key-env GATEWAY_KEY",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return listTools(cmd, &flags) },
	}
	flags.add(cmd)
	return cmd
}

func listTools(cmd *cobra.Command, flags *clientFlags) (err error) {
	forProgram, err := asJSON(flags.output)
	if err == nil {
		err = flags.check()
	}
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	client, err := flags.open(ctx, cmd, "")
	if err != nil {
		return err
	}
	defer func() { err = closed(cmd, client, err) }()
	list, err := client.Tools(ctx)
	if err != nil {
		return failed(cmd, fmt.Errorf("listing the tools: %w", err))
	}
	if forProgram {
		err = writeJSON(cmd.OutOrStdout(), list)
	} else {
		err = list.WriteText(cmd.OutOrStdout(), styleOf(cmd.OutOrStdout()))
	}
	if err != nil {
		return err
	}
	printAbsent(cmd, client, list)
	if len(list.Absent) > 0 || len(client.Unreached()) > 0 {
		return exit(2)
	}
	return nil
}

// printAbsent says which upstreams have listed nothing, and why as far as that is known.
func printAbsent(cmd *cobra.Command, client *gateway.Client, list *gateway.Listing) {
	w := cmd.ErrOrStderr()
	known := map[string]bool{}
	for _, r := range client.Unreached() {
		known[r.ID] = true
	}
	if len(known) > 0 {
		fmt.Fprintln(w)
		// There is nowhere left to say that this cannot be written.
		_ = gateway.WriteReached(w, styleOf(w), client.Unreached())
	}
	for _, id := range list.AbsentIDs() {
		if !known[id] {
			fmt.Fprintf(w, "%s lists no tools: %s\n", id, list.Absent[id])
		}
	}
}

// open gives a client by the way that the flags name. tool is the one to be called, "" is any. What is wrong with the way it has
// told by then.
func (f *clientFlags) open(ctx context.Context, cmd *cobra.Command, tool string) (*gateway.Client, error) {
	p := newProgress(cmd.ErrOrStderr())
	defer p.end()
	opts := gateway.DialOptions{Log: logOf(cmd, f.verbose), Waiting: p.waiting}
	if f.url == "" {
		cfg, warnings, err := config.Load(f.config)
		printProblems(cmd.ErrOrStderr(), warnings, err)
		if err != nil {
			return nil, errReported
		}
		client, err := gateway.Direct(ctx, cfg, tool, opts)
		if errors.Is(err, gateway.ErrNoUpstream) {
			return nil, failed(cmd, err)
		}
		return client, err
	}
	client, warnings, err := gateway.Remote(ctx, f.url, f.keyEnv, opts)
	p.end()
	for _, warning := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: --url:", warning)
	}
	if remote, ok := errors.AsType[*gateway.RemoteError](err); ok {
		return nil, failed(cmd, fmt.Errorf("the gateway cannot be reached: %w\n  → %s", err, remote.Phase.Fix))
	}
	return client, err
}

// failed tells an error that is the server's or the gateway's, and gives the exit code for it.
func failed(cmd *cobra.Command, err error) error {
	fmt.Fprintln(cmd.ErrOrStderr(), "mcp-gateway:", err)
	return exit(2)
}

// closed ends the client. What could not be ended is told, and counts where nothing else has failed.
func closed(cmd *cobra.Command, client *gateway.Client, err error) error {
	if ending := client.Close(); ending != nil {
		if told := failed(cmd, fmt.Errorf("ending what was started: %w", ending)); err == nil {
			return told
		}
	}
	return err
}
