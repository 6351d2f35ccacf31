package main

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// A demoView shows a demo: as a table that changes, or in lines.
type demoView struct {
	out      io.Writer
	terminal bool
	quiet    bool
	lines    int       // of the table on the screen
	shown    time.Time // when it was, or the last line of totals
}

// How often the view changes.
const (
	demoFrame = 100 * time.Millisecond
	demoLine  = time.Second
)

// say tells of an event, where there is no table.
func (v *demoView) say(d *demo, format string, args ...any) {
	if !v.quiet && !v.terminal {
		fmt.Fprintf(v.out, "%6.1fs  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
	}
}

// show shows where things stand, now and then.
func (v *demoView) show(d *demo) {
	every := demoLine
	if v.terminal {
		every = demoFrame
	}
	if v.quiet || time.Since(v.shown) < every {
		return
	}
	v.shown = time.Now()
	if v.terminal {
		v.draw(d)
		return
	}
	v.say(d, "%s", d.totals())
}

// draw replaces the table on the screen.
func (v *demoView) draw(d *demo) {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERVER\tSTATE\tKILLED\t\tWORKER\tSECTIONS\tLONGEST WAIT")
	for i := range max(demoServers, len(d.crew.reports)) {
		if i < demoServers {
			state := "dead"
			if !d.up[i].IsZero() {
				state = fmt.Sprintf("up %.1fs", time.Since(d.up[i]).Seconds())
			}
			fmt.Fprintf(t, "s%d\t%s\t%d\t\t", i+1, state, d.lives[i])
		} else {
			fmt.Fprint(t, "\t\t\t\t")
		}
		if i < len(d.crew.reports) {
			r := d.crew.reports[i]
			fmt.Fprintf(t, "%d\t%d\t%v", i+1, r.Counted, r.Longest.Round(100*time.Microsecond))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	fmt.Fprintf(&b, "%.1fs  %s\n", time.Since(d.began).Seconds(), d.totals())
	v.erase()
	v.lines = bytes.Count(b.Bytes(), []byte("\n"))
	v.out.Write(b.Bytes())
}

// erase removes the table: up by its lines, and clear what is below.
func (v *demoView) erase() {
	if v.lines > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\x1b[J", v.lines)
		v.lines = 0
	}
}

// end leaves the last table where it is.
func (v *demoView) end() { v.lines = 0 }

func (d *demo) totals() string {
	var sections uint64
	for _, r := range d.crew.reports {
		sections += r.Counted
	}
	return fmt.Sprintf("%d sections, %d servers killed", sections, d.kills)
}
