package ringelection

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	b = append(b, m.Kind)
	if m.Kind == Recovered {
		return b
	}
	b = m.Epoch.Append(b)
	if m.Kind == Election {
		b = appendIDs(b, m.IDs)
	}
	return b
}

func readMessage(b []byte) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m.Kind = uint8(r.Max(uint64(Recovered)))
	if m.Kind == Recovered {
		return m, r.Rest, r.Err
	}
	m.Epoch = r.Epoch(math.MaxUint64)
	if m.Kind == Election {
		m.IDs = readIDs(&r, nil, math.MaxUint64)
		if r.Err == nil && len(m.IDs) == 0 {
			return Message{}, nil, protocol.ErrShort
		}
	}
	return m, r.Rest, r.Err
}

func appendIDs(b []byte, ids []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = binary.AppendUvarint(b, id)
	}
	return b
}

// readIDs appends to ids, each of which is at most most.
func readIDs(r *protocol.Reader, ids []uint64, most uint64) []uint64 {
	for range r.Len() {
		ids = append(ids, r.Max(most))
	}
	return ids
}

func ints(m Message) int {
	switch m.Kind {
	case Recovered:
		return 0
	case Coordinator:
		return 2
	}
	return 2 + len(m.IDs)
}

func text(m Message) string {
	switch name := messages[m.Kind].Name; m.Kind {
	case Recovered:
		return name
	case Coordinator:
		return name + "(" + m.Epoch.Text() + ")"
	default:
		return name + "(" + m.Epoch.Text() + "," + names(m.IDs) + ")"
	}
}

// names are processes, written for drivers.
func names(ids []uint64) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = fmt.Sprintf("#%d", id)
	}
	return "[" + strings.Join(list, ",") + "]"
}

// show is the newest epoch, and the election that the process takes part in.
func show(q protocol.Process[Message]) string {
	p := q.(*Process)
	text := "epoch " + p.epoch.Text()
	if len(p.list) > 0 {
		text += ", takes part in " + names(p.list)
	}
	sep := ", suspects "
	for j := range protocol.ID(p.n) {
		if p.suspects(j) {
			text += fmt.Sprintf("%s#%d", sep, j)
			sep = ", "
		}
	}
	return text
}

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	b = appendIDs(p.epoch.Append(b), p.list)
	for _, w := range p.suspected {
		b = binary.AppendUvarint(b, w)
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.epoch = r.Epoch(protocol.ID(p.n - 1))
	p.list = readIDs(&r, p.list[:0], uint64(p.n-1))
	if len(p.list) > p.n {
		return nil, protocol.ErrShort
	}
	for k := range p.suspected {
		p.suspected[k] = r.Max(1<<min(64, p.n-64*k) - 1)
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }
