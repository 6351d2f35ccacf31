// Package cli is what the programs poundlock and poundlock-lab have in common: how a command
// line is read, how help looks, what a wrong call is told, and how a program ends.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Program is commands under one name. It runs once, since commands keep the flags that
// they were given.
type Program struct {
	Name     string
	Short    string // what it is, in half a line
	Commands []*cobra.Command

	// Value and Argument complete the value of a flag, and the arguments of a command. Where
	// they know nothing, the placeholder of a flag says whether it names a file.
	Value    func(*cobra.Command, *pflag.Flag) cobra.CompletionFunc
	Argument func(*cobra.Command) cobra.CompletionFunc
}

// Root is the command above all others, which prints to out.
func (p *Program) Root(out io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           p.Name,
		Short:         p.Short,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	version := root.Flags().Bool("version", false, "print which version this is")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if !*version {
			return c.Help()
		}
		_, err := fmt.Fprintln(out, p.Name, Version())
		return err
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &Status{Code: ExitUsage, Err: FlagError(err), Hint: unknownFlag(cmd, err)}
	})
	root.AddCommand(p.Commands...)
	root.SetOut(out) // before the rest: cobra's completion keeps what it is then
	p.complete(root)
	tidy(root)
	return root
}

// Run executes the command of args, and returns the status with which the process is to end.
func (p *Program) Run(args []string) int {
	out := &stdout{file: os.Stdout}
	root := p.Root(out)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	status := new(Status)
	switch own := errors.As(err, &status); {
	case own:
	case out.err != nil:
		status = &Status{Code: ExitInternal, Err: out.err}
	case err == nil:
		return 0
	default:
		errors.As(badCall(root, args, err), &status)
	}
	if status.Code == ExitUsage && status.Hint == "" && !cmd.Hidden {
		status.Hint = "see: " + cmd.CommandPath() + " --help"
	}
	switch {
	case status.Err == nil:
	case status.Code == ExitUsage:
		fmt.Fprintln(os.Stderr, p.Name+":", withoutLayers(status.Err.Error()))
	default:
		fmt.Fprintln(os.Stderr, p.Name+":", WithoutLayer(status.Err.Error()))
	}
	if status.Hint != "" {
		fmt.Fprintln(os.Stderr, "hint:", status.Hint)
	}
	return status.Code
}

// badCall gives an error of cobra its status: all are about usage.
func badCall(root *cobra.Command, args []string, err error) error {
	_, rest, missing := root.Find(args)
	typed := slices.IndexFunc(rest, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if missing == nil || typed < 0 {
		return &Status{Code: ExitUsage, Err: err}
	}
	return unknownCommand(root, rest[typed])
}

// layers are names of packages with which errors begin.
var layers = []string{"check", "hunt", "sim", "workload", "live", "lab", "node", "server"}

// WithoutLayer takes the names of packages off that an error begins with: a user knows
// the program alone.
func WithoutLayer(text string) string {
	for {
		layer, rest, _ := strings.Cut(text, ": ")
		if !slices.Contains(layers, layer) {
			return text
		}
		text = rest
	}
}

// withoutLayers takes off, too, those behind what the user gave, as in: --delay "x": sim: "x" is no distribution. What
// is quoted stays.
func withoutLayers(text string) string {
	var kept []string
	quoted := false
	for part := range strings.SplitSeq(text, ": ") {
		if quoted || !slices.Contains(layers, part) {
			kept = append(kept, part)
		}
		quoted = quoted != (strings.Count(part, `"`)%2 == 1)
	}
	return strings.Join(kept, ": ")
}
