package world

import (
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
)

// An Action is one step that may be taken: a line of a scenario, in a form that keeps its
// meaning when other steps are left out.
type Action struct {
	ID    int32 // the number of the step
	Verb  scenario.Verb
	A, B  int32 // processes, in the order of scenario.Step.Procs
	Timer uint32
	Kind  int32  // of messages: the kind; of an access: the register
	Sent  int32  // of messages and of Decide: the step that sent it
	Part  int32  // of these: which of those that this step sent
	Keep  bool   // of Deliver: it may arrive again
	Found uint64 // of Read: what it finds where it overlaps a write
	Wants protocol.Groups
}

// Actor is the process that takes the step.
func (a Action) Actor() int {
	if a.Verb == scenario.Deliver {
		return int(a.B)
	}
	return int(a.A)
}

// Fault reports whether a system may do without such a step.
func (a Action) Fault() bool {
	switch a.Verb {
	case scenario.Amnesia, scenario.Crash, scenario.Lapse, scenario.Cancel, scenario.Downgrade, scenario.Drain, scenario.Suspect,
		scenario.Restore, scenario.Lose, scenario.Duplicate, scenario.Recover, scenario.Pause, scenario.Resume:
		return true
	}
	return false
}

// Accesses reports whether the step is one on a register.
func (a Action) Accesses() bool {
	return a.Verb == scenario.Read || a.Verb == scenario.Begin || a.Verb == scenario.Write
}

// Of reports whether process i is one of those that the step names.
func (a Action) Of(i int32) bool {
	return a.A == i || a.B == i && a.Verb.Processes() > 1
}

// With is the step with process j where it names i.
func (a Action) With(i, j int32) Action {
	if a.A == i {
		a.A = j
	}
	if a.B == i && a.Of(i) {
		a.B = j
	}
	return a
}
