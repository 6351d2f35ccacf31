package main

import (
	"os"

	"github.com/spf13/cobra"

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
			return &exitStatus{code: code, err: err}
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
				return &exitStatus{code: exitError, err: err}
			}
			return nil
		},
	}
}
