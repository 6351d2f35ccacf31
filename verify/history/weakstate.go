package history

import (
	"encoding/binary"

	"github.com/poundlock/poundlock/protocol"
)

// AppendState appends the encoding of what a later verdict depends on, and of nothing else: two
// histories after which the same events are judged alike have equal bytes, but for names and numbers.
func (w *Weak) AppendState(b []byte) []byte {
	for i := range w.state {
		b = w.appendUser(b, i)
	}
	for _, k := range w.copies {
		b = binary.AppendUvarint(b, uint64(k+1))
	}
	b = binary.AppendUvarint(b, uint64(w.first))
	b = binary.AppendUvarint(b, uint64(len(w.names)))
	for _, op := range w.names {
		b = protocol.AppendText(b, op)
	}
	b = binary.AppendUvarint(b, uint64(len(w.ghosts)))
	for _, g := range w.ghosts {
		b = binary.AppendUvarint(b, uint64(g.user))
		b = appendBegun(b, g.acted, g.found)
		b = protocol.AppendBool(protocol.AppendText(b, g.op), g.passed)
	}
	return append(binary.AppendUvarint(b, uint64(w.lastPlace())), byte(w.excuse))
}

// appendUser: of a section that is over only an operation counts that failed.
func (w *Weak) appendUser(b []byte, i int) []byte {
	u, at := w.state[i], w.users[i]
	b = append(b, byte(at))
	inside := at == protocol.InCrit || at == protocol.InIssue
	open := at == protocol.InIssue
	if !inside {
		u.acted, u.found = false, 0
	}
	if !inside && at != protocol.InTry {
		u.after = 0
	}
	if !open && (u.at > 0 || inside) {
		u.op, u.at = "", 0
	}
	b = appendBegun(b, u.acted, u.found)
	b = binary.AppendUvarint(b, u.after)
	return binary.AppendUvarint(protocol.AppendText(b, u.op), uint64(u.at))
}

// appendBegun: what a section found in its copy counts until one of its operations is executed.
func appendBegun(b []byte, acted bool, found int) []byte {
	if acted {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(found)+1)
}

// lastPlace says whose section the last operation was of, if that may have another one: 0 of
// nobody's, else that of a user, or behind them of a ghost.
func (w *Weak) lastPlace() int {
	for i, u := range w.state {
		inside := w.users[i] == protocol.InCrit || w.users[i] == protocol.InIssue
		if inside && u.acted && w.last == (sectionID{i, u.section}) {
			return 1 + i
		}
	}
	for i, g := range w.ghosts {
		if g.acted && w.last == (sectionID{g.user, g.section}) {
			return 1 + len(w.state) + i
		}
	}
	return 0
}

// LoadState replaces the state by an encoded one of as many processes, and returns what follows it.
func (w *Weak) LoadState(b []byte) (rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	for i := range w.state {
		w.users[i] = protocol.Section(r.Max(uint64(protocol.InIssue)))
		u := weakUser{}
		u.acted, u.found = readBegun(&r)
		u.after, u.op, u.at = r.Uint(), r.Text(), int(r.Uint())
		w.state[i] = u
	}
	for i := range w.copies {
		w.copies[i] = int(r.Uint()) - 1
	}
	w.first, w.names = int(r.Uint()), w.names[:0]
	for range r.Len() {
		w.names = append(w.names, r.Text())
	}
	w.ghosts = w.ghosts[:0]
	for i := range r.Len() {
		g := ghost{user: int(r.Max(uint64(len(w.state) - 1))), section: -1 - i} // no user's section has such a number
		g.acted, g.found = readBegun(&r)
		g.op, g.passed = r.Text(), r.Bool()
		w.ghosts = append(w.ghosts, g)
	}
	w.last = sectionID{user: -1}
	switch k := int(r.Max(uint64(len(w.state) + len(w.ghosts)))); {
	case k == 0:
	case k <= len(w.state):
		w.last = sectionID{user: k - 1}
	default:
		g := w.ghosts[k-1-len(w.state)]
		w.last = sectionID{g.user, g.section}
	}
	w.excuse = excuse(r.Max(uint64(nothingLeft)))
	return r.Rest, r.Err
}

func readBegun(r *protocol.Reader) (acted bool, found int) {
	k := int(r.Uint())
	return k == 0, max(0, k-1)
}
