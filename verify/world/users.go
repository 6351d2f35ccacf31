package world

import (
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// # Users
//
// A user tries, is let in, and exits, or its process gives up. Which of these steps is
// well-formed stands in history.Users.

// Try lets the user of a process try to enter.
func (e *End) Try(wants protocol.Groups) protocol.Input {
	e.Wants, e.Told = wants, false
	return protocol.NewTry(wants)
}

// Cancels reports whether the user may give up.
func (e *End) Cancels() bool { return e.Section == protocol.InTry }

// Exits reports whether the user may leave.
func (r *Rules) Exits(e *End) bool {
	return e.Section == protocol.InLost || e.Section == protocol.InCrit && !r.Stays(e)
}

// Stays reports whether a user that is inside waits to be told that somebody else waits.
func (r *Rules) Stays(e *End) bool {
	return r.UntilTold && !e.Told && (!e.Group.Exclusive() || e.Group.Keeps())
}

// Downgrades reports whether a user in that section, inside alone in group g, may come down to another one.
func (r *Rules) Downgrades(in protocol.Section, g protocol.Group) bool {
	return r.Shares && in == protocol.InCrit && g.Below() != ""
}

// Issue lets the user of process i, which is inside, issue its next operation.
func (r *Rules) Issue(e *End, i int) protocol.Input {
	e.Issued++
	return protocol.NewIssue(r.Operation(i, e.Issued))
}

// Operation is the name of an operation that the user of a process issues.
func (r *Rules) Operation(i int, number uint32) string {
	return fmt.Sprintf("%s.%d", r.Names.Of(protocol.ID(i)), number)
}

// Input records an event of process i, before its effects. A fault says that no user may do
// that now.
func (r *Rules) Input(e *End, i int, in protocol.Input) history.Fault {
	if in.Kind == protocol.Downgrade {
		e.Group = protocol.Group(in.Data)
	}
	return r.named(i, Model, history.Input(&e.Section, protocol.ID(i), in))
}

// named is a fault, in which the user of process i has its name.
func (r *Rules) named(i int, property string, err error) (f history.Fault) {
	if err != nil {
		f.Property, f.Text = property, strings.ReplaceAll(err.Error(), fmt.Sprintf("user %d", i), r.Names.Of(protocol.ID(i)))
	}
	return f
}

func (r *Rules) wrong(format string, args ...any) history.Fault {
	return history.Fault{Property: Model, Text: "model: " + fmt.Sprintf(format, args...)}
}

// Meaning says why an effect of process i other than a message means nothing; nil: it means
// something.
func (r *Rules) Meaning(i int, a protocol.Act) *history.Fault {
	why := ""
	switch a.Do {
	case protocol.Crit, protocol.Rem, protocol.Ejected, protocol.Wanted:
		if !r.IsUser(i) {
			why = "has no user to tell something"
		}
	case protocol.Revoke:
		if !r.Mutual || a.To == protocol.ID(i) || a.To >= protocol.ID(r.Config.N) {
			why = fmt.Sprintf("revokes a lease of process %d, and there is none", a.To)
		}
	case protocol.Invoke, protocol.Outcome, protocol.Install, protocol.Capture:
		if !r.Weak {
			why = "has no copy of an object"
		}
	case protocol.Propose, protocol.Resume:
		if !r.Consensus {
			why = "has no consensus"
		}
	case protocol.SetTimer, protocol.StopTimer, protocol.Leader, protocol.Read, protocol.Write, protocol.Await,
		protocol.Owner, protocol.Joined, protocol.Parted: // they are for those who watch
	default:
		why = fmt.Sprintf("asks for effect %d, which is none", a.Do)
	}
	if why == "" {
		return nil
	}
	wrong := r.wrong("%s %s", r.Names.Of(protocol.ID(i)), why)
	return &wrong
}

// Effect records an effect of process i other than a message. A fault of Model says that the
// effect means nothing, and the rest of the step with it.
func (r *Rules) Effect(e *End, i int, a protocol.Act) history.Fault {
	if wrong := r.Meaning(i, a); wrong != nil {
		return *wrong
	}
	switch a.Do {
	case protocol.Crit, protocol.Rem, protocol.Ejected, protocol.Outcome:
		if f := r.named(i, history.WellFormed, history.Act(&e.Section, protocol.ID(i), a)); f != (history.Fault{}) {
			return f
		}
		if a.Do == protocol.Crit {
			return r.enter(e, r.Names.Of(protocol.ID(i)), protocol.Group(a.Data))
		}
	case protocol.Wanted:
		e.Told = r.UntilTold
	case protocol.SetTimer:
		e.set(a.Timer)
	case protocol.StopTimer:
		e.unset(a.Timer)
	case protocol.Leader:
		return r.lead(e, a)
	case protocol.Read, protocol.Write, protocol.Await:
		return r.open(e, i, a)
	case protocol.Revoke:
		e.revoke(int(a.To))
	case protocol.Invoke, protocol.Install, protocol.Capture:
		e.Execute(a)
	}
	return history.Fault{}
}

// enter lets the user of a process into a group.
func (r *Rules) enter(e *End, name string, group protocol.Group) history.Fault {
	bad := func(format string, args ...any) history.Fault {
		return history.Fault{Property: history.WellFormed, Text: "well-formed: " + name + fmt.Sprintf(format, args...)}
	}
	switch e.Group = group; {
	case e.Wants.Has(group):
		return history.Fault{}
	case e.Wants == "":
		return bad(" was let into group %s, and its algorithm has no groups", group)
	case group == "":
		return bad(" was let in without a group, and wants %s", e.Wants)
	default:
		return bad(" was let into group %s, and wants %s", group, e.Wants)
	}
}

// Rest forgets what only counts in a section that the user is not in any more: it is the end of
// each step.
func (e *End) Rest() {
	if e.Section == protocol.InRem {
		e.Lost = 0
	}
	if e.Section != protocol.InTry {
		e.Wants = ""
	}
	if e.Section != protocol.InCrit {
		e.Group = ""
	}
	if e.Section != protocol.InCrit && e.Section != protocol.InIssue {
		e.Tasks = 0
	}
}

// lead records whom a process names.
func (r *Rules) lead(e *End, a protocol.Act) history.Fault {
	if !r.Elects() {
		return history.Fault{} // it is for those who watch
	}
	t := history.Term{Epoch: a.Arg, Leader: a.To}
	if err := e.Leading.Name(t); err != nil {
		return history.Fault{Property: history.Epochs, Text: err.Error()}
	}
	past, err := e.Past.With(t, r.Names.Of)
	if err != nil {
		return history.Fault{Property: history.Epochs, Text: err.Error()}
	}
	e.Past = past
	return history.Fault{}
}

// Leaders is what each member says of who leads.
func (r *Rules) Leaders(ends Ends, list history.Leaders) history.Leaders {
	for i := range r.Config.N {
		says := history.Leading{}
		if !ends.absent(i) {
			says = ends[i].Leading
			says.Up = true
		}
		list = append(list, says)
	}
	return list
}
