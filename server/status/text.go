package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// Text writes c for people. fill breaks a line that is too long and no row of a table.
func (c *Cluster) Text(out io.Writer, fill func(string) string) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tADDRESS\tSTATE\tUPTIME\tINCARNATION\tSESSIONS")
	for _, x := range c.Servers {
		if !x.Reachable {
			fmt.Fprintf(w, "%s\t%s\tunreachable\t-\t-\t-\n", x.Name, x.Address)
			continue
		}
		state := "up"
		if x.Draining {
			state = "draining"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\n", x.Name, x.Address, state, Age(x.UptimeMS), x.Incarnation, x.Sessions)
	}
	_ = w.Flush() // to memory, so that the next table has columns of its own
	fmt.Fprintf(w, "\n%s\n", fill(c.summary()))
	for i, l := range c.Locks {
		if i == 0 {
			fmt.Fprintln(w, "\n"+l.Heading())
		}
		fmt.Fprintf(w, "%s\t%s\n", l.Columns(), waiters(l.Waiters, l.Waiting))
	}
	_ = w.Flush()
	notes := c.notes()
	for _, line := range notes {
		b.WriteString("\n" + fill(line))
	}
	if len(notes) > 0 {
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// notes are lines below the tables.
func (c *Cluster) notes() (lines []string) {
	if more := c.LockCount - len(c.Locks); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more %s: poundlock locks lists them", more, plural(more, "lock")))
	}
	for _, l := range c.Locks {
		for _, e := range l.Errors {
			lines = append(lines, Printable(l.Name)+": "+Printable(e))
		}
	}
	lines = append(lines, Reasons(c.Servers)...)
	return append(lines, c.clockTexts()...)
}

// Reasons are why servers do not answer, each with the names of those that it is about.
func Reasons(servers []Server) (all []string) {
	names := map[string][]string{}
	for _, x := range servers {
		if x.Error != "" {
			names[x.Error] = append(names[x.Error], x.Name)
		}
	}
	for _, x := range servers { // in their order
		if same := names[x.Error]; same != nil {
			all = append(all, strings.Join(same, ", ")+": "+Printable(x.Error))
			delete(names, x.Error)
		}
	}
	return all
}

// summary is one line.
func (c *Cluster) summary() string {
	verdict := "a server may be restarted"
	switch {
	case !c.RestartSafe:
		verdict = "no server may be restarted: " + Printable(c.Unsafe)
	case !c.Settled:
		verdict += fmt.Sprintf(", but %s not all supports back", have(c.short, "holder"))
	}
	return fmt.Sprintf("%d %s, %d held; loss budget %d: %s",
		c.LockCount, plural(c.LockCount, "lock"), c.HeldCount, c.LossBudget, verdict)
}

func plural(k int, noun string) string {
	if k == 1 {
		return noun
	}
	return noun + "s"
}

// have is a number of nouns with their verb.
func have(k int, noun string) string {
	if k == 1 {
		return "1 " + noun + " has"
	}
	return fmt.Sprintf("%d %ss have", k, noun)
}

// Heading is the line above locks like l.
func (l *Lock) Heading() string {
	heading := "LOCK\tKIND\tHOLDER\tSUPPORT\tBUDGET\tAGE\tWAITERS"
	if l.Shard != "" {
		return "SHARD\t" + heading
	}
	return heading
}

// Columns are those of a lock except for its waiters: its shard where there are shards, its
// name and kind, who holds it, with which supports, how many of them may go, and for how long. Of
// several holders these are the supports of the one that has the fewest, and the age of the first.
func (l *Lock) Columns() string {
	begin := fmt.Sprintf("%s\t%s\t", Printable(l.Name), l.Kind)
	if l.Shard != "" {
		begin = l.Shard + "\t" + begin
	}
	if len(l.Holders) == 0 {
		return begin + "-\t-\t-\t-"
	}
	least := slices.MinFunc(l.Holders, func(a, b Holder) int { return cmp.Compare(a.SupportsLive, b.SupportsLive) })
	return begin + fmt.Sprintf("%s\t%d of %d\t%d\t%s",
		l.Who(), least.SupportsLive, least.Servers, least.LossBudget, Age(l.Holders[0].AgeMS))
}

// Who names the holders, the first three of many, and their group, "" where nobody holds it.
func (l *Lock) Who() string {
	const most = 3
	var names []string
	for i, h := range l.Holders {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(l.Holders)-most))
			break
		}
		names = append(names, Who(h.Label, h.ID))
	}
	return strings.Join(names, ", ") + In(l.Group)
}

// In is what people are told of a group, behind the name of a client: "" for none.
func In(group string) string {
	if group == "" {
		return ""
	}
	return " in " + Printable(group)
}

// waiters names the first three.
func waiters(known []Waiter, all int) string {
	if all == 0 {
		return "-"
	}
	var parts []string
	for i, r := range known {
		if i == 3 {
			break
		}
		parts = append(parts, fmt.Sprintf("%s%s (%s)", Who(r.Label, r.ID), In(r.Group), Age(r.AgeMS)))
	}
	if more := all - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// maxWho is how many characters of a label fit beside others: a client may have called
// itself anything.
const maxWho = 64

// Who is how people call a client.
func Who(label, id string) string {
	text, k := cmp.Or(label, id), 0
	for i := range text {
		if k++; k > maxWho {
			text = text[:i] + "..."
			break
		}
	}
	return Printable(text)
}

// Age is precise to a tenth of a second below a minute.
func Age(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Printable is s as a terminal may show it: what others chose is quoted when it
// holds control characters.
func Printable(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
