package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/check"
)

// swarmFlags are the flags of a bit-state swarm.
type swarmFlags struct {
	swarm    bool
	searches int
	bits     int
	depth    int
	length   time.Duration
	seed     uint64
}

// swarmOnly are those that mean something with --swarm only.
var swarmOnly = []string{"searches", "bits", "depth", "for", "seed"}

func (f *swarmFlags) register(s *pflag.FlagSet) {
	s.BoolVar(&f.swarm, "swarm", false,
		"look for violations with several searches that keep two bits a state: for models that are too large; never decides that a property holds")
	s.IntVar(&f.searches, "searches", 16, "with --swarm: `number` of searches")
	s.IntVar(&f.bits, "bits", 27, "with --swarm: each search has a table of 2^`BITS` bits (27: 16 MiB)")
	s.IntVar(&f.depth, "depth", 10_000, "with --swarm: `steps` of the longest path; some searches stay less deep")
	s.DurationVar(&f.length, "for", 0, "with --swarm: time for all searches together (default until each has ended)")
	s.Uint64Var(&f.seed, "seed", 1, "with --swarm: `number` that fixes what is random")
}

// config returns what a check is asked for, nil without --swarm.
func (f *swarmFlags) config(given func(flag string) bool) (*check.Swarm, error) {
	if !f.swarm {
		for _, name := range swarmOnly {
			if given(name) {
				return nil, cli.Usagef("--%s is for a swarm: add --swarm", name)
			}
		}
		return nil, nil
	}
	if given("exact") {
		return nil, cli.Usagef("--swarm keeps bits and --exact whole states: leave out one of them")
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"searches", f.searches}, {"bits", f.bits}, {"depth", f.depth}} {
		if n.value < 1 {
			return nil, cli.Usagef("--%s %d: want at least 1", n.flag, n.value)
		}
	}
	if f.length < 0 || f.length == 0 && given("for") {
		return nil, cli.Usagef("--for %v: want more than 0", f.length)
	}
	return &check.Swarm{Searches: f.searches, Bits: f.bits, Depth: f.depth, For: f.length, Seed: f.seed}, nil
}

// verdictLine says what a check without a violation found.
func verdictLine(v check.Verdict) string {
	switch {
	case v.Verdict == check.Holds:
		return fmt.Sprintf("holds: no violation in %s", check.Plural(v.States, "state"))
	case v.Searches > 0:
		return fmt.Sprintf("undecided: no violation found in %s visited, coverage unknown", check.Plural(v.States, "state"))
	}
	return fmt.Sprintf("undecided: no violation in %s", check.Plural(v.States, "state"))
}
