package world

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
)

// Has reports whether the model of an algorithm has steps of some kind: of Suspect, that a
// detector or a lease is wrong; of Pause, that one is more than slowness, which every system has
// anyway: others may hold it against the process.
func Has(i protocol.Info, v scenario.Verb) bool {
	peers := i.Users != protocol.Clients
	switch v {
	case scenario.Amnesia: // a member that restarts and has leases at others has crashed
		return i.Tolerates&protocol.Amnesia != 0 && !(peers && i.Detector == protocol.LeaseDetector)
	case scenario.Crash:
		return i.Tolerates&protocol.Crash != 0
	case scenario.Recover:
		return i.Tolerates&protocol.Recovery != 0 && peers
	case scenario.Suspect, scenario.Pause:
		return i.Detector == protocol.LeaseDetector || i.Detector == protocol.UnreliableDetector && peers
	case scenario.Cancel:
		return i.Cancels
	case scenario.Drain:
		return i.Drains
	case scenario.Lose:
		return i.Tolerates&protocol.Loss != 0
	case scenario.Duplicate:
		return i.Tolerates&protocol.Duplication != 0
	}
	return true
}

// First is the End of process i at the beginning. Its first event is Start, as [End.Start] says.
func (r *Rules) First(i int) (e End) {
	if r.Lives {
		e.Life = 1
	}
	switch {
	case r.Mutual:
		r.unleased(&e, i)
		e.Ended = e.Lapsed // as if after a session: the first one begins at once
	case r.Leases && i >= r.Config.N:
		e.Known = make([]uint64, r.Config.N)
	}
	return e
}

// Start is the first event of a life.
func (e *End) Start() protocol.Input { return protocol.NewStart(e.Life) }

// Reborn is the End of process i in its next life: after it lost its memory, or when it
// recovers.
func (r *Rules) Reborn(before *End, i int) End {
	e := End{Life: before.Life, Past: before.Past, Issued: before.Issued}
	if r.Lives {
		e.Life++
	}
	if r.Mutual {
		r.unleased(&e, i)
	}
	return e
}

// Crashed is the End of a process that crashed: what its next life begins with.
func (r *Rules) Crashed(before *End) End {
	e := End{Gone: true, Life: before.Life, Past: before.Past, Issued: before.Issued}
	if r.Mutual {
		e.Known = make([]uint64, r.Config.N)
	}
	return e
}

// Forgotten records at user u that member j lost its memory, and reports whether it matters: u
// tries or is inside, and j counts as faulty until it leaves.
func (r *Rules) Forgotten(e *End, u, j int) bool {
	if u == j || !r.IsUser(u) || e.Section != protocol.InTry && e.Section != protocol.InCrit {
		return false
	}
	e.Lost |= 1 << j
	return true
}

// Enough reports whether users that try may count on the members that are up; unsettled ones
// came back, and take no part yet: see protocol.Algorithm.Unsettled.
func (r *Rules) Enough(ends Ends, unsettled int) bool {
	return r.Info.Enough(ends.Up(r.Config.N)-unsettled, r.Config.N)
}

// Accurate reports whether every member that is there suspects exactly those that are not.
func (r *Rules) Accurate(ends Ends) bool {
	for j := range r.Config.N {
		for q := range r.Config.N {
			if !ends.absent(j) && q != j && ends.absent(q) != ends[j].doubts(q) {
				return false
			}
		}
	}
	return true
}

// # Timers

// Fire lets a timer of a process fire, which is set.
func (e *End) Fire(timer uint32) protocol.Input {
	e.unset(timer)
	return protocol.Input{Kind: protocol.Timeout, Timer: timer}
}

func (e *End) set(timer uint32) {
	if i, set := slices.BinarySearch(e.Timers, timer); !set {
		e.Timers = slices.Insert(slices.Clip(e.Timers), i, timer)
	}
}

func (e *End) unset(timer uint32) {
	if i, set := slices.BinarySearch(e.Timers, timer); set {
		e.Timers = slices.Delete(slices.Clone(e.Timers), i, i+1)
	}
}
