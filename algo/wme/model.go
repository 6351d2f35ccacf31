package wme

import "github.com/poundlock/poundlock/protocol"

// moot: the receiver drops the message, now and later. It is of an epoch that is over there, or is
// ending, or of a record or a request that it has done with.
func moot(to protocol.Process[Message], from protocol.ID, m Message) bool {
	p := to.(*Process)
	switch {
	case !p.joined() || m.Kind >= Sync || m.Epoch > p.curEp:
		return false
	case m.Epoch < p.curEp:
		return true
	case m.Kind == NewEp:
		return p.proposed
	case p.block:
		return true
	case m.Kind == Grant || m.Kind == Invoke:
		return m.Number <= p.curSN
	case p.stability: // it says what is executed elsewhere, too
		return false
	case m.Kind == Request:
		return m.ID <= p.granted[from]
	}
	return m.Number <= p.committed
}
