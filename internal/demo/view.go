package demo

import (
	"bytes"
	"fmt"
	"text/tabwriter"
	"time"
)

// say tells of an event, where there is no table.
func (d *demo) say(format string, args ...any) {
	if d.Out != nil && !d.Terminal {
		fmt.Fprintf(d.Out, "%6.1fs  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
	}
}

// table shows the table, if there is one: at the beginning, and with what all workers have said in the end.
func (d *demo) table() {
	if d.Terminal {
		d.shown = time.Time{}
		d.show()
	}
}

// show shows where things stand, now and then: in a line, or in the table on the screen, which
// it replaces.
func (d *demo) show() {
	every := time.Second
	if d.Terminal {
		every = 100 * time.Millisecond
	}
	if d.Out == nil || time.Since(d.shown) < every {
		return
	}
	d.shown = time.Now()
	var sections uint64
	for _, r := range d.reports {
		sections += r.Counted
	}
	totals := fmt.Sprintf("%d sections, %d servers killed", sections, d.kills)
	if !d.Terminal {
		d.say("%s", totals)
		return
	}
	var b bytes.Buffer
	if d.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", d.lines) // up by its lines, and clear what is below
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERVER\tSTATE\tKILLED\t\tWORKER\tSECTIONS\tLONGEST WAIT")
	for i := range max(servers, len(d.reports)) {
		if i < servers {
			state := "dead"
			if !d.up[i].IsZero() {
				state = fmt.Sprintf("up %.1fs", time.Since(d.up[i]).Seconds())
			}
			fmt.Fprintf(t, "s%d\t%s\t%d\t\t", i+1, state, d.lives[i])
		} else {
			fmt.Fprint(t, "\t\t\t\t")
		}
		if i < len(d.reports) {
			r := d.reports[i]
			fmt.Fprintf(t, "%d\t%d\t%v", i+1, r.Counted, r.Longest.Round(100*time.Microsecond))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	fmt.Fprintf(&b, "%.1fs  %s\n", time.Since(d.began).Seconds(), totals)
	d.lines = bytes.Count(b.Bytes(), []byte("\n"))
	d.Out.Write(b.Bytes())
}
