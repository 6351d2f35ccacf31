// Command poundlock-lab is the laboratory: it simulates, checks and hunts in the algorithms of
// poundlock and others, runs experiments, and judges recorded histories.
package main

import (
	"os"

	"github.com/poundlock/poundlock/internal/cli"
)

func main() {
	os.Exit(program().Run(os.Args[1:]))
}

// refused is the end of a command that was called wrongly, or whose algorithm cannot be run so.
func refused(err error) error {
	return &cli.Status{Code: cli.ExitUsage, Err: err, Hint: modelHint(err)}
}

// ended is the end of a command whose result was printed, unless err says that it was not.
func ended(err error, violated bool) error {
	if err == nil && violated {
		return &cli.Status{Code: cli.ExitViolated}
	}
	return cli.Exit(cli.ExitInternal, err)
}

func program() *cli.Program {
	p := &cli.Program{
		Name:     "poundlock-lab",
		Short:    "The evidence that locks work: run, check and measure their algorithms",
		Value:    flagValues,
		Argument: arguments,
	}
	p.Commands = append(cli.Elsewhere("poundlock", "bench", "ca", "demo", "elect", "lock", "locks", "release", "serve", "status"),
		algorithmsCommand(),
		checkCommand(),
		huntCommand(),
		judgeCommand(),
		labCommand(),
		processCommand(),
		replayCommand(),
		simCommand(),
	)
	return p
}
