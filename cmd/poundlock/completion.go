package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/internal/supervise"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/check"
)

// Files that flags and arguments name, by their endings.
var endings = map[string][]string{
	"config": {"yaml", "yml"}, "tls-ca": {"pem", "crt"}, "tls-cert": {"pem", "crt"}, "tls-key": {"key", "pem"},
	"svg": {"svg"}, "scenario": {"txt"}, "replay": {"txt"}, "judge": {"jsonl", "json"},
}

// Values of flags, where there are few.
var choices = map[string][]string{
	"on-loss":   {string(supervise.Term), string(supervise.Kill), string(supervise.Warn)},
	"log-level": {"debug", "info", "warn", "error"},
	"channels":  {"fifo", "unordered"},
	"registers": {string(protocol.Atomic), string(protocol.Safe)},
	"fence":     {"off", "on", "no-floor", "piggyback"},
	"timers":    {"any", "synchronous", "never"},
	"quorum":    {"two-thirds", "majority"},
	"reduce":    {"order", "symmetry", "none"},
	"cache":     {noCache},
}

// completeValues says how a shell completes the values of flags and the arguments of all
// commands. Without an answer nothing is offered, least of all files where none are meant.
func completeValues(root *cobra.Command) {
	eachCommand(root, func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if complete := flagValues(c, f); complete != nil {
				_ = c.RegisterFlagCompletionFunc(f.Name, complete) // only a second time fails
			}
		})
		if c.ValidArgsFunction == nil {
			c.ValidArgsFunction = arguments(c)
		}
	})
}

func flagValues(c *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	what, _ := pflag.UnquoteUsage(f)
	switch what = strings.ToLower(what); {
	case f.Name == "on-loss" && c.Name() == "elect":
		return oneOf(choices[f.Name][:2])
	case f.Name == "algorithm":
		return oneOf(algorithmNames())
	case f.Name == "variant":
		return afterAlgorithm(variants)
	case f.Name == "property":
		return afterAlgorithm(knownProperties)
	case f.Name == "name" && c.Name() == "serve":
		return serverNames
	case choices[f.Name] != nil:
		return oneOf(choices[f.Name])
	case endings[f.Name] != nil:
		return files(endings[f.Name])
	case what == "directory":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case what == "file":
		return nil // any
	}
	return cobra.NoFileCompletions
}

func arguments(c *cobra.Command) cobra.CompletionFunc {
	switch c.Name() {
	case "sim", "check":
		return first(algorithmNames())
	case "hunt":
		return first(append(algorithmNames(), everything))
	case "run", "report":
		var names []string
		for _, e := range experiments {
			names = append(names, cobra.CompletionWithDesc(e.Name, e.Title))
		}
		return first(names)
	case "replay", "judge":
		return files(endings[c.Name()])
	case "ca":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case "lock", "elect":
		return afterDashes
	}
	return cobra.NoFileCompletions
}

func oneOf(values []string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

func files(endings []string) cobra.CompletionFunc {
	return cobra.FixedCompletions(endings, cobra.ShellCompDirectiveFilterFileExt)
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

// afterDashes leaves a command and its arguments to the shell; the names of locks before
// it are anybody's.
func afterDashes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	if slices.Contains(os.Args, "--") { // cobra does not tell: it adds two dashes itself
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
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

// serverNames are those of --servers, or of the environment or file.
func serverNames(c *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	var f clusterFlags
	if f.fill(c) != nil { // which may name the file
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if f.file = c.Flags().Lookup("config").Value.String(); f.fill(c) == nil {
		table, _ := slots.Parse(c.Flags().Lookup("servers").Value.String())
		for _, p := range table {
			names = append(names, cobra.CompletionWithDesc(p.Name, p.Addr))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

const (
	completionPatience = time.Second // for the servers, while somebody has pressed the tab key
	mostNames          = 100
)

// lockNames completes the name of a lock that somebody holds or waits for: it asks the
// servers, and offers nothing when they do not answer soon.
func (f *observerFlags) lockNames(c *cobra.Command, args []string, begin string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	f.timeout = completionPatience
	o, err := f.observe(c)
	if err != nil {
		cobra.CompDebugln(err.Error(), false) // to $BASH_COMP_DEBUG_FILE
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer o.close()
	ctx, cancel := context.WithTimeout(cmp.Or(c.Context(), context.Background()), completionPatience)
	defer cancel()
	answers := o.Sessions(ctx)
	s := statusOf(answers)
	o.Locks(ctx, answers, server.LockQuery{Prefix: begin, Few: mostNames}, func(same []*server.Lock) bool {
		for _, l := range s.add(same) {
			holder := "nobody holds it"
			for _, h := range l.Holders {
				holder = "held by " + who(h.Label, h.ID)
			}
			names = append(names, cobra.CompletionWithDesc(l.Name, holder))
		}
		return len(names) < mostNames
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
