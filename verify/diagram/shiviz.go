package diagram

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/poundlock/poundlock/verify/scenario"
)

// shivizHead is what a log for ShiViz begins with: the expression by which it reads
// the rest, and an empty line, since the log is of one execution. It takes both from a
// file that it opens. The expression is the one that it has anyway, so that a log which
// somebody pastes is read, too.
const shivizHead = `(?<event>.*)\n(?<host>\S*) (?<clock>{.*})` + "\n\n"

// ShiViz writes r as a log for ShiViz: for each step of a process a line that says
// what happened, and one with its name and its vector clock.
func ShiViz(w io.Writer, r scenario.Run) error {
	b := bufio.NewWriter(w)
	b.WriteString(shivizHead)
	arrives := map[int]flight{} // by step
	for _, f := range flights(r) {
		arrives[f.arrived] = f
	}
	clocks := map[string]map[string]uint64{} // by process
	at := make([]map[string]uint64, len(r.Steps))
	for i, e := range r.Steps {
		if e.Process == "" {
			continue // the network's
		}
		clock := clocks[e.Process]
		if clock == nil {
			clock = map[string]uint64{}
			clocks[e.Process] = clock
		}
		if f, yes := arrives[i]; yes {
			for process, v := range at[f.sent] {
				clock[process] = max(clock[process], v)
			}
		}
		clock[e.Process]++
		at[i] = maps.Clone(clock)
		text, err := json.Marshal(clock) // with its keys in order
		if err != nil {
			return fmt.Errorf("diagram: %w", err)
		}
		event := e.Line
		if did := strings.Join(e.Did(), "; "); did != "" {
			event += ": " + did
		}
		fmt.Fprintf(b, "%s\n%s %s\n", strings.ReplaceAll(event, "\n", " "), e.Process, text)
	}
	return b.Flush()
}
