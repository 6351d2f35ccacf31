package check

import (
	"encoding/binary"
	"math"

	"github.com/poundlock/poundlock/protocol"
)

// Synchronous is the model of a time-out that exceeds a round trip: an armed timer fires
// only while no message from its process or to it is on its way, nor news of a detector.
// What waits for a time-out that is possible again and again gets it.
const Synchronous Timers = "synchronous"

// absent reports whether process i is not there: never up, or crashed.
func (s *space) absent(st []uint32, i int) bool {
	return st[1+i] != math.MaxUint32 && s.faces[st[1+i]].gone
}

// enough reports whether who tries may count on the members that are up in a state. One that came
// back counts as crashed as long as it is unsettled.
func (x *worker) enough(st []uint32) bool {
	if !x.info.Majority {
		return true
	}
	up := 0
	for i := range x.members {
		if !x.absent(st, i) {
			up++
		}
	}
	if x.budget>>recoverBudget&maxBudget > 0 {
		up -= x.m.unsettled(x.look(st))
	}
	return x.info.Enough(up, x.members)
}

// bury returns what is left of process p when it crashes: what its next life begins with,
// and whom it named.
func (x *worker) bury(p int) (number uint32, known bool) {
	if !x.peers {
		return 0, true
	}
	l := &x.locals[x.st[1+p]]
	left := local{proc: p, gone: true, past: l.past}
	if left.past == nil && x.budget>>recoverBudget&maxBudget == 0 {
		return 0, true
	}
	if x.budget>>recoverBudget&maxBudget > 0 {
		left.life, left.entries, left.issued = l.life, l.entries, l.issued
	}
	if x.mutual {
		left.known = make([]uint64, x.members)
	}
	return x.intern(left)
}

// peerDetections appends the steps of the failure detector where there are no clients:
// members are told who crashed, and who is up although they suspect it.
func (x *worker) peerDetections(list []action) []action {
	st := x.st
	for j := range x.members {
		if x.absent(st, j) {
			continue
		}
		doubts := x.locals[st[1+j]].doubts
		for q := range x.members {
			doubted := doubts&(1<<q) != 0
			a := action{verb: suspect, a: uint8(j), b: uint8(q)}
			switch {
			case q == j:
			case x.absent(st, q):
				list = append(list, a)
			case doubted: // a suspicion is a level, as long as it lasts
				list = append(list, a)
				a.verb = restore
				list = append(list, a)
			case left(st, suspectBudget) > 0 && x.info.Detector == protocol.UnreliableDetector:
				a.verb = mistake
				list = append(list, a)
			}
		}
	}
	return list
}

// waiting reports whether a timer of process i does not fire yet because time-outs are
// bounded: see Synchronous.
func (x *worker) waiting(i int) bool {
	if !x.bounded || x.registers != nil {
		return false
	}
	st := x.st
	for _, msg := range st[x.flight:] {
		l := &x.mail.letters[msg]
		if (int(l.from) == i || int(l.to) == i) && !l.stays(x.forgets) {
			return true
		}
	}
	if !x.peers || x.info.Detector == protocol.NoDetector {
		return false
	}
	if x.mutual {
		return x.leaseNews(i)
	}
	mine := x.locals[st[1+i]].doubts
	for q := range x.members {
		switch {
		case q == i:
		case x.absent(st, q) != (mine&(1<<q) != 0): // it is to be told of a crash, or that there is none
			return true
		case !x.absent(st, q) && x.locals[st[1+q]].doubts&(1<<i) != 0: // another one is to be told of it
			return true
		}
	}
	return false
}

// appendPeer appends what only members have that crash, doubt or elect, behind a byte that
// says whether there is any, and whether there are groups; and before it what those have whose
// users issue operations.
func (l *local) appendPeer(k []byte) []byte {
	if objects := l.tasks|l.issued|l.copied != 0; objects {
		k = append(k, 4)
		for _, v := range []uint32{l.tasks, l.issued, l.copied} {
			k = binary.AppendUvarint(k, uint64(v))
		}
	}
	peer := l.gone || l.doubts|l.revoked != 0 || len(l.past) > 0
	switch grouped := l.wants|l.group != 0; {
	case !peer && !grouped:
		return append(k, 0)
	case !peer:
		return append(k, 2, l.wants, l.group)
	case grouped:
		k = append(k, 3, l.wants, l.group)
	default:
		k = append(k, 1)
	}
	k = protocol.AppendBool(k, l.gone)
	k = binary.AppendUvarint(binary.AppendUvarint(k, l.doubts), l.revoked)
	k = protocol.AppendBool(k, l.leading.Named)
	k = binary.AppendUvarint(k, l.leading.Epoch)
	k = binary.AppendUvarint(k, uint64(l.leading.Leader))
	k = binary.AppendUvarint(k, uint64(len(l.past)))
	for _, t := range l.past {
		k = binary.AppendUvarint(binary.AppendUvarint(k, t.Epoch), uint64(t.Leader))
	}
	return k
}
