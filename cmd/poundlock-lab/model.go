package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/check"
)

// modelFlags say what a check explores, and what a run that is replayed is one of.
// Flags that say how to search stand elsewhere.
type modelFlags struct {
	algorithmFlags
	wishFlags
	faults     map[string]int
	properties []string
	spaced     int
	decisions  int
	stay       bool
	timers     string
}

func (f *modelFlags) register(s *pflag.FlagSet) {
	f.algorithmFlags.register(s, "1")
	f.defaultClients, f.unlimited = check.DefaultClients, true
	f.n, s.Lookup("n").DefValue = 3, "3" // four processes are many states
	s.Lookup("n").Usage += "; 2 where these have a replicated object, and no service for consensus"
	s.Lookup("clients").Usage += fmt.Sprintf(" (default %d there)", check.DefaultClients)
	s.Lookup("entries").Usage += ", or unlimited"
	f.wishFlags.register(s)
	f.registerOperations(s, "for all, or one for each: N1,N2,.. (default 1 there)")
	s.StringToIntVar(&f.faults, "faults", nil,
		"how often each may happen: `NAME=NUMBER,..` of amnesia, crash, recover, suspect, cancel, drain, loss, dup and pause (default none)")
	s.Lookup("faults").DefValue = ""
	s.IntVar(&f.decisions, "decisions", 0,
		"`number` of decisions of consensus, the first ones, that may be made while the failure detector is wrong (default as many as suspicions and crashes)")
	s.IntVar(&f.spaced, "spaced", 0,
		"losses happen only while fewer than this `number` have not been made up for; 0: at any moment")
	s.StringSliceVar(&f.properties, "property", nil,
		"`names` of properties, or all: progress, starvation, order and what else an algorithm has (default those of finite runs)")
	s.BoolVar(&f.stay, "no-exit", false, "a process that is inside stays there")
	s.StringVar(&f.timers, "timers", "", "`when` armed timers fire: any for at any moment, synchronous for when nothing of their process is on its way, or never (default the algorithm's)")
}

// model makes the configuration from the flags.
func (f *modelFlags) model(e catalog.Entry, given func(flag string) bool) (c check.Config, err error) {
	i := e.Info()
	if i.Weak && !i.Consensus && !given("n") {
		f.n = 2 // who decide by messages of their own have too many states with three
	}
	c.Properties, c.Spaced, c.Stay, c.Timers = f.properties, f.spaced, f.stay, check.Timers(f.timers)
	s, err := f.read(i, given, 0, f.wishFlags.wanted)
	if err != nil {
		return c, err
	}
	c.Use(s)
	switch c.Decisions = f.decisions; {
	case given("decisions") && !i.Consensus:
		return c, cli.Usagef("--decisions %d: %s asks no service for consensus", f.decisions, form(i))
	case given("decisions") && f.decisions < 1:
		return c, cli.Usagef("--decisions %d: want at least 1", f.decisions)
	}
	left := maps.Clone(f.faults)
	for _, b := range c.Budgets() {
		*b.Most = f.faults[b.Name]
		delete(left, b.Name)
	}
	for name, n := range left {
		return c, cli.Usagef("--faults %s=%d: want amnesia, crash, recover, suspect, cancel, drain, loss, dup or pause", name, n)
	}
	return c, nil
}

// newModelFlags are the flags that say what a model is, in the order in which one
// writes them.
func newModelFlags() *pflag.FlagSet { return inOrder(new(modelFlags).register) }

// inOrder are the flags that register registers, in that order.
func inOrder(register func(*pflag.FlagSet)) *pflag.FlagSet {
	s := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.SortFlags = false
	register(s)
	return s
}

// modelCommand is the command line with those flags of set that say what a model
// is: a file with a run begins with it, and replay reads it.
func modelCommand(algorithm string, set *pflag.FlagSet) string {
	return commandLine("check", algorithm, newModelFlags(), set)
}

// commandLine is a command with those flags of set that were given, of those that are
// known and in their order.
func commandLine(command, algorithm string, known, set *pflag.FlagSet) string {
	words := []string{"poundlock-lab", command, algorithm}
	known.VisitAll(func(known *pflag.Flag) {
		f := set.Lookup(known.Name)
		if !f.Changed {
			return
		}
		name := "--" + f.Name
		if f.Name == "n" {
			name = "-n"
		}
		switch f.Value.Type() {
		case "bool":
			words = append(words, strings.TrimSuffix(name+"="+f.Value.String(), "=true"))
		case "stringArray":
			for _, v := range f.Value.(pflag.SliceValue).GetSlice() {
				words = append(words, name, v)
			}
		default:
			words = append(words, name, listText(f.Value))
		}
	})
	return strings.Join(words, " ")
}

// listText is the value of a flag as one would type it.
func listText(v pflag.Value) string {
	switch v.Type() {
	case "stringSlice":
		return strings.Join(v.(pflag.SliceValue).GetSlice(), ",")
	case "stringToInt":
		pairs := strings.Split(strings.Trim(v.String(), "[]"), ",")
		slices.Sort(pairs) // it is a map
		return strings.Join(pairs, ",")
	}
	return v.String()
}
