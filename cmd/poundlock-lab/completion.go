package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/check"
)

func flagValues(_ *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	switch f.Name {
	case "algorithm":
		return cli.OneOf(algorithmNames()...)
	case "variant":
		return afterAlgorithm(variants)
	case "property":
		return listed(afterAlgorithm(knownProperties))
	case "channels":
		return cli.OneOf("fifo", "unordered")
	case "registers":
		return cli.OneOf(string(protocol.Atomic), string(protocol.Safe))
	case "fence":
		return cli.OneOf("off", "on", "no-floor", "piggyback")
	case "timers":
		return cli.OneOf(timerNames...)
	case "quorum":
		return cli.OneOf("two-thirds", "majority")
	case "reduce":
		return listed(cli.OneOf(reductionNames...))
	case "faults":
		return listed(begun(faultNames()))
	case "option":
		return afterAlgorithm(options)
	case "selection", "admission":
		return afterAlgorithm(func(algorithm, variant string) (values []string) {
			for _, text := range options(algorithm, variant) {
				if value, own := strings.CutPrefix(text, f.Name+"="); own && value != "" {
					values = append(values, value)
				}
			}
			return values
		})
	case "cache":
		return cli.OneOf(noCache)
	case "on":
		return cli.OneOf(drivers...)
	case "svg":
		return cli.File("svg")
	case "scenario":
		return cli.File("txt")
	}
	return nil
}

// listed completes the last one of names with commas between them.
func listed(names cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		found, directive := names(c, args, typed[len(before):])
		found = slices.Clone(found)
		for i := range found {
			found[i] = before + found[i]
		}
		return found, directive
	}
}

// begun completes names behind which a value follows.
func begun(names []string) cobra.CompletionFunc {
	for i := range names {
		names[i] += "="
	}
	return cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
}

func faultNames() (names []string) {
	for _, b := range new(check.Config).Budgets() {
		names = append(names, b.Name)
	}
	return names
}

func arguments(c *cobra.Command) cobra.CompletionFunc {
	switch c.Name() {
	case "sim", "check":
		return first(algorithmNames())
	case "hunt":
		return first(append(algorithmNames(), everything))
	case "run", "report":
		all := experiments
		if c.Name() == "report" {
			all = recomputable
		}
		var names []string
		for _, e := range all {
			names = append(names, cobra.CompletionWithDesc(e.Name, e.Title))
		}
		return first(names)
	case "replay":
		return cli.File("txt")
	case "judge":
		return cli.File("jsonl", "json")
	}
	return nil
}

// first completes the first argument, and no other one.
func first(values []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

func algorithmNames() (names []string) {
	for _, e := range catalog.All {
		if i := e.Info(); i.Variant == "" {
			names = append(names, cobra.CompletionWithDesc(i.Name, i.Title))
		}
	}
	return names
}

// afterAlgorithm completes what depends on the algorithm that stands before it.
func afterAlgorithm(values func(algorithm, variant string) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		variant := ""
		if f := c.Flags().Lookup("variant"); f != nil {
			variant = f.Value.String()
		}
		return values(args[0], variant), cobra.ShellCompDirectiveNoFileComp
	}
}

func variants(algorithm, _ string) (names []string) {
	for _, e := range catalog.All {
		if i := e.Info(); i.Name == algorithm && i.Variant != "" {
			names = append(names, cobra.CompletionWithDesc(i.Variant, i.Title))
		}
	}
	return names
}

// options are NAME= of those without names for their values, and NAME=VALUE of the others.
func options(algorithm, variant string) (names []string) {
	e := catalog.Find(algorithm, variant)
	if e == nil {
		return nil
	}
	for _, o := range e.Info().Options {
		if len(o.Values) == 0 {
			names = append(names, o.Name+"=")
		}
		for _, v := range o.Values {
			names = append(names, o.Name+"="+v)
		}
	}
	return names
}

// knownProperties are those that a check of an algorithm knows: it names them when it is
// asked for another one, before it explores anything.
func knownProperties(algorithm, variant string) []string {
	e := catalog.Find(algorithm, variant)
	if e == nil {
		return nil
	}
	c := check.Config{Config: protocol.Config{N: 3}, Properties: []string{"?"}, MaxMemory: 1 << 20}
	var unknown *check.PropertyError
	if _, err := e.Check(c); !errors.As(err, &unknown) {
		return nil
	}
	return append(slices.Clone(unknown.Known), "all")
}
