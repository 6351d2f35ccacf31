package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/demo"
	"github.com/poundlock/poundlock/internal/devcluster"
	"github.com/poundlock/poundlock/internal/supervise"
)

const (
	demoWorkerName = "demo-worker"

	// tetherName is the command before that of a process that bench or demo starts: it
	// ends with the process that started it, however that ends.
	tetherName = "tethered"
)

// processes are the commands with which this program starts itself again.
func processes() (all []*cobra.Command) {
	for name, run := range map[string]func(c *cobra.Command, args []string) error{
		demoWorkerName:     func(c *cobra.Command, args []string) error { return demo.Work(c.Context(), args) },
		devcluster.Command: func(_ *cobra.Command, args []string) error { return devcluster.Run(args) },
		supervise.GateCommand: func(_ *cobra.Command, args []string) error {
			code, err := supervise.Gate(args)
			return &cli.Status{Code: code, Err: err}
		},
		supervise.WatchdogCommand: func(_ *cobra.Command, args []string) error {
			return supervise.Watch(args, os.Stdin, os.Stdout, os.Stderr, sayFarewell)
		},
		tetherName: func(_ *cobra.Command, args []string) error {
			load.Tether()
			if code := run(args); code != 0 {
				return &cli.Status{Code: code}
			}
			return nil
		},
	} {
		all = append(all, &cobra.Command{
			Use:                name,
			Hidden:             true,
			DisableFlagParsing: true,
			RunE:               func(c *cobra.Command, args []string) error { return cli.Exit(cli.ExitError, run(c, args)) },
		})
	}
	return all
}
