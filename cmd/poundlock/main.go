// Command poundlock runs commands under distributed locks, serves those locks,
// and simulates and checks the algorithms behind them.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// Exit statuses, in the spirit of sysexits.h and env(1).
const (
	exitHolds       = 0
	exitError       = 1
	exitViolated    = 1
	exitUndecided   = 3
	exitUsage       = 64
	exitNoQuorum    = 69
	exitInternal    = 70 // an algorithm's false claim, or output that cannot be written
	exitLost        = 74
	exitNotAcquired = 75
	exitCannotRun   = 126
	exitNotFound    = 127
)

// An exitStatus ends the program with its code. err may be nil: nothing is printed.
type exitStatus struct {
	code int
	err  error
	hint string // one line on what to do, "" for none
}

func (e *exitStatus) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitStatus) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exitStatus{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// noArguments checks the arguments of a command that takes flags only.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument: what is %q?", cmd.Name(), args[0])
	}
	return nil
}

func main() {
	os.Exit(run(os.Args[1:]))
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "poundlock",
		Short:         "Distributed mutual exclusion: locks, and the evidence that they work",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.Flags().Bool("version", false, "print which version this is") // cobra's own has a shorthand
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return &exitStatus{code: exitUsage, err: flagError(err)}
	})
	root.AddCommand(
		algorithmsCommand(),
		caCommand(),
		benchCommand(),
		benchClientCommand(),
		checkCommand(),
		demoCommand(),
		demoWorkerCommand(),
		devClusterCommand(),
		electCommand(),
		gateCommand(),
		huntCommand(),
		judgeCommand(),
		labCommand(),
		lockCommand(),
		locksCommand(),
		releaseCommand(),
		replayCommand(),
		serveCommand(),
		simCommand(),
		statusCommand(),
		tetherCommand(),
		watchdogCommand(),
	)
	return root
}

func run(args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	status := &exitStatus{code: exitUsage, err: err} // cobra's own errors are about usage
	errors.As(err, &status)
	if status.code == exitUsage && status.hint == "" && !cmd.Hidden {
		status.hint = "see: " + cmd.CommandPath() + " --help"
	}
	if status.err != nil {
		fmt.Fprintln(os.Stderr, "poundlock:", status.err)
	}
	if status.hint != "" {
		fmt.Fprintln(os.Stderr, "hint:", status.hint)
	}
	return status.code
}
