package hunt

import (
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A choice is one atomic step: a line of a scenario, in a form that keeps its
// meaning when other steps are left out. A message is named by the choice that
// sent it.
type choice struct {
	id    int32 // of this choice: its place in the run that it was recorded in
	verb  scenario.Verb
	a, b  int32 // processes, in the order of scenario.Step.Procs
	timer uint32
	kind  int32  // deliver: the kind of the message; of an access: the register
	sent  int32  // deliver: the choice that sent it, -1: the start
	part  int32  // deliver: which of the messages that this choice sent
	keep  bool   // deliver: it may arrive again
	found uint64 // read: what it finds where it overlaps a write
	wants protocol.Groups
}

// actor is the process that takes the step.
func (c choice) actor() int {
	if c.verb == scenario.Deliver {
		return int(c.b)
	}
	return int(c.a)
}

func (c choice) fault() bool {
	switch c.verb {
	case scenario.Amnesia, scenario.Crash, scenario.Lapse, scenario.Cancel, scenario.Drain, scenario.Suspect,
		scenario.Restore, scenario.Lose, scenario.Duplicate, scenario.Recover:
		return true
	}
	return false
}

// names reports whether process i is one of those that c names.
func (c choice) names(i int32) bool {
	switch c.verb {
	case scenario.Deliver, scenario.Lose, scenario.Duplicate, scenario.Suspect, scenario.Restore, scenario.Lapse:
		return c.a == i || c.b == i
	}
	return c.a == i
}

// with names j where c names i.
func (c choice) with(i, j int32) choice {
	if c.a == i {
		c.a = j
	}
	if c.b == i && c.names(i) {
		c.b = j
	}
	return c
}
