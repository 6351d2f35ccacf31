// Command poundlock runs commands under distributed locks, and serves those locks.
package main

import (
	"os"

	"github.com/poundlock/poundlock/internal/cli"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int { return program().Run(args) }

func program() *cli.Program {
	p := &cli.Program{
		Name:     "poundlock",
		Short:    "Distributed mutual exclusion: locks on a cluster of your own",
		Value:    flagValues,
		Argument: arguments,
	}
	p.Commands = append(cli.Elsewhere("poundlock-lab", "algorithms", "check", "hunt", "judge", "lab", "replay", "sim"),
		caCommand(),
		benchCommand(),
		benchClientCommand(),
		demoCommand(),
		electCommand(),
		kvCommand(),
		lockCommand(),
		locksCommand(),
		releaseCommand(),
		serveCommand(),
		peerCommand(),
		statusCommand(),
	)
	p.Commands = append(p.Commands, processes()...)
	return p
}
