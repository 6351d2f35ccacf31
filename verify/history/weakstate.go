package history

import (
	"math"

	"github.com/poundlock/poundlock/protocol"
)

// State implements protocol.Stateful. It visits what a later verdict depends on, and nothing else: two
// histories after which the same events are judged alike have equal bytes, but for names and numbers.
func (w *Weak) State(c *protocol.Codec) {
	for i := range w.state {
		w.visitUser(c, i)
	}
	for i := range w.copies {
		k := w.copies[i] + 1
		if protocol.Upto(c, &k, math.MaxInt); c.Reading() {
			w.copies[i] = k - 1
		}
	}
	protocol.Upto(c, &w.first, math.MaxInt)
	for i := range protocol.List(c, &w.names) {
		protocol.Text(c, &w.names[i])
	}
	for i := range protocol.List(c, &w.ghosts) {
		g := &w.ghosts[i]
		if protocol.Upto(c, &g.user, len(w.state)-1); c.Reading() {
			g.section = -1 - i // no user's section has such a number
		}
		visitBegun(c, &g.acted, &g.found)
		protocol.Text(c, &g.op)
		c.Bool(&g.passed)
	}
	place := w.lastPlace()
	if protocol.Upto(c, &place, len(w.state)+len(w.ghosts)); c.Reading() {
		w.last = w.sectionAt(place)
	}
	protocol.Upto(c, &w.excuse, nothingLeft)
}

// visitUser: of a section that is over only an operation counts that failed.
func (w *Weak) visitUser(c *protocol.Codec, i int) {
	protocol.Upto(c, &w.users[i], protocol.InIssue)
	u, at := w.state[i], w.users[i]
	inside := at == protocol.InCrit || at == protocol.InIssue
	open := at == protocol.InIssue
	if c.Reading() {
		u = weakUser{}
	}
	if !inside {
		u.acted, u.found = false, 0
	}
	if !inside && at != protocol.InTry {
		u.after = 0
	}
	if !open && (u.at > 0 || inside) {
		u.op, u.at = "", 0
	}
	visitBegun(c, &u.acted, &u.found)
	c.Uint(&u.after)
	protocol.Text(c, &u.op)
	if protocol.Upto(c, &u.at, math.MaxInt); c.Reading() {
		w.state[i] = u
	}
}

// visitBegun: what a section found in its copy counts until one of its operations is executed.
func visitBegun(c *protocol.Codec, acted *bool, found *int) {
	k := 0
	if !*acted {
		k = *found + 1
	}
	if protocol.Upto(c, &k, math.MaxInt); c.Reading() {
		*acted, *found = k == 0, max(0, k-1)
	}
}

// lastPlace says whose section the last operation was of, if that may have another one: 0 of
// nobody's, else that of a user, or behind them of a ghost.
func (w *Weak) lastPlace() int {
	for i, u := range w.state {
		inside := w.users[i] == protocol.InCrit || w.users[i] == protocol.InIssue
		if inside && u.acted && w.last == (sectionID{i, u.section}) {
			return 1 + i
		}
	}
	for i, g := range w.ghosts {
		if g.acted && w.last == (sectionID{g.user, g.section}) {
			return 1 + len(w.state) + i
		}
	}
	return 0
}

// sectionAt is the section at such a place.
func (w *Weak) sectionAt(place int) sectionID {
	switch {
	case place == 0:
		return sectionID{user: -1}
	case place <= len(w.state):
		return sectionID{user: place - 1}
	}
	g := w.ghosts[place-1-len(w.state)]
	return sectionID{g.user, g.section}
}
