package world

// # Sessions
//
// Two members with leases at each other have a session, or each of them knows in part or in full that
// there is none. A session breaks where one of the two gets Lapsed: by itself, or because the other
// one crashed, or was told, or one of them revoked it. The rest must then happen, each part
// at a moment of its own. A member that was restored before the other one has a session
// already: what it sends waits until the other one is restored, too.

// A Side is what one of the two knows. A life begins with Lapsed, and who crashed counts as one who
// had it.
type Side struct {
	Gone, Paused  bool // this member
	Lapsed, Ended bool // it had these since the last Restore
	Revoked       bool // it revoked the session, and had no Lapsed yet
}

// Notices is what the member may be told of the other one.
func (s Side) Notices(other Side) Notices {
	switch {
	case s.Gone:
		return 0
	case !s.Lapsed && (other.Lapsed && !other.Ended || s.Revoked || other.Revoked):
		return ToLapse
	case !s.Lapsed && (s.Paused || other.Paused):
		return MayLapse | Paused
	case !s.Lapsed:
		return MayLapse
	case s.Paused:
		return 0
	case !s.Ended && other.Lapsed:
		return ToSuspect
	case s.Ended && (other.Ended || other.Ahead(s)):
		return ToRestore
	}
	return 0
}

// Ahead reports whether the member was restored to a session, and the other one was not yet.
func (s Side) Ahead(other Side) bool { return !s.Lapsed && other.Ended }

// side is that of member p of its session with member q.
func (ends Ends) side(p, q int) Side {
	if ends.absent(p) {
		return Side{Gone: true, Lapsed: true}
	}
	e := ends[p]
	return Side{Paused: e.Paused, Lapsed: e.lapsed(q), Ended: e.ended(q), Revoked: e.Revoked>>q&1 != 0}
}
