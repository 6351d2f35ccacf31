package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// complete says how a shell completes the values of flags and the arguments of all
// commands. Without an answer nothing is offered, least of all files where none are meant.
func (p *Program) complete(root *cobra.Command) {
	EachCommand(root, func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if complete := p.value(c, f); complete != nil {
				_ = c.RegisterFlagCompletionFunc(f.Name, complete) // only a second time fails
			}
		})
		if c.ValidArgsFunction == nil {
			c.ValidArgsFunction = p.Argument(c)
		}
		if c.ValidArgsFunction == nil {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	})
}

// value returns nil for what the shell does without advice: any file.
func (p *Program) value(c *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	if own := p.Value(c, f); own != nil {
		return own
	}
	what, _ := pflag.UnquoteUsage(f)
	switch strings.ToLower(what) {
	case "directory":
		return Directory
	case "file":
		return nil
	}
	return cobra.NoFileCompletions
}

// Directory completes the name of a directory.
func Directory(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// OneOf completes one of some values.
func OneOf(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// File completes the name of a file with one of some endings.
func File(endings ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(endings, cobra.ShellCompDirectiveFilterFileExt)
}
