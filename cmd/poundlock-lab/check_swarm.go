package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/check"
)

type swarmFlags struct {
	swarm bool
	check.Swarm
}

// swarmOnly are those that mean something with --swarm only.
var swarmOnly = []string{"searches", "bits", "depth", "for", "seed"}

func (f *swarmFlags) register(s *pflag.FlagSet) {
	s.BoolVar(&f.swarm, "swarm", false,
		"look for violations with several searches that keep two bits a state: for models that are too large; never decides that a property holds")
	s.IntVar(&f.Searches, "searches", 16, "with --swarm: `number` of searches")
	s.IntVar(&f.Bits, "bits", 27, "with --swarm: each search has a table of 2^`BITS` bits (27: 16 MiB)")
	s.IntVar(&f.Depth, "depth", 10_000, "with --swarm: `steps` of the longest path; some searches stay less deep")
	s.DurationVar(&f.For, "for", 0, "with --swarm: time for all searches together (default until each has ended)")
	s.Uint64Var(&f.Seed, "seed", 1, "with --swarm: `number` that fixes what is random")
}

// config returns what a check is asked for, nil without --swarm.
func (f *swarmFlags) config(given func(flag string) bool) (*check.Swarm, error) {
	if !f.swarm {
		if k := slices.IndexFunc(swarmOnly, given); k >= 0 {
			return nil, cli.Usagef("--%s is for a swarm: add --swarm", swarmOnly[k])
		}
		return nil, nil
	}
	if given("exact") {
		return nil, cli.Usagef("--swarm keeps bits and --exact whole states: leave out one of them")
	}
	if err := cmp.Or(cli.AtLeast("--searches", f.Searches, 1), cli.AtLeast("--bits", f.Bits, 1), cli.AtLeast("--depth", f.Depth, 1)); err != nil {
		return nil, err
	}
	if f.For < 0 || f.For == 0 && given("for") {
		return nil, cli.Usagef("--for %v: want more than 0", f.For)
	}
	return &f.Swarm, nil
}

func verdictLine(v check.Verdict) string {
	switch {
	case v.Verdict == check.Holds:
		return fmt.Sprintf("holds: no violation in %s", check.Plural(v.States, "state"))
	case v.Searches > 0:
		return fmt.Sprintf("undecided: no violation found in %s visited, coverage unknown", check.Plural(v.States, "state"))
	}
	return fmt.Sprintf("undecided: no violation in %s", check.Plural(v.States, "state"))
}
