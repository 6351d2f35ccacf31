package maekawa

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// timed are the kinds of messages that carry a timestamp.
func timed(kind uint8) bool { return kind == Request || kind == Reply }

func appendMessage(b []byte, m Message) []byte {
	b = append(b, m.Kind)
	if timed(m.Kind) {
		b = binary.AppendUvarint(b, m.Time)
	}
	return b
}

// reader reads messages of the kinds to last.
func reader(last uint8) func(b []byte) (m Message, rest []byte, err error) {
	return func(b []byte) (m Message, rest []byte, err error) {
		r := protocol.Reader{Rest: b}
		if m.Kind = uint8(r.Max(uint64(last))); timed(m.Kind) {
			m.Time = r.Uint()
		}
		return m, r.Rest, r.Err
	}
}

func ints(m Message) int {
	if m.Time == 0 {
		return 0
	}
	return 1
}

func text(m Message) string {
	if m.Time == 0 {
		return messages[m.Kind].Name
	}
	return fmt.Sprintf("%s(%d)", messages[m.Kind].Name, m.Time)
}

// list is what stands in a queue, with blanks between.
func list[T any](queue []T, text func(T) string) string {
	if len(queue) == 0 {
		return ""
	}
	texts := make([]string, len(queue))
	for k, x := range queue {
		texts[k] = text(x)
	}
	return ", waiting " + strings.Join(texts, " ")
}

// # The basic form

// show is how many votes it has, whether it has voted, and who waits for that.
func (p *BasicProcess) show() string {
	text := "not voted"
	if p.voted {
		text = "voted"
	}
	if p.section == protocol.InTry {
		text = fmt.Sprintf("%d of %d votes, %s", p.replies, len(p.voters), text)
	}
	return text + list(p.queue, func(j protocol.ID) string { return fmt.Sprintf("#%d", j) })
}

// AppendState implements protocol.Process.
func (p *BasicProcess) AppendState(b []byte) []byte {
	b = append(b, byte(p.section))
	b = binary.AppendUvarint(b, p.replies)
	b = protocol.AppendBool(b, p.voted)
	b = binary.AppendUvarint(b, uint64(len(p.queue)))
	for _, j := range p.queue {
		b = binary.AppendUvarint(b, uint64(j))
	}
	return b
}

// LoadState implements protocol.Process.
func (p *BasicProcess) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.section = protocol.Section(r.Max(uint64(protocol.InCrit)))
	p.replies = r.Max(uint64(len(p.voters)))
	p.voted = r.Bool()
	p.queue = p.queue[:0]
	for range r.Max(uint64(p.n)) {
		p.queue = append(p.queue, protocol.ID(r.Max(uint64(p.n-1))))
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *BasicProcess) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }

// # The form that does not deadlock

func (r request) String() string { return fmt.Sprintf("#%d(%d)", r.id, r.time) }

// show is the clock, what each member of the set has answered, whom the process itself
// votes for, and who waits for that.
func (p *Process) show() string {
	text := fmt.Sprintf("clock %d", p.clock)
	if p.section == protocol.InTry {
		for k, j := range p.voters {
			text += fmt.Sprintf(", #%d %s", j, [...]string{"silent", "failed", "voted", "inquired"}[p.answers[k]])
		}
	}
	if p.vote != (request{}) {
		text += ", vote for " + p.vote.String()
	}
	if p.asked {
		text += " asked back"
	}
	return text + list(p.queue, request.String)
}

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	b = binary.AppendUvarint(b, p.clock)
	b = append(b, byte(p.section))
	if p.section == protocol.InTry {
		for _, a := range p.answers {
			b = append(b, byte(a))
		}
	}
	b = p.vote.append(b)
	if p.vote == (request{}) {
		return b
	}
	b = protocol.AppendBool(b, p.asked)
	b = binary.AppendUvarint(b, uint64(len(p.queue)))
	for _, r := range p.queue {
		b = r.append(b)
	}
	return b
}

// append writes the time of a request, and its process unless it is none.
func (r request) append(b []byte) []byte {
	b = binary.AppendUvarint(b, r.time)
	if r.time == 0 {
		return b
	}
	return binary.AppendUvarint(b, uint64(r.id))
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.clock = r.Uint()
	p.section = protocol.Section(r.Max(uint64(protocol.InCrit)))
	clear(p.answers)
	if p.section == protocol.InTry {
		for k := range p.answers {
			p.answers[k] = answer(r.Max(uint64(inquired)))
		}
	}
	p.asked, p.queue = false, p.queue[:0]
	if p.vote = p.readRequest(&r); p.vote == (request{}) {
		return r.Rest, r.Err
	}
	p.asked = r.Bool()
	for range r.Max(uint64(p.n)) {
		p.queue = append(p.queue, p.readRequest(&r))
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }

func (p *Process) readRequest(r *protocol.Reader) (q request) {
	if q.time = r.Uint(); q.time > 0 {
		q.id = protocol.ID(r.Max(uint64(p.n - 1)))
	}
	return q
}

// clocks is the counter of all timestamps. 0 means none.
var clocks = protocol.Counter{Least: 1}

func mapState(q protocol.Process[Message], f func(protocol.Counter, uint64) uint64) {
	p := q.(*Process)
	p.clock = f(clocks, p.clock)
	if p.vote == (request{}) {
		return
	}
	p.vote.time = f(clocks, p.vote.time)
	for k := range p.queue {
		p.queue[k].time = f(clocks, p.queue[k].time)
	}
}

func mapMsg(_ protocol.Channel, m *Message, f func(protocol.Counter, uint64) uint64) {
	if m.Time != 0 {
		m.Time = f(clocks, m.Time)
	}
}
