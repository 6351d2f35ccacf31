package world

import (
	"math/bits"

	"github.com/poundlock/poundlock/protocol"
)

// # Pauses
//
// A process that pauses neither receives nor acts for a while: its machine swaps, or is moved to
// another one. Its leases run on meanwhile, and others may suspect it, though nobody tells it
// so. When it goes on, it believes what it believed before, until it looks at its leases: that is
// the first thing that it does. Until then its user does nothing either. A user that is inside
// counts as outside from the first lapse on, and if its process lets it go on, as inside again.

// Unaware reports whether a lease of the process has lapsed while it paused.
func (e *End) Unaware() bool { return e.Paused && e.Missed != 0 }

// Noticed records that member p suspects a process because it pauses: once in a pause.
func (e *End) Noticed(p int) { e.Missed |= 1 << p }

// Miss is [Rules.Suspect] for a process that pauses: its lease at member q lapses without its
// knowledge.
func (r *Rules) Miss(e *End, q int) {
	r.Suspect(e, q, true)
	e.Missed |= 1 << q
}

// Missing is how many leases have lapsed of the client that pauses and has missed the most. It makes up for
// them when it goes on, and until then they are losses like others: beside one that it has not heard of either they may let
// somebody else in, while it believes that it has enough of them. Alone they do not.
func (r *Rules) Missing(ends Ends) (most int) {
	for _, e := range ends {
		if r.Leases && e != nil && e.Paused {
			most = max(most, bits.OnesCount64(e.Missed))
		}
	}
	return most
}

// Resume lets a process go on, and returns the events that it missed.
func (r *Rules) Resume(e *End) (missed []protocol.Input) {
	for q := 0; e.Missed>>q != 0; q++ {
		if e.Missed>>q&1 != 0 && r.Detector == protocol.LeaseDetector {
			missed = append(missed, protocol.Input{Kind: protocol.Suspect, From: protocol.ID(q), Arg: protocol.Lapsed})
		}
	}
	e.Paused, e.Missed = false, 0
	return missed
}
