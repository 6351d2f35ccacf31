// Package history judges what users see of a lock: the sequence of try, crit,
// exit and rem at each of them. Its predicates know no algorithm and no message,
// so the same ones judge the checker, the simulator and a real cluster.
//
// A [Monitor] judges one lock while things happen. A [Judge] is one Monitor a lock,
// for events that have names; [Read] feeds it from event files, which a [Writer]
// writes. There is one form of each predicate: it sees an event once.
package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// Users is the section of each user, by process id. Drivers need it to know
// which inputs are possible; the properties are predicates over it.
type Users []protocol.Section

var (
	inputs = map[protocol.Kind]string{
		protocol.Try: "try", protocol.Exit: "exit", protocol.Cancel: "cancel", protocol.Issue: "issue", protocol.Downgrade: "downgrade",
	}
	acts = map[protocol.Do]string{
		protocol.Crit: "crit", protocol.Rem: "rem", protocol.Ejected: "ejected", protocol.Outcome: "outcome",
	}
	sections = [...]string{
		protocol.InRem: "remainder", protocol.InTry: "trying", protocol.InCrit: "critical", protocol.InLost: "lost",
		protocol.InExit: "exit", protocol.InIssue: "issuing",
	}
)

// waits are the sections in which a user waits, with what people are told of one user and of more.
var waits = []struct {
	at        protocol.Section
	one, more string
}{
	{protocol.InTry, "tries", "try"},
	{protocol.InIssue, "waits for the outcome of its operation", "wait for the outcomes of their operations"},
	{protocol.InExit, "waits to be told rem", "wait to be told rem"},
}

// Wait is what a user waits for in a section, as people are told: c1 tries. "": it does not wait.
func Wait(at protocol.Section) string {
	for _, w := range waits {
		if w.at == at {
			return w.one
		}
	}
	return ""
}

// Deadlock says who waits for what in a state that nothing which must happen changes: p1, p2 try,
// and no message is on its way. flying is how many are, of an algorithm with info i; where memory or an
// object is shared or consensus decides, messages are not all that could change the state.
func (u Users) Deadlock(name func(protocol.ID) string, i protocol.Info, flying int) string {
	var all []string
	for _, w := range waits {
		var who []string
		for k, s := range u {
			if s == w.at {
				who = append(who, name(protocol.ID(k)))
			}
		}
		what := w.one
		if len(who) > 1 {
			what = w.more
		}
		if len(who) > 0 {
			all = append(all, strings.Join(who, ", ")+" "+what)
		}
	}
	why := "nothing that must happen changes the state"
	if flying == 0 && i.Registers == nil && !i.Weak && !i.Consensus {
		why = "no message is on its way"
	}
	return "deadlock: " + strings.Join(all, "; ") + ", and " + why
}

// Input records that a driver gave in to user id, which is in section s, and returns an error
// when no user may do that there.
func Input(s *protocol.Section, id protocol.ID, in protocol.Input) error {
	switch {
	case in.Kind == protocol.Try && *s == protocol.InRem:
		*s = protocol.InTry
	case in.Kind == protocol.Exit && (*s == protocol.InCrit || *s == protocol.InLost):
		// The user stops being inside when it calls exit, not when it is told rem.
		*s = protocol.InExit
	case in.Kind == protocol.Issue && *s == protocol.InCrit:
		*s = protocol.InIssue
	case in.Kind == protocol.Cancel && *s == protocol.InTry, in.Kind == protocol.Downgrade && *s == protocol.InCrit:
	case in.Kind == protocol.Try, in.Kind == protocol.Exit, in.Kind == protocol.Cancel, in.Kind == protocol.Issue,
		in.Kind == protocol.Downgrade:
		return fmt.Errorf("history: user %d: %s in its %s section", id, inputs[in.Kind], sections[*s])
	}
	return nil
}

// Act records what process id told its user, which is in section s, and returns an error when that
// breaks well-formedness: try, crit, exit, rem in cyclic order.
func Act(s *protocol.Section, id protocol.ID, a protocol.Act) error {
	switch {
	case a.Do == protocol.Crit && *s == protocol.InTry:
		*s = protocol.InCrit
	case a.Do == protocol.Outcome && *s == protocol.InIssue:
		*s = protocol.InCrit
	case a.Do == protocol.Ejected && (*s == protocol.InCrit || *s == protocol.InIssue):
		*s = protocol.InLost
	case a.Do == protocol.Rem && (*s == protocol.InTry || *s == protocol.InExit):
		*s = protocol.InRem
	case a.Do == protocol.Crit, a.Do == protocol.Ejected, a.Do == protocol.Rem, a.Do == protocol.Outcome:
		return fmt.Errorf("well-formed: user %d was told %s in its %s section", id, acts[a.Do], sections[*s])
	}
	return nil
}

// Crash records that process id stopped for ever: its user is no longer inside.
func (u Users) Crash(id protocol.ID) { u[id] = protocol.InRem }

// Exclusion says who is inside when two users are in the critical section that do not share it, "" if no
// two are. groups are those that were granted to who is inside, by process id; nil: nobody shares.
func (u Users) Exclusion(name func(protocol.ID) string, groups []protocol.Group) string {
	first := slices.Index(u, protocol.InCrit)
	apart := false
	for id, s := range u { // whoever shares with others shares with the first one
		apart = apart || s == protocol.InCrit && id != first && (groups == nil || !groups[first].Shares(groups[id]))
	}
	if !apart {
		return ""
	}
	var inside []string
	for id, s := range u {
		if s != protocol.InCrit {
			continue
		}
		who := name(protocol.ID(id))
		if groups != nil && groups[id] != "" {
			who += " (" + string(groups[id]) + ")"
		}
		inside = append(inside, who)
	}
	return "exclusion: " + strings.Join(inside, " and ") + " are inside"
}

// Together reports whether somebody tries, and there is one group that can be shared, that all
// who try want, and that all who are inside have: then nobody has to wait for another one to
// leave. wanted is for who tries, and granted for who is inside, by process id.
func (u Users) Together(wanted []protocol.Groups, granted []protocol.Group) bool {
	first := slices.Index(u, protocol.InTry)
	if first < 0 {
		return false
	}
	for g := range wanted[first].All() {
		if !g.Exclusive() && u.all(g, wanted, granted) {
			return true
		}
	}
	return false
}

// all reports whether all who try want g, and all who are inside have it.
func (u Users) all(g protocol.Group, wanted []protocol.Groups, granted []protocol.Group) bool {
	for id, s := range u {
		if s == protocol.InTry && !wanted[id].Has(g) || s == protocol.InCrit && granted[id] != g {
			return false
		}
	}
	return true
}
