package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/history"
)

const judgeLong = `Judge reads what users saw of locks, and says whether the locks kept their word:
never two inside that do not share, try, crit, exit and rem in their order, tokens
that grow. With bounds it also says whether somebody starved or was overtaken.

A FILE is one that the flag --history of bench, demo and sim wrote, or a program of
yours: JSON, one event a line. Several are judged as one history; -
is standard input. docs/verification.md describes the form.

Where clocks differ, only what no clock can explain is a violation; what may be one
is counted. A file that ends in the middle of a line, as of a process that was
killed, is read as far as it goes.

Exit status: 0 accepted; 1 rejected; 64 when it was called wrongly, or a file
cannot be read or holds something else; 70 when the verdict cannot be written.`

type judgeFlags struct {
	bounds      history.Bounds
	wait, order time.Duration
	uncertainty time.Duration
	json        bool
}

func judgeCommand() *cobra.Command {
	f := &judgeFlags{}
	c := &cobra.Command{
		Use:   "judge FILE...",
		Short: "Judge recorded histories of locks",
		Long:  judgeLong,
		Example: `  poundlock bench --history run.jsonl && poundlock-lab judge run.jsonl
  poundlock-lab judge --max-wait 2s host-a.jsonl host-b.jsonl`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	s := c.Flags()
	s.DurationVar(&f.wait, "max-wait", 0, "a user that waits for longer than this while others enter starves; 0: not judged")
	s.Uint64Var(&f.bounds.Bypass, "max-bypass", 0, "a user that is overtaken more often than this `number` starves; 0: not judged")
	s.DurationVar(&f.order, "order", 0, "a user that tries later by more than this must not enter earlier; 0: not judged")
	s.DurationVar(&f.uncertainty, "uncertainty", 0, "how far the clock of each file may be off, should its header say less, up to 1h")
	s.BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

func (f *judgeFlags) run(c *cobra.Command, names []string) error {
	if len(names) == 0 {
		return cli.Usagef("want the names of event files, or - for standard input")
	}
	if err := cmp.Or(
		cli.AtLeast("--max-wait", f.wait, 0),
		cli.AtLeast("--order", f.order, 0),
		cli.Within("--uncertainty", f.uncertainty, 0, time.Hour),
	); err != nil {
		return err
	}
	files, closeAll, err := f.open(c.InOrStdin(), names)
	defer closeAll()
	if err != nil {
		return err
	}
	f.bounds.Wait, f.bounds.Order, f.bounds.Slack = int64(f.wait), int64(f.order), history.Slack(files)
	r, err := history.Read(files, f.bounds)
	if err != nil {
		return badEvents(err)
	}
	return ended(f.print(c.OutOrStdout(), r), !r.Accepted)
}

func (f *judgeFlags) open(stdin io.Reader, names []string) (files []*history.Reader, closeAll func(), err error) {
	var opened []*os.File
	closeAll = func() {
		for _, file := range opened {
			file.Close()
		}
	}
	for k, name := range names {
		if slices.Contains(names[:k], name) {
			return nil, closeAll, cli.Usagef("%s is given twice", name)
		}
		in := stdin
		if name != "-" {
			file, err := os.Open(name)
			if err != nil {
				return nil, closeAll, cli.Exit(cli.ExitUsage, err)
			}
			opened = append(opened, file)
			if other := sameFile(opened); other != "" {
				return nil, closeAll, cli.Usagef("%s and %s are one file: its users would be two of one name", other, name)
			}
			in = file
		}
		r, err := history.NewReader(name, in)
		if err != nil {
			return nil, closeAll, badEvents(err)
		}
		r.Uncertainty = max(r.Uncertainty, int64(f.uncertainty))
		files = append(files, r)
	}
	return files, closeAll, nil
}

// sameFile returns the name by which the last one of files was opened before, or "".
func sameFile(files []*os.File) string {
	last := files[len(files)-1]
	a, err := last.Stat()
	for _, f := range files[:len(files)-1] {
		if b, err2 := f.Stat(); err == nil && err2 == nil && os.SameFile(a, b) {
			return f.Name()
		}
	}
	return ""
}

func badEvents(err error) error {
	s := &cli.Status{Code: cli.ExitUsage, Err: err}
	if line := (*history.LineError)(nil); errors.As(err, &line) {
		s.Hint = "what event files look like: docs/verification.md, Histories"
	}
	return s
}

func (f *judgeFlags) print(w io.Writer, r *history.Report) error {
	if f.json {
		return cli.JSON(w, r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	for _, file := range r.Files {
		name := history.Printable(file.Name)
		if file.Truncated {
			row(name, "its last line has no end and was left out")
		}
		if !file.Ended && file.Events > 0 {
			row(name, "it has no end: its process was killed after its last event, as far as this file tells")
		}
	}
	count := func(k int, noun string) string { return fmt.Sprint(k, " ", cli.Plural(k, noun)) }
	m := &r.Measures
	row("history", "%s, %s, %s of %s", count(len(r.Files), "file"), count(int(r.Events), "event"),
		count(r.Locks, "lock"), count(r.Users, "user"))
	row("sections", "%d, %d tries gave up, %d sections lost", m.Entries, m.GaveUp, m.Ejected)
	if m.Entries > 0 {
		row("waiting", "p50 %.4g  p99 %.4g  max %.4g ms, overtaken %s at most", m.Waiting.P50, m.Waiting.P99, m.Waiting.Max,
			count(int(m.MaxBypass), "time"))
	}
	for _, v := range r.Verdicts {
		text := v.Verdict
		if v.Count > 0 {
			text += " " + count(int(v.Count), "time")
		}
		if v.Property == history.Exclusion && r.Uncertain > 0 {
			text += fmt.Sprintf("; %s of sections may be one, as far as clocks that differ by %v tell",
				count(int(r.Uncertain), "pair"), time.Duration(f.bounds.Slack))
		}
		row(v.Property, "%s", text)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, v := range r.Violations {
		fmt.Fprintf(w, "at %d, %v after the first event, lock %q: %s: %s\n", v.At, time.Duration(v.At-r.Began), v.Lock, v.Property, v.Text)
	}
	verdict := "accepted"
	switch {
	case !r.Accepted:
		verdict = "rejected"
	case m.Entries == 0:
		verdict = "accepted, but nobody entered: nothing was judged"
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}
