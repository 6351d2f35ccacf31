// Package world says what the environment of a system of processes may do: its users, its
// failure detector and leases, its registers, a replicated object with consensus, and faults.
// The checker, the hunter and whoever drives a system by hand take these rules from here; the
// simulator gives them times.
//
// What the environment knows of one process is an [End]: one end of everything that it shares
// with others. A step gives one process an event. It consists of three parts:
//
//  1. The rules say what may happen, from the ends of all processes: see [Rules.Notices],
//     [Cell.Next], [Consensus.Awaited].
//  2. What happens changes the End of that process and makes its event: see [End.Try],
//     [End.Fire], [Rules.Suspect], [Rules.Restore], [End.Value], [Rules.Reborn].
//  3. The effects of the process change its End: see [Rules.Effect] and [End.Rest].
//
// Messages are the driver's. The rules say which of them are lost with a lease, which wait
// for one, and which are never on their way: see [Rules.Severed], [Rules.Withheld], [Rules.Cuts].
//
// The simulator keeps times beside, and may have more members than an End can name. It takes the rules that
// ask for less: [Has], [Side], [Rules.Meaning], [Cell], [Consensus].
//
// An End is a value: a step never changes what its slices hold, but replaces them. So a driver
// may keep many states whose ends share memory, and encode each of them: see [End.Append].
package world

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// Model is the property that nothing happens which the model of an algorithm makes impossible:
// no panic, no effect that means nothing.
const Model = "model"

// Rules are those of one system.
type Rules struct {
	protocol.Info
	Config protocol.Config
	Total  int // processes: members, and the clients after them
	Names  scenario.Names

	Leases bool // clients hold leases at members
	Mutual bool // members hold leases at each other
	Peers  bool // there are no clients: members crash, and suspect each other
	Lives  bool // members have incarnations
	Pauses bool // a pause is more than slowness

	Memory []protocol.Register // what processes share; nil: they send messages
	Safe   bool                // its registers are protocol.Safe

	UntilTold bool // whoever may share what it holds, or keep it, leaves only when it has heard protocol.Wanted
}

// New returns the rules of a system with members and clients. Semantics are those of its
// registers, if it has any.
func New(i protocol.Info, c protocol.Config, clients int, s protocol.Semantics) *Rules {
	r := &Rules{
		Info: i, Config: c, Total: c.N + clients,
		Names: scenario.Names{Members: c.N, Clients: i.Users == protocol.Clients},
		Peers: i.Users != protocol.Clients,
		Lives: i.Incarnations || i.Detector == protocol.LeaseDetector || i.Tolerates&protocol.Recovery != 0,
		Safe:  s == protocol.Safe, Pauses: Has(i, scenario.Pause),
	}
	r.Leases = i.Detector == protocol.LeaseDetector && !r.Peers
	r.Mutual = i.Detector == protocol.LeaseDetector && r.Peers
	if i.Registers != nil {
		r.Memory = i.Registers(c)
	}
	return r
}

// Elects reports whether the algorithm is an election, which has no users.
func (r *Rules) Elects() bool { return r.Users == protocol.Nobody }

// IsUser reports whether process i is one that tries.
func (r *Rules) IsUser(i int) bool { return r.Users == protocol.Members || i >= r.Config.N }

// Mortal reports whether process i may crash.
func (r *Rules) Mortal(i int) bool { return r.IsUser(i) || r.Elects() }

// An End is what the environment knows of one process. Sets of members are bits.
type End struct {
	Section protocol.Section // of its user
	Wants   protocol.Groups  // while its user tries, of a group algorithm
	Group   protocol.Group   // while its user is inside: the one that was granted
	Told    bool             // with Rules.UntilTold: the user has heard protocol.Wanted since it tried

	Life    uint64   // its incarnation; 0: it has none
	Gone    bool     // it crashed, and this is what its next life begins with
	Timers  []uint32 // that are set, in order
	Open    protocol.OpenAccesses
	Leading history.Leading // of a process that elects: what it says in this life
	Past    history.Terms   // all that it ever named, in this life and in those before

	Lost    uint64   // of a user that tries or is inside: members that lost their memory since it tried
	Doubts  uint64   // of a member without leases: the members that it suspects
	Lapsed  uint64   // the members at which its lease has lapsed
	Ended   uint64   // of these, those that suspected the client since; among members, those whose Ended it had
	Known   []uint64 // the incarnations of members that it was told of; nil: nobody tells it
	Revoked uint64   // among members: those whose lease it revoked, and of whom it had no Lapsed yet

	Paused bool   // it pauses: see Rules.Pauses
	Missed uint64 // while it does: the members at which its lease lapsed, or that suspected it for that

	Tasks  uint32 // while its user is inside: the operations that it is to issue
	Issued uint32 // the operations that its user has issued, in all lives
	Copied uint32 // the operations that its copy of the object has executed
}

// Ends are those of all processes of one state, by id; nil: the process is not there.
type Ends []*End

// absent reports whether process i is not there: never up, or crashed.
func (ends Ends) absent(i int) bool { return ends[i] == nil || ends[i].Gone }

// Up is how many of the first n processes are there.
func (ends Ends) Up(n int) (up int) {
	for i := range n {
		if !ends.absent(i) {
			up++
		}
	}
	return up
}

// paused reports whether process i pauses.
func (ends Ends) paused(i int) bool { return ends[i] != nil && ends[i].Paused }

func (e *End) lapsed(q int) bool { return e.Lapsed>>q&1 != 0 }
func (e *End) ended(q int) bool  { return e.Ended>>q&1 != 0 }
func (e *End) doubts(q int) bool { return e.Doubts>>q&1 != 0 }

// know records that its process was told of a life of member q.
func (e *End) know(q int, life uint64) {
	e.Known = slices.Clone(e.Known)
	e.Known[q] = life
}
