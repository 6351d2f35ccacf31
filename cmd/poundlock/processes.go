package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/supervise"
)

// The two commands with which lock and elect start this program again.

func gateCommand() *cobra.Command {
	return &cobra.Command{
		Use:                supervise.GateCommand,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			code, err := supervise.Gate(args)
			return &cli.Status{Code: code, Err: err}
		},
	}
}

func watchdogCommand() *cobra.Command {
	return &cobra.Command{
		Use:                supervise.WatchdogCommand,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := supervise.Watch(args, os.Stdin, os.Stdout, os.Stderr); err != nil {
				return &cli.Status{Code: cli.ExitError, Err: err}
			}
			return nil
		},
	}
}
