package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"mcp-gateway/gateway/config"
)

func importCommand() *cobra.Command {
	var output string
	var force bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make a configuration from the file of an MCP client",
		Long: "Make a configuration from the file of an MCP client: Claude Desktop, Claude Code, Cursor (mcpServers) or VS Code (servers).\n" +
			"FILE may be - for standard input. Every credential becomes a reference to an environment variable; which ones to set is said\n" +
			"on standard error, and no value is ever printed.",
		Example: "  mcp-gateway import ~/.cursor/mcp.json -o gateway.yaml",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return importFile(cmd, args[0], output, force) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the configuration to `FILE` instead of standard output")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite the file that -o names")
	return cmd
}

func importFile(cmd *cobra.Command, name, output string, force bool) error {
	imported, err := config.LoadImport(name, cmd.InOrStdin())
	if err != nil {
		printProblems(cmd.ErrOrStderr(), nil, err)
		return errReported
	}
	if output == "" {
		if _, err := cmd.OutOrStdout().Write(imported.YAML); err != nil {
			return err
		}
	} else if err := writeNew(output, imported.YAML, force); err != nil {
		return err
	}
	printProblems(cmd.ErrOrStderr(), imported.Notes, nil)
	return printImported(cmd.ErrOrStderr(), imported, output)
}

// writeNew writes a file that only its owner reads.
func writeNew(path string, text []byte, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the configuration: %s is there already; choose another name, or overwrite it with --force", path)
	}
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return nil
}

// printImported says what is left to do.
func printImported(w io.Writer, imported *config.Imported, output string) error {
	if output == "" {
		output = "FILE"
	} else {
		fmt.Fprintf(w, "%s: written, %s\n", output, count(imported.Upstreams, "upstream"))
	}
	if len(imported.Variables) > 0 {
		fmt.Fprint(w, "\nSet these environment variables where the gateway starts:\n\n")
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, v := range imported.Variables {
			fmt.Fprintf(table, "  %s\t%s\n", v.Name, v.For)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\nThen check it: mcp-gateway check -c %s\n", output)
	return err
}
