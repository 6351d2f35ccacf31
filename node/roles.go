package node

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// roles say who the processes of a system are to each other. They never change. Example: in a system of
// Sigma with four members, process 2 is one that clients dial; it dials nobody, and the sessions with its
// clients hang on leases.
type roles struct {
	self    protocol.ID
	members []string      // their names, by id
	info    protocol.Info // of any algorithm hosted here: they agree in what is asked of it
}

// member reports whether this process is a member.
func (r *roles) member() bool { return r.isMember(r.self) }

// isMember reports whether id is a member's.
func (r *roles) isMember(id protocol.ID) bool { return id < protocol.ID(len(r.members)) }

// dialsTo reports whether this node dials member id: of two processes that talk
// to each other the one with the larger id dials.
func (r *roles) dialsTo(id protocol.ID) bool {
	if r.member() {
		return r.info.Users != protocol.Clients && id < r.self
	}
	return true
}

// leased reports whether the session with id hangs on a lease. Between members that is so
// where each holds one at each other one.
func (r *roles) leased(id protocol.ID) bool {
	if r.member() && r.isMember(id) {
		return r.mutual()
	}
	return r.member() || r.info.Detector != protocol.NoDetector
}

// mutual reports whether members hold leases at each other: see protocol.LeaseDetector.
func (r *roles) mutual() bool {
	return r.info.Users == protocol.Members && r.info.Detector == protocol.LeaseDetector
}

// holds reports whether this process holds leases: it must notice at once that one is over.
func (r *roles) holds() bool { return !r.member() || r.mutual() }

// standing reports whether there is always a session with id, so that messages
// wait in it even before the first connection: where the algorithm is not told
// who can be reached.
func (r *roles) standing(id protocol.ID) bool {
	return r.mayTalk(id) && r.isMember(id) && r.info.Detector != protocol.LeaseDetector
}

// comeBack reports whether members come back as new lives, which say whether they are the first.
func (r *roles) comeBack() bool { return comeBack(&r.info) }

func comeBack(i *protocol.Info) bool {
	return i.Users != protocol.Clients && i.Tolerates&protocol.Recovery != 0 &&
		(i.Detector == protocol.UnreliableDetector || i.Detector == protocol.LeaseDetector)
}

// mayTalk reports whether lock messages pass between this node and id.
func (r *roles) mayTalk(id protocol.ID) bool {
	if r.info.Users != protocol.Clients {
		return r.isMember(id) && r.member()
	}
	return r.isMember(id) != r.member()
}

// noun is what people call a member.
func (r *roles) noun() string {
	if r.info.Users == protocol.Clients {
		return "server"
	}
	return "peer"
}

// name is what people call process id.
func (r *roles) name(id protocol.ID) string {
	if r.isMember(id) {
		return r.members[id]
	}
	return fmt.Sprintf("client %x", uint64(id))
}

// watched reports whether members suspect each other.
func (r *roles) watched() bool { return watched(&r.info) }

// life is what processes are told of an incarnation: the first life of a member that comes back
// is 1.
func (r *roles) life(incarnation uint64) uint64 {
	if r.comeBack() && !joins(incarnation) {
		return 1
	}
	return incarnation
}

// restores reports whether processes are told about sessions with this peer.
func (r *roles) restores(id protocol.ID) bool {
	return r.info.Detector == protocol.LeaseDetector && r.isMember(id) && r.holds()
}
