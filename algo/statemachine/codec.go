package statemachine

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(append(b, m.Kind), m.Ballot), m.Place)
	b = m.Command.append(b)
	b = binary.AppendUvarint(b, uint64(len(m.Log)))
	for _, e := range m.Log {
		b = e.append(b)
	}
	return b
}

func readMessage(b []byte) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m = Message{Kind: uint8(r.Max(uint64(Decided))), Ballot: r.Uint(), Place: r.Uint(), Command: readCommand(&r)}
	for range r.Len() {
		m.Log = append(m.Log, readEntry(&r))
	}
	return m, r.Rest, r.Err
}

func (c Command) append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, c.Do), uint64(c.Who))
	b = binary.AppendUvarint(binary.AppendUvarint(b, c.ID), c.Section)
	return protocol.AppendText(b, c.Op)
}

func readCommand(r *protocol.Reader) Command {
	return Command{uint8(r.Max(uint64(commands - 1))), protocol.ID(r.Uint()), r.Uint(), r.Uint(), r.Text()}
}

func (e Entry) append(b []byte) []byte {
	return e.Command.append(protocol.AppendBool(binary.AppendUvarint(b, e.Ballot), e.Decided))
}

func readEntry(r *protocol.Reader) Entry { return Entry{r.Uint(), r.Bool(), readCommand(r)} }

func appendSet(b []byte, set []protocol.ID) []byte {
	b = binary.AppendUvarint(b, uint64(len(set)))
	for _, id := range set {
		b = binary.AppendUvarint(b, uint64(id))
	}
	return b
}

func (p *Process) readSet(r *protocol.Reader) (set []protocol.ID) {
	for range r.Len() {
		set = append(set, p.readID(r))
	}
	return set
}

func (p *Process) readID(r *protocol.Reader) protocol.ID { return protocol.ID(r.Max(uint64(p.n - 1))) }

func (s section) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(s.who)), s.id)
}

func (p *Process) readSection(r *protocol.Reader) section { return section{p.readID(r), r.Uint()} }

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	for _, v := range []uint64{p.command, p.section, p.ballot, uint64(p.executed)} {
		b = binary.AppendUvarint(b, v)
	}
	for _, v := range []bool{p.leaving, p.ejected, p.leading} {
		b = protocol.AppendBool(b, v)
	}
	for id := range p.n {
		b = binary.AppendUvarint(binary.AppendUvarint(b, p.last[id]), p.ended[id])
	}
	b = appendSet(appendSet(b, p.promised), p.suspected)
	b = p.asked.append(b)
	b = binary.AppendUvarint(b, uint64(len(p.queue)))
	for _, s := range p.queue {
		b = s.append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(p.pending)))
	for _, c := range p.pending {
		b = c.append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(p.log)))
	for _, s := range p.log {
		b = binary.AppendUvarint(s.Entry.append(b), uint64(len(s.votes)))
		for _, v := range s.votes {
			b = appendSet(binary.AppendUvarint(b, v.ballot), v.by)
		}
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.command, p.section, p.ballot, p.executed = r.Uint(), r.Uint(), r.Uint(), int(r.Uint())
	p.leaving, p.ejected, p.leading = r.Bool(), r.Bool(), r.Bool()
	for id := range p.n {
		p.last[id], p.ended[id] = r.Uint(), r.Uint()
	}
	p.promised, p.suspected, p.asked = p.readSet(&r), p.readSet(&r), p.readSection(&r)
	p.queue, p.pending, p.log = p.queue[:0], p.pending[:0], p.log[:0]
	for range r.Len() {
		p.queue = append(p.queue, p.readSection(&r))
	}
	for range r.Len() {
		p.pending = append(p.pending, readCommand(&r))
	}
	for range r.Len() {
		s := place{Entry: readEntry(&r)}
		for range r.Len() {
			s.votes = append(s.votes, vote{r.Uint(), p.readSet(&r)})
		}
		p.log = append(p.log, s)
	}
	if p.ballot == 0 || p.executed > len(p.log) {
		r.Err = protocol.ErrShort
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }

// ints: an operation counts one.
func ints(m Message) int { return 7 + 7*len(m.Log) }

func text(m Message) string {
	name := messages[m.Kind].Name
	switch m.Kind {
	case Request:
		return fmt.Sprintf("%s(%s)", name, m.Command)
	case Prepare:
		return fmt.Sprintf("%s(%d,%d)", name, m.Ballot, m.Place)
	case Promise:
		words := make([]string, len(m.Log))
		for i, e := range m.Log {
			words[i] = e.String()
		}
		return fmt.Sprintf("%s(%d,%d,%s)", name, m.Ballot, m.Place, strings.Join(words, " "))
	case Decided:
		return fmt.Sprintf("%s(%d,%s)", name, m.Place, m.Command)
	}
	return fmt.Sprintf("%s(%d,%d,%s)", name, m.Ballot, m.Place, m.Command)
}

var verbs = []string{Nothing: "nothing", Enter: "enter", Invoke: "invoke", Exit: "exit", Eject: "eject"}

// String implements fmt.Stringer.
func (c Command) String() string {
	return fmt.Sprintf("%s #%d,%d,%d,%s", verbs[c.Do], c.Who, c.ID, c.Section, c.Op)
}

// String implements fmt.Stringer.
func (e Entry) String() string {
	if e.Decided {
		return fmt.Sprintf("[decided,%d,%s]", e.Ballot, e.Command)
	}
	return fmt.Sprintf("[%d,%s]", e.Ballot, e.Command)
}

// show is who coordinates, and who is inside and waits.
func show(q protocol.Process[Message]) string {
	p := q.(*Process)
	text := fmt.Sprintf("ballot %d of #%d, executed %d of %d", p.ballot, owner(p.ballot, p.n), p.executed, len(p.log))
	if p.leading {
		text += ", coordinates"
	}
	sep := ", inside "
	for _, s := range p.queue {
		text += fmt.Sprintf("%s#%d", sep, s.who)
		sep = ", then "
	}
	return text
}
