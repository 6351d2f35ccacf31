package main

import (
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/hunt"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/world"
)

// system gives what runs, but for options that have their usual values.
func (l *line) system(i protocol.Info, linked bool, s world.System, usual func(protocol.Option) int64) {
	l.form(i, linked)
	s.Flags(i, usual, l.give)
}

func (l *line) form(i protocol.Info, linked bool) {
	if i.Variant != "" {
		l.give("variant", i.Variant)
	}
	if linked {
		l.give("link", true)
	}
}

const none = math.MinInt64

// commandOf is the command that says what v is a run of: a check, or a simulation that
// violates the same property.
func commandOf(i protocol.Info, linked bool, v hunt.Violation) (string, error) {
	if v.Timed {
		return simulationOf(i, linked, v)
	}
	c := v.Check
	l := line{command: "check", algorithm: i.Name, flags: newModelFlags()}
	l.system(i, linked, c.System(), func(o protocol.Option) int64 {
		switch waits := slices.Contains(c.Properties, check.MakesProgress) || slices.Contains(c.Properties, check.Starvation); {
		case o.InCheck != nil && waits:
			return none // for Model.Lasts counts where the option is not given
		case o.InCheck != nil:
			return o.InCheck(c.Config)
		}
		return o.Default(c.Config)
	})
	if c.Decisions > 0 {
		l.give("decisions", c.Decisions)
	}
	if faults := c.Faults(); len(faults) > 0 {
		l.give("faults", strings.Join(faults, ","))
	}
	if c.Spaced > 0 {
		l.give("spaced", c.Spaced)
	}
	if c.Downgrade {
		l.give("downgrade", true)
	}
	l.give("property", c.Properties[0])
	return l.text()
}

func simulationOf(i protocol.Info, linked bool, v hunt.Violation) (string, error) {
	c := v.Simulation
	f := &simFlags{}
	l := line{command: "sim", algorithm: i.Name, flags: inOrder(f.register)}
	l.system(i, linked, c.System(), func(o protocol.Option) int64 { return o.Default(c.Config) })
	if f.config = c; c.Detect <= 0 {
		f.config.Detect = sim.DefaultDetect
	}
	if c.AmnesiaEvery+c.CrashEvery+c.RecoverEvery+c.PauseEvery+c.PartitionEvery == 0 {
		f.config.FaultsUntil = 0
	}
	if v.Property != hunt.Stuck {
		f.config.Patience = sim.DefaultPatience
	}
	always := []string{"seed", "delay", "think", "hold"}
	l.flags.VisitAll(func(g *pflag.Flag) {
		g.Changed = g.Changed || slices.Contains(always, g.Name) || g.Value.String() != g.DefValue
	})
	return l.text()
}

// repeatCommand is the command that makes the run of v again, with what was given to the
// hunt.
func (f *huntFlags) repeatCommand(i protocol.Info, linked bool, given *pflag.FlagSet, beyond int, v hunt.Violation) (string, error) {
	l := line{command: "hunt", algorithm: i.Name, flags: inOrder(new(huntFlags).registerRuns)}
	l.form(i, linked)
	if beyond > 0 {
		l.give("beyond", beyond)
	}
	l.give("seed", f.config.Seed)
	l.give("run", v.Run)
	l.adopt(given)
	return l.text()
}
