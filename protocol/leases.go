package protocol

// A Detector is the failure detector that an algorithm asks for.
type Detector uint8

const (
	// NoDetector: nobody is ever suspected.
	NoDetector Detector = iota
	// PerfectDetector: members suspect exactly those that crashed: clients, or members
	// where there are no clients.
	PerfectDetector
	// LeaseDetector is what a network can have. Where there are clients, each of them holds a
	// lease at each server. When it may have lapsed the client gets Suspect(server), and only
	// after that does the server get Suspect(client), though both are alive. Restore(server),
	// with the incarnation of the server, tells the client that a new lease begins, or that the
	// incarnation changed. No message crosses from one lease into the next: what was on its way
	// is lost.
	//
	// Where there are no clients, each member holds a lease at each other one. The two leases of
	// a pair begin and end together: they are a session, whose states are below.
	LeaseDetector
	// UnreliableDetector: a member suspects the members that crashed, and may suspect
	// others for a while, such as those from which a partition cuts it off. Restore ends
	// each suspicion of a member that is alive. On a network what is on its way between two
	// members may be lost, where the algorithm tolerates Recovery: each of them then gets Suspect
	// of the other, and Restore when no more is lost.
	UnreliableDetector
)

// Values of Input.Arg in a Suspect of the other end of a session. The session of members a and b
// begins when they hear each other, and breaks when one of them crashes, revokes it, or does not
// hear the other for too long. Each of the three events comes once a session to each end:
//
//	            Restore(b)                Suspect(b), Lapsed          Suspect(b), Ended
//	a:  apart ------------> in session ----------------------> lapsed ------------------> apart
//
// Both ends get Lapsed before either gets Ended, and both get Ended before either gets Restore of
// the next session. From its Lapsed on, a gets no message of b, and what it sends to b is lost. The
// end that gets Restore second has it before any message of the first.
//
// A member that crashed gets nothing; the others get Lapsed and Ended of it. Its next life begins
// apart from all. It gets Ended of each member that had Lapsed of the life before, or is
// down, and then Restore as above. In the first life Restore comes at once.
const (
	Lapsed = 0 // the lease of this member at From may have lapsed
	Ended  = 1 // the lease of From here has lapsed too, and From knows or has crashed
)

// Revoke is the effect that ends the lease which member To holds here, as if nothing were heard of
// it: their session breaks.
const Revoke Do = 13

// NewSuspect is the event that the detector suspects id.
func NewSuspect(id ID) Input { return Input{Kind: Suspect, From: id} }

// NewLapsed is the event that the lease at member id may have lapsed.
func NewLapsed(id ID) Input { return Input{Kind: Suspect, From: id, Arg: Lapsed} }

// NewEnded is the event that the session with id is over at both ends.
func NewEnded(id ID) Input { return Input{Kind: Suspect, From: id, Arg: Ended} }

// NewRestore is the event that id is trusted, in this incarnation.
func NewRestore(id ID, incarnation uint64) Input {
	return Input{Kind: Restore, From: id, Arg: incarnation}
}

// Revoke ends the lease that member id holds here.
func (o *Out[M]) Revoke(id ID) { o.effect(Revoke).To = id }
