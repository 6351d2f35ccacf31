package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// tidy makes help of all commands fit the terminal and say no default twice, and makes a
// wrong name of a command or a shell a wrong call.
func tidy(root *cobra.Command) {
	root.SetUsageFunc(usage)
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) { // of one command: nobody asks most processes for help
		c.Long = Fill(c.Long, helpColumns(root))
		help(c, args)
	})
	EachCommand(root, func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.DefValue == "0s" {
				f.DefValue = "0" // which help leaves out, whatever the flag's type is: its text says what 0 means
			}
		})
	})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, func(_ *cobra.Command, args []string) error { return helpOn(root, args) }
		case "completion":
			c.Args, c.RunE = nil, func(c *cobra.Command, args []string) error { return noShell(c, args) }
		}
	}
}

// usage prints how a command is called. It is cobra's own, except that flags fit the terminal,
// and that a command with others below it does nothing of its own. No template of package
// text/template takes part: with one the linker keeps each exported method of the program.
func usage(c *cobra.Command) error {
	w := c.OutOrStderr()
	fmt.Fprint(w, "Usage:")
	if c.Runnable() && !c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n  %s", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n  %s [command]", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(w, "\n\nExamples:\n%s", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprint(w, "\n\nAvailable Commands:")
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() || below.Name() == "help" {
				fmt.Fprintf(w, "\n  %-*s %s", below.NamePadding(), below.Name(), below.Short)
			}
		}
	}
	columns := helpColumns(c.Root())
	for _, flags := range []struct {
		title string
		set   *pflag.FlagSet
	}{{"Flags", c.LocalFlags()}, {"Global Flags", c.InheritedFlags()}} {
		if flags.set.HasAvailableFlags() {
			fmt.Fprintf(w, "\n\n%s:\n%s", flags.title, strings.TrimRight(flags.set.FlagUsagesWrapped(columns), "\n"))
		}
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n\nUse \"%s [command] --help\" for more information about a command.", c.CommandPath())
	}
	_, err := fmt.Fprintln(w)
	return err
}

// EachCommand calls f for a command and all below it.
func EachCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, below := range c.Commands() {
		EachCommand(below, f)
	}
}

// Fill breaks the lines of each paragraph anew, except of those with an indented line.
func Fill(text string, columns int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, " ") || strings.HasPrefix(p, "\t") || strings.Contains(p, "\n ") {
			continue
		}
		var b strings.Builder
		used := 0
		for _, word := range strings.Fields(p) {
			width := utf8.RuneCountInString(word)
			switch {
			case used > 0 && used+1+width > columns:
				b.WriteByte('\n')
				used = 0
			case used > 0:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += width
		}
		paragraphs[i] = b.String()
	}
	return strings.Join(paragraphs, "\n\n")
}

// Fit fills text if out is a terminal. Elsewhere it stays as it is.
func Fit(out io.Writer, text string) string {
	if columns, _, terminal := TerminalSize(out); terminal && columns > 0 {
		return Fill(text, columns)
	}
	return text
}

// Items breaks a list with commas into lines that fit behind a label of some columns, if out
// is a terminal. Elsewhere it is one line.
func Items(out io.Writer, label int, list string) []string {
	columns, _, terminal := TerminalSize(out)
	if !terminal || columns <= label {
		return []string{list}
	}
	return broken(list, columns-label)
}

// broken breaks a list behind commas.
func broken(list string, columns int) []string {
	const within = "\x00" // in place of a space within an item, where no line is broken
	items := strings.NewReplacer(", ", ", ", " ", within).Replace(list)
	return strings.Split(strings.ReplaceAll(Fill(items, columns), within, " "), "\n")
}

// usualColumns is how wide texts are that do not know where they are read.
const usualColumns = 80

// helpColumns is how wide help is: as the terminal, but no wider than one reads well.
func helpColumns(root *cobra.Command) int {
	const most = 120
	if columns, _, terminal := TerminalSize(root.OutOrStdout()); terminal && columns > 0 {
		return min(columns, most)
	}
	return usualColumns
}

func helpOn(root *cobra.Command, args []string) error {
	c, _, err := root.Find(args)
	if err != nil {
		return unknownCommand(root, args[0])
	}
	if c.Hidden && c.RunE != nil { // of another program: see Elsewhere
		return c.RunE(c, nil)
	}
	c.InitDefaultHelpFlag()
	return c.Help()
}

func unknownCommand(root *cobra.Command, name string) error {
	return Unknown(fmt.Errorf("there is no command %q", name), name, CommandNames(root), root.Name()+" --help lists them")
}

// noShell is completion without the name of a shell that it knows.
func noShell(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	return Usagef("there is no completion for %q", args[0]).WithHint("there is one for " + strings.Join(CommandNames(c), ", "))
}

// CommandNames are the commands below c that a user may call.
func CommandNames(c *cobra.Command) (names []string) {
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	return names
}
