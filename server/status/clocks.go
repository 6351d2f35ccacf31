package status

import (
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/server"
)

// clocks says whose wall clock is wrong. The right one is that of the majority of the servers
// and this machine: their median. An answer tells the time a little late, by at most a
// round trip.
func (c *Cluster) clocks(answers []server.Answer) {
	ahead := []time.Duration{0} // of this machine's clock
	for _, a := range answers {
		if a.Err == nil {
			ahead = append(ahead, a.ClockAhead)
		}
	}
	slices.Sort(ahead)
	right := ahead[(len(ahead)-1)/2]
	var allowed time.Duration
	for i, a := range answers {
		if a.Err != nil {
			continue
		}
		x := &c.Servers[i]
		bound := 2*time.Duration(a.Status.ClockBoundMS)*time.Millisecond + a.RoundTrip/2
		allowed = max(allowed, bound)
		x.ClockAheadMS, x.ClockStepMS = (a.ClockAhead - right).Milliseconds(), a.Status.ClockStepMS
		x.ClockWrong = (a.ClockAhead - right).Abs() > bound
	}
	if right.Abs() > allowed && len(ahead) > 1 {
		c.ClockAheadMS = -right.Milliseconds()
	}
}

// clockTexts are the lines about clocks.
func (c *Cluster) clockTexts() (lines []string) {
	for _, x := range c.Servers {
		switch {
		case x.ClockWrong && x.ClockStepMS != 0:
			lines = append(lines, fmt.Sprintf("%s: its clock is %s the others, and was set by %s since the server started: as long as that is so, the server counts as down",
				x.Name, apart(x.ClockAheadMS), signed(x.ClockStepMS)))
		case x.ClockWrong:
			lines = append(lines, fmt.Sprintf("%s: its clock is %s the others: as long as that is so, the server counts as down",
				x.Name, apart(x.ClockAheadMS)))
		case x.ClockStepMS != 0:
			lines = append(lines, fmt.Sprintf("%s: its clock was set by %s since the server started, and is right now", x.Name, signed(x.ClockStepMS)))
		}
	}
	if c.ClockAheadMS != 0 {
		lines = append(lines, fmt.Sprintf("the clock of this machine is %s those of the servers", apart(c.ClockAheadMS)))
	}
	return lines
}

// wrongClock is the name of a server whose clock is wrong, with how wrong, "" for none.
func (c *Cluster) wrongClock() string {
	for _, x := range c.Servers {
		if x.ClockWrong {
			return fmt.Sprintf("the clock of %s is %s the others", x.Name, apart(x.ClockAheadMS))
		}
	}
	return ""
}

// apart is a distance of two clocks with its preposition.
func apart(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < 0 {
		return (-d).String() + " behind"
	}
	return d.String() + " ahead of"
}

// signed is a step of a clock.
func signed(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}
