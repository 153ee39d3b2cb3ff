package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// flagError names the flag that was meant, or where all of them are told.
func flagError(cmd *cobra.Command, err error) error {
	var unknown interface{ GetSpecifiedName() string }
	if !errors.As(err, &unknown) {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	// cobra finds the command that was meant; a flag is found as one.
	known := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, usage := range strings.Split(cmd.Flags().FlagUsages()+cmd.InheritedFlags().FlagUsages(), "\n") {
		if _, rest, ok := strings.Cut(usage, "--"); ok && strings.TrimSpace(usage) != "" {
			name, _, _ := strings.Cut(rest, " ")
			known.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
		}
	}
	if meant := known.SuggestionsFor(strings.TrimLeft(unknown.GetSpecifiedName(), "-")); len(meant) > 0 {
		return fmt.Errorf("%w; did you mean --%s?", err, strings.Join(meant, " or --"))
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}
