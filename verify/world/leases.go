package world

import "github.com/poundlock/poundlock/protocol"

// # Failure detectors and leases
//
// Three kinds of detectors tell a process of another one; Info.Detector and Info.Users say
// which. A lease is that of a client at a member. A session is the two leases that two
// members hold at each other. A suspicion is what a member thinks of another one where
// there are no leases.

// Notices are what the detector may tell a process of another one.
type Notices uint8

// What must be told, sooner or later, and what need not be.
const (
	ToSuspect  Notices = 1 << iota // Suspect: among members with leases with protocol.Ended
	ToRestore                      // Restore
	ToLapse                        // Suspect with protocol.Lapsed: the session is broken
	MaySuspect                     // Suspect, by mistake
	MayLapse                       // the lease lapses, though both are there
	Paused                         // of what need not be told: it is, because one of the two pauses

	// Must are the notices that a fair detector gives.
	Must = ToSuspect | ToRestore | ToLapse
)

// Notices is what process p may be told of process q.
func (r *Rules) Notices(ends Ends, p, q int) Notices {
	n := r.Config.N
	switch {
	case r.Detector == protocol.NoDetector, p == q, ends.absent(p):
		return 0
	case r.Mutual && q < n:
		return ends.side(p, q).Notices(ends.side(q, p))
	case r.Peers && q < n:
		return r.suspicion(ends, p, q)
	case r.Peers:
		return 0
	case p < n && q >= n:
		return r.Lease(ends, q, p) & ToSuspect
	case p >= n && q < n && !ends.absent(q):
		return r.Lease(ends, p, q) &^ ToSuspect
	}
	return 0
}

// Lease is what member j may be told of user u (ToSuspect), and client u of member j
// (ToRestore, MayLapse): both at once. j is there.
//
// When a client's lease may have lapsed it is told first, and the member after it. Then a
// new lease begins with Restore. A client also hears of a new life of a member.
func (r *Rules) Lease(ends Ends, u, j int) (n Notices) {
	if ends.absent(u) && !ends[j].Paused {
		return ToSuspect
	}
	if !r.Leases || ends.absent(u) {
		return 0
	}
	e := ends[u]
	switch {
	case !e.lapsed(j) && (e.Paused || ends[j].Paused):
		n = MayLapse | Paused
	case !e.lapsed(j):
		n = MayLapse
	case !e.ended(j):
		n = ToSuspect
	}
	if e.ended(j) || e.Known[j] != ends[j].Life {
		n |= ToRestore
	}
	if e.Paused {
		n &^= ToRestore
	}
	if ends[j].Paused {
		n &^= ToSuspect
	}
	return n
}

// suspicion is what member p may be told of member q, another one, where there are no
// leases. A suspicion lasts: it may be told again as long as there is a reason for it.
func (r *Rules) suspicion(ends Ends, p, q int) Notices {
	switch {
	case ends.paused(p):
		return 0
	case ends.absent(q):
		return ToSuspect
	case ends[p].doubts(q):
		return ToSuspect | ToRestore
	case r.Detector == protocol.UnreliableDetector && ends[p].Known != nil && ends[p].Known[q] != ends[q].Life:
		return MaySuspect | ToRestore
	case ends.paused(q) && ends[q].Missed>>p&1 == 0:
		return MaySuspect | Paused
	case r.Detector == protocol.UnreliableDetector:
		return MaySuspect
	}
	return 0
}

// Told reports whether the detector of peers has nothing to tell that is about member i: it
// heard of every crash and of every life, and so did the others of it.
func (r *Rules) Told(ends Ends, i int) bool {
	if r.Detector == protocol.NoDetector {
		return true
	}
	for q := range r.Config.N {
		switch {
		case q == i:
		case r.Mutual:
			if (r.Notices(ends, i, q)|r.Notices(ends, q, i))&Must != 0 {
				return false
			}
		case ends.absent(q) != ends[i].doubts(q), !ends.absent(q) && ends[q].doubts(i):
			return false
		}
	}
	return true
}

// Suspect tells a process that q is suspected, and returns its event. A client whose lease at
// member q lapses, or a member whose session with q is broken, is told so with lapses; a member
// is told that its lease has ended, or that it suspects q, without.
func (r *Rules) Suspect(e *End, q int, lapses bool) protocol.Input {
	in := protocol.NewSuspect(protocol.ID(q))
	switch {
	case lapses:
		e.Lapsed |= 1 << q
		e.Revoked &^= 1 << q
		if r.Mutual {
			e.know(q, 0)
		}
		in.Arg = protocol.Lapsed
	case r.Mutual:
		e.Ended |= 1 << q
		in.Arg = protocol.Ended
	case r.Peers:
		e.Doubts |= 1 << q
	}
	return in
}

// Restore tells a process that member q is there, in its life of this number.
func (r *Rules) Restore(e *End, q int, life uint64) protocol.Input {
	e.Lapsed &^= 1 << q
	e.Ended &^= 1 << q
	e.Doubts &^= 1 << q
	if e.Known != nil {
		e.know(q, life)
	}
	return protocol.NewRestore(protocol.ID(q), life)
}

// revoke lets a member break its session with member q.
func (e *End) revoke(q int) {
	if !e.lapsed(q) {
		e.Revoked |= 1 << q
	}
}

// unleased is a life of member p that begins: it has no sessions.
func (r *Rules) unleased(e *End, p int) {
	e.Lapsed, e.Ended, e.Revoked = (1<<r.Config.N-1)&^(1<<p), 0, 0
	e.Known = make([]uint64, r.Config.N)
}

// # Messages and leases

// Severed reports whether what one process sends to another one is lost at once. Members are
// there.
func (r *Rules) Severed(ends Ends, from, to int) bool {
	switch {
	case r.Mutual:
		return ends[from].lapsed(to) || ends[to].lapsed(from) && !ends.side(from, to).Ahead(ends.side(to, from))
	case !r.Leases:
		return false
	}
	client, member := max(from, to), min(from, to)
	return client >= r.Config.N && member < r.Config.N && ends[client] != nil && ends[client].lapsed(member)
}

// Withheld reports whether messages on their way from one process to another wait for a session.
func (r *Rules) Withheld(ends Ends, from, to int) bool {
	return r.Mutual && !ends.absent(to) && ends[to].lapsed(from)
}

// Cuts says which messages are lost when process p is told that q is suspected: those on
// their way from q to p, and those from p to q.
func (r *Rules) Cuts(ends Ends, p, q int, lapses bool) (from, to bool) {
	switch {
	case r.Leases && lapses:
		return true, false // to the client; those from it are lost when the member is told
	case r.Leases:
		return !ends.absent(q), false // of a client that crashed they arrive
	case r.Mutual && lapses:
		return true, ends.absent(q) || ends[q].lapsed(p)
	}
	return false, false
}

// Buried reports whether messages on their way between two processes are lost when p crashes:
// those to it, and those that wait for a session with it.
func (r *Rules) Buried(ends Ends, p, from, to int) bool {
	return to == p || from == p && r.Withheld(ends, from, to)
}
