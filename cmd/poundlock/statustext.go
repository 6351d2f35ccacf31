package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/poundlock/poundlock/internal/cli"
)

// print writes s for people.
func (s *clusterStatus) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tADDRESS\tSTATE\tUPTIME\tINCARNATION\tSESSIONS")
	for _, x := range s.Servers {
		if !x.Reachable {
			fmt.Fprintf(w, "%s\t%s\tunreachable\t-\t-\t-\n", x.Name, x.Address)
			continue
		}
		state := "up"
		if x.Draining {
			state = "draining"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\n", x.Name, x.Address, state, age(x.UptimeMS), x.Incarnation, x.Sessions)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s\n", s.summary())
	if len(s.Locks) > 0 {
		fmt.Fprintln(w, "\n"+s.grouped("GROUP")+"LOCK\tKIND\tHOLDER\tSUPPORT\tBUDGET\tAGE\tWAITERS")
	}
	for _, l := range s.Locks {
		fmt.Fprintf(w, "%s\t%s\n", s.columns(&l), waiters(l.Waiters, l.Waiting))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	if more := s.LockCount - len(s.Locks); more > 0 {
		fmt.Fprintf(&b, "\nand %d more %s: poundlock locks lists them", more, cli.Plural(more, "lock"))
	}
	for _, l := range s.Locks {
		for _, e := range l.Errors {
			fmt.Fprintf(&b, "\n%s: %s", printable(l.Name), printable(e))
		}
	}
	for _, x := range s.Servers {
		if x.Error != "" {
			fmt.Fprintf(&b, "\n%s: %s", x.Name, printable(x.Error))
		}
	}
	for _, line := range s.clockTexts() {
		fmt.Fprintf(&b, "\n%s", line)
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintln(out, b.String())
	return err
}

// summary is one line.
func (s *clusterStatus) summary() string {
	verdict := "a server may be restarted"
	switch {
	case !s.RestartSafe:
		verdict = "no server may be restarted: " + printable(s.Unsafe)
	case !s.Settled:
		verdict += fmt.Sprintf(", but %d %s not all supports back", s.short, have(s.short, "holder"))
	}
	return fmt.Sprintf("%d %s, %d held; loss budget %d: %s",
		s.LockCount, cli.Plural(s.LockCount, "lock"), s.HeldCount, s.LossBudget, verdict)
}

// have is a noun with its verb.
func have(k int, noun string) string {
	if k == 1 {
		return noun + " has"
	}
	return cli.Plural(k, noun) + " have"
}

// grouped is a first column where there are groups.
func (s *clusterStatus) grouped(group string) string {
	if _, alone := s.groups[""]; alone {
		return ""
	}
	return group + "\t"
}

// columns are those of a lock: its name and kind, who holds it, with which supports,
// how many of them may go, and for how long.
func (s *clusterStatus) columns(l *lockStatus) string {
	begin := fmt.Sprintf("%s%s\t%s\t", s.grouped(l.Group), printable(l.Name), l.Kind)
	if len(l.Holders) == 0 {
		return begin + "-\t-\t-\t-"
	}
	h, n := l.Holders[0], s.groups[l.Group].Servers
	return begin + fmt.Sprintf("%s\t%d of %d\t%d\t%s", who(h.Label, h.ID), h.SupportsLive, n, h.LossBudget, age(h.AgeMS))
}

// waiters names the first three.
func waiters(known []waiterStatus, all int) string {
	if all == 0 {
		return "-"
	}
	var parts []string
	for i, r := range known {
		if i == 3 {
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", who(r.Label, r.ID), age(r.AgeMS)))
	}
	if more := all - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// maxWho is how many characters of a label fit beside others: a client may have called
// itself anything.
const maxWho = 64

// who is how people call a client.
func who(label, id string) string {
	text, k := cmp.Or(label, id), 0
	for i := range text {
		if k++; k > maxWho {
			text = text[:i] + "..."
			break
		}
	}
	return printable(text)
}

// age is precise to a tenth of a second below a minute.
func age(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
