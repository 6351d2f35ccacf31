package main

import (
	"errors"
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
	config check.Config
	faults map[string]int
}

func (f *modelFlags) register(s *pflag.FlagSet) {
	f.algorithmFlags.register(s, "1")
	f.defaultClients, f.unlimited = check.DefaultClients, true
	f.n, s.Lookup("n").DefValue = 3, "3" // four processes are many states
	s.Lookup("n").Usage += "; 2 where these have a replicated object, and no service for consensus"
	s.Lookup("clients").Usage += fmt.Sprintf(" (default %d there)", check.DefaultClients)
	s.Lookup("entries").Usage += ", or unlimited"
	f.registerWants(s, "(default 2 there)",
		"`[USER=]SET|..` of groups, among which each try of all users chooses, or of one, such as p1=a,b|!w; ! before a group that is exclusive")
	f.registerOperations(s, "for all, or one for each: N1,N2,.. (default 1 there)")
	s.StringToIntVar(&f.faults, "faults", nil,
		"how often each may happen: `NAME=NUMBER,..` of amnesia, crash, recover, suspect, cancel, drain, loss, dup and pause; -1 of amnesia and cancel is without end (default none)")
	s.Lookup("faults").DefValue = ""
	s.IntVar(&f.config.Decisions, "decisions", 0,
		"`number` of decisions of consensus, the first ones, that may be made while the failure detector is wrong (default as many as suspicions and crashes)")
	s.IntVar(&f.config.Spaced, "spaced", 0,
		"losses happen only while fewer than this `number` have not been made up for; 0: at any moment")
	s.StringSliceVar(&f.config.Properties, "property", nil,
		"`names` of properties, or all: progress, starvation, order and what else an algorithm has (default those of finite runs)")
	s.BoolVar(&f.config.Stay, "no-exit", false, "a process that is inside stays there")
	s.BoolVar(&f.config.UntilTold, "until-told", false, "whoever shares what it holds leaves only when it is told that somebody waits, where the algorithm tells that")
	s.BoolVar(&f.config.Downgrade, "downgrade", false, "whoever is inside alone in a group such as !r may come down to r")
	s.StringVar((*string)(&f.config.Timers), "timers", "", "`when` armed timers fire: any for at any moment, synchronous for when nothing of their process is on its way, or never (default the algorithm's)")
}

// timerNames are the values of --timers.
var timerNames = []string{string(check.AnyMoment), string(check.Synchronous), string(check.NeverFire)}

func (f *modelFlags) model(e catalog.Entry) error {
	i := e.Info()
	if i.Weak && !i.Consensus && !f.given("n") {
		f.n = 2 // who decide by messages of their own have too many states with three
	}
	s, err := f.read(i)
	if err != nil {
		return err
	}
	f.config.Use(s)
	if when := string(f.config.Timers); when != "" && !slices.Contains(timerNames, when) {
		return cli.Unknown(fmt.Errorf("--timers %q: want any, synchronous or never", when), when, timerNames, "")
	}
	if f.given("decisions") {
		if !i.Consensus {
			return cli.Usagef("--decisions %d: %s asks no service for consensus", f.config.Decisions, form(i))
		}
		if err := cli.AtLeast("--decisions", f.config.Decisions, 1); err != nil {
			return err
		}
	}
	left := maps.Clone(f.faults)
	for _, b := range f.config.Budgets() {
		*b.Most = f.faults[b.Name]
		delete(left, b.Name)
	}
	for name, n := range left {
		err := fmt.Errorf("--faults %s=%d: want amnesia, crash, recover, suspect, cancel, drain, loss, dup or pause", name, n)
		return cli.Unknown(err, name, faultNames(), "")
	}
	return nil
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
	l := line{command: "check", algorithm: algorithm, flags: newModelFlags()}
	l.adopt(set)
	text, _ := l.text() // values that were parsed once are again
	return text
}

// A line is a command line in the making. Its flags are those of the command itself, in the order
// in which one writes them, and parse each value: nothing is written that the command would refuse
// to read.
type line struct {
	command, algorithm string
	flags              *pflag.FlagSet
	err                error
}

func (l *line) give(flag string, value any) {
	if err := l.flags.Set(flag, fmt.Sprint(value)); err != nil {
		l.err = errors.Join(l.err, fmt.Errorf("--%s %v: %w", flag, value, err))
	}
}

// adopt takes over the flags that were given elsewhere, except for those that are given here.
func (l *line) adopt(from *pflag.FlagSet) {
	l.flags.VisitAll(func(to *pflag.Flag) {
		f := from.Lookup(to.Name)
		if f == nil || !f.Changed || to.Changed {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			to.Changed = true
			l.err = errors.Join(l.err, to.Value.(pflag.SliceValue).Replace(list.GetSlice()))
			return
		}
		l.give(to.Name, listText(f.Value))
	})
}

func (l *line) text() (string, error) {
	words := []string{"poundlock-lab", l.command, l.algorithm}
	l.flags.VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		switch {
		case !f.Changed:
			return
		case f.Name == "n":
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
	return strings.Join(words, " "), l.err
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
