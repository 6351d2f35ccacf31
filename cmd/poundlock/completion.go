package main

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/server/status"
)

func flagValues(c *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	switch f.Name {
	case "on-loss":
		if c.Name() == "elect" {
			return cli.OneOf("term", "kill")
		}
		return cli.OneOf("term", "kill", "warn")
	case "log-level":
		return cli.OneOf("debug", "info", "warn", "error")
	case "name":
		if c.Flags().Lookup("servers") != nil && c.Name() == "serve" {
			return serverNames
		}
	case "config":
		return cli.File("yaml", "yml")
	case "tls-ca", "tls-cert":
		return cli.File("pem", "crt")
	case "tls-key":
		return cli.File("key", "pem")
	}
	return nil
}

func arguments(c *cobra.Command) cobra.CompletionFunc {
	switch c.Name() {
	case "ca":
		return cli.Directory
	case "lock", "elect", "with":
		return afterDashes
	}
	return nil
}

// afterDashes leaves a command and its arguments to the shell; the names of locks before
// it are anybody's.
func afterDashes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	if slices.Contains(os.Args, "--") { // cobra does not tell: it adds two dashes itself
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
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
	f.soon(c, func(ctx context.Context, o *observer) {
		status.Ask(ctx, o.Observer, server.LockQuery{Prefix: begin, Few: mostNames}, func(l status.Lock) bool {
			holder := "nobody holds it"
			if len(l.Holders) > 0 {
				holder = "held by " + l.Who()
			}
			names = append(names, cobra.CompletionWithDesc(l.Name, holder))
			return len(names) < mostNames
		})
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// clientNames completes the label of a client that holds the lock that was named or waits for it, or the id of one
// without.
func (f *observerFlags) clientNames(c *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	f.soon(c, func(ctx context.Context, o *observer) {
		l, err := one(ctx, o.Observer, args[0])
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
		}
		for _, h := range l.Holders {
			names = append(names, cobra.CompletionWithDesc(cmp.Or(h.Label, h.ID), "holds it"))
		}
		for _, w := range l.Waiters {
			names = append(names, cobra.CompletionWithDesc(cmp.Or(w.Label, w.ID), "waits for it"))
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// soon asks the servers, as long as somebody waits who has pressed the tab key.
func (f *observerFlags) soon(c *cobra.Command, ask func(context.Context, *observer)) {
	f.timeout = completionPatience
	o, err := f.observe(c)
	if err != nil {
		cobra.CompDebugln(err.Error(), false) // to $BASH_COMP_DEBUG_FILE
		return
	}
	defer o.close()
	ctx, cancel := context.WithTimeout(cmp.Or(c.Context(), context.Background()), completionPatience)
	defer cancel()
	ask(ctx, o)
}
