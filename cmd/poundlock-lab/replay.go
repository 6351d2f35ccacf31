package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/diagram"
	"github.com/poundlock/poundlock/verify/scenario"
)

type replayFlags struct {
	modelFlags
	drawings
	algorithm string
	all       bool
	json      bool
}

func replayCommand() *cobra.Command {
	f := &replayFlags{}
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Step through a run that check or hunt wrote",
		Long: `Step through a run that check or hunt wrote, and say where it violates a property.

The file says what it is a run of, in its first comment that is a command:

  # poundlock-lab check sigma --variant literal -n 3 --faults amnesia=1

Flags override that. On a terminal keys choose: n or Enter the next step, p the one
before, digits and Enter a step, q the end; elsewhere, and with --all, the whole run
is printed. A loop is taken a second time, to see that it ends where it began.

Exit status: 0 no violation, 1 a violation, 64 usage, which includes a step that is
not possible, 70 when a result cannot be written.`,
		Example: `  poundlock-lab check sigma --variant literal -n 3 --faults amnesia=1 \
    --trace two-holders.txt
  poundlock-lab replay two-holders.txt
  poundlock-lab replay two-holders.txt --all --svg two-holders.svg`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("replay wants one file, not %d", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	s := c.Flags()
	f.modelFlags.register(s)
	s.StringVar(&f.algorithm, "algorithm", "", "`name` of the algorithm, instead of the one that the file says")
	f.drawings.register(s)
	s.BoolVar(&f.all, "all", false, "print the whole run, on a terminal too")
	s.BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

func (f *replayFlags) run(c *cobra.Command, path string) error {
	text, err := readText(path)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if err := f.adopt(c.Flags(), path, string(text)); err != nil {
		return err
	}
	e, err := f.find(f.algorithm)
	if err != nil {
		return err
	}
	if err := f.model(e); err != nil {
		return err
	}
	steps, err := f.names(e.Info()).Parse(bytes.NewReader(text))
	if err != nil {
		return cli.Usagef("%s: %w", path, err)
	}
	if err := differ(append(f.files(), fileFlag{"the run", path})...); err != nil {
		return err
	}
	if err := writable(f.files()...); err != nil {
		return err
	}
	w, err := e.Walk(f.config)
	if err != nil {
		return refused(err)
	}
	p := replay{Command: modelCommand(f.algorithm, c.Flags())}
	if err := p.take(w, steps); err != nil {
		return cli.Usagef("%s: %w", path, err)
	}
	return ended(f.show(c.OutOrStdout(), p), p.Violated != nil)
}

// adopt takes over what the file says about its model, but for what was given on the
// command line.
func (f *replayFlags) adopt(given *pflag.FlagSet, path, text string) error {
	words := scenario.Command(text)
	if words == nil {
		if f.algorithm == "" {
			return cli.Usagef("%s does not say what it is a run of", path).
				WithHint("begin it with a line such as: # poundlock-lab check sigma -n 4 --clients 2; or give --algorithm")
		}
		return nil
	}
	said := checkCommand()
	bad := func(err error) error {
		return cli.Usagef("%s: \"# poundlock-lab %s\": %w", path, strings.Join(words, " "), err)
	}
	if words[0] != said.Name() {
		return bad(fmt.Errorf("want %s", said.Name()))
	}
	if err := said.ParseFlags(words[1:]); err != nil {
		return bad(cli.FlagError(err))
	}
	if args := said.Flags().Args(); len(args) != 1 {
		return bad(fmt.Errorf("want one algorithm, not %d", len(args)))
	} else if f.algorithm == "" {
		f.algorithm = args[0]
	}
	model := line{flags: newModelFlags()}
	model.adopt(said.Flags()) // no other flags of a check
	to := line{flags: given}
	to.adopt(model.flags)
	if err := errors.Join(model.err, to.err); err != nil {
		return bad(err)
	}
	return nil
}

// A replay is a run that was taken again, as it is printed.
type replay struct {
	Command  string       `json:"command"`
	Violated *violation   `json:"violated,omitempty"`
	Loop     *loop        `json:"loop,omitempty"`
	Run      scenario.Run `json:"run"`

	stands []scenario.Run // after each step, and before the first one
}

// A violation says where a run goes wrong.
type violation struct {
	Step     int    `json:"at_step"` // from 1; 0: before the first one
	Property string `json:"property"`
	Reason   string `json:"reason"`
}

// A loop is a part of a run that repeats for ever. It was taken twice.
type loop struct {
	From    int    `json:"from_step"`
	To      int    `json:"to_step"`
	Meaning string `json:"meaning"` // who waits for ever
}

// take takes the steps, and notes the first violation.
func (p *replay) take(w *check.Walk, steps []scenario.Step) error {
	p.note(w)
	for _, s := range steps {
		if s.Verb == scenario.Loop {
			w.Loop()
			continue
		}
		if _, err := w.Take(s); err != nil {
			return err
		}
		p.note(w)
	}
	p.Run = w.Run()
	if p.Run.Loop == scenario.NoLoop {
		return nil
	}
	again, err := w.Repeat()
	if err != nil {
		return err
	}
	p.Loop = &loop{From: p.Run.Loop + 1, To: len(p.Run.Steps), Meaning: again.Reason}
	if again.Property != "" && p.Violated == nil {
		p.Violated = &violation{len(p.Run.Steps), again.Property, again.Reason}
	}
	return nil
}

// note keeps how things stand after a step.
func (p *replay) note(w *check.Walk) {
	p.stands = append(p.stands, w.Run())
	if p.Violated != nil {
		return
	}
	if property, err := w.Violation(); err != nil {
		p.Violated = &violation{len(p.stands) - 1, property, strings.TrimPrefix(err.Error(), property+": ")}
	}
}

func (f *replayFlags) show(w io.Writer, p replay) error {
	title, reason := p.Command, p.verdict()
	if p.Violated == nil {
		title, reason = title+": "+reason, ""
	}
	if err := f.drawings.write(p.Run, title, reason); err != nil {
		return err
	}
	if f.json {
		return cli.JSON(w, p)
	}
	if !f.all && term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())) {
		return p.walk(os.Stdin, os.Stdout)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n", p.Command)
	if err := diagram.Text(&b, p.Run, width(w)); err != nil {
		return err
	}
	fmt.Fprintln(&b)
	if l := p.Loop; l != nil {
		fmt.Fprintf(&b, "steps %d to %d lead back to their beginning, a second time too: %s\n", l.From, l.To, l.Meaning)
	}
	fmt.Fprintln(&b, p.verdict())
	_, err := b.WriteTo(w)
	return err
}

// verdict says in one sentence where the violation is.
func (p *replay) verdict() string {
	switch v := p.Violated; {
	case v == nil:
		return "no violation in " + check.Plural(int64(len(p.Run.Steps)), "step")
	case p.Loop != nil && slices.Contains([]string{check.Starvation, check.MakesProgress, check.Bypass}, v.Property):
		return fmt.Sprintf("violated by steps %d to %d, which repeat for ever: %s: %s",
			p.Loop.From, p.Loop.To, v.Property, v.Reason)
	case v.Step == 0:
		return fmt.Sprintf("violated at the beginning: %s: %s", v.Property, v.Reason)
	default:
		return fmt.Sprintf("violated after step %d: %s: %s", v.Step, v.Property, v.Reason)
	}
}
