// Command poundlock runs commands under distributed locks, serves those locks,
// and simulates and checks the algorithms behind them.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

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
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exitStatus{code: exitUsage, err: flagError(err), hint: unknownFlag(cmd, err)}
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
	out := &stdout{file: os.Stdout}
	root.SetOut(out)
	tidy(root) // after SetOut: cobra's completion keeps what it is then
	cmd, err := root.ExecuteC()
	status := new(exitStatus)
	switch own := errors.As(err, &status); {
	case own:
	case out.err != nil:
		status = &exitStatus{code: exitInternal, err: out.err}
	case err == nil:
		return 0
	default:
		errors.As(badCall(root, args, err), &status)
	}
	if status.code == exitUsage && status.hint == "" && !cmd.Hidden {
		status.hint = "see: " + cmd.CommandPath() + " --help"
	}
	if status.err != nil {
		fmt.Fprintln(os.Stderr, "poundlock:", withoutLayer(status.err.Error()))
	}
	if status.hint != "" {
		fmt.Fprintln(os.Stderr, "hint:", status.hint)
	}
	return status.code
}

// badCall gives an error of cobra its status: all are about usage.
func badCall(root *cobra.Command, args []string, err error) error {
	_, rest, missing := root.Find(args)
	typed := slices.IndexFunc(rest, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if missing == nil || typed < 0 {
		return &exitStatus{code: exitUsage, err: err}
	}
	return unknownCommand(root, rest[typed])
}

// withoutLayer takes the names of packages off that an error begins with: a user knows
// poundlock alone.
func withoutLayer(text string) string {
	for {
		layer, rest, _ := strings.Cut(text, ": ")
		if !slices.Contains([]string{"check", "hunt", "sim", "lab", "node", "server"}, layer) {
			return text
		}
		text = rest
	}
}
