package main

import (
	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/cli"
)

// tetherName is the command before that of a process that bench or demo starts: it
// ends with the process that started it, however that ends.
const tetherName = "tethered"

func tetherCommand() *cobra.Command {
	return &cobra.Command{
		Use:                tetherName + " COMMAND",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			load.Tether()
			if code := run(args); code != 0 {
				return &cli.Status{Code: code}
			}
			return nil
		},
	}
}
