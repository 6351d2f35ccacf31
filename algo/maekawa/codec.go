package maekawa

import (
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// timed are the kinds of messages that carry a timestamp.
func timed(kind uint8) bool { return kind == Request || kind == Reply }

func (m Message) fields(c *protocol.Codec) Message {
	if protocol.Upto(c, &m.Kind, Yield); timed(m.Kind) {
		c.Time(&m.Time)
	}
	return m
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

// Show is how many votes it has, whether it has voted, and who waits for that.
func (p *BasicProcess) Show() string {
	text := "not voted"
	if p.voted {
		text = "voted"
	}
	if p.section == protocol.InTry {
		text = fmt.Sprintf("%d of %d votes, %s", p.replies, len(p.voters), text)
	}
	return text + list(p.queue, func(j protocol.ID) string { return fmt.Sprintf("#%d", j) })
}

// State implements protocol.Process.
func (p *BasicProcess) State(c *protocol.Codec) {
	protocol.Upto(c, &p.section, protocol.InCrit)
	protocol.Upto(c, &p.replies, uint64(len(p.voters)))
	c.Bool(&p.voted)
	for i := range protocol.List(c, &p.queue) {
		c.ID(&p.queue[i], p.n)
	}
	c.Want(len(p.queue) <= p.n)
}

// # The form that does not deadlock

// Waiting is how many wait for the vote.
func (p *Process) Waiting() int { return len(p.queue) }

// Show is the clock, what each member of the set has answered, whom the process itself
// votes for, and who waits for that.
func (p *Process) Show() string {
	text := fmt.Sprintf("clock %d", p.clock)
	if p.section == protocol.InTry {
		for k, j := range p.voters {
			text += fmt.Sprintf(", #%d %s", j, [...]string{"silent", "failed", "voted", "inquired"}[p.answers[k]])
		}
	}
	if p.vote != (protocol.Stamp{}) {
		text += ", vote for " + p.vote.String()
	}
	if p.asked {
		text += " asked back"
	}
	return text + list(p.queue, protocol.Stamp.String)
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Clock(&p.clock)
	protocol.Upto(c, &p.section, protocol.InCrit)
	if c.Reading() {
		clear(p.answers)
		p.asked, p.queue = false, p.queue[:0]
	}
	if p.section == protocol.InTry {
		for k := range p.answers {
			protocol.Upto(c, &p.answers[k], inquired)
		}
	}
	if c.Stamp(&p.vote, p.n); p.vote == (protocol.Stamp{}) {
		return
	}
	c.Bool(&p.asked)
	for i := range protocol.List(c, &p.queue) {
		c.Stamp(&p.queue[i], p.n)
	}
	c.Want(len(p.queue) <= p.n)
}
