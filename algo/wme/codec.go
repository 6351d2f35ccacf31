package wme

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	protocol.Upto(c, &m.Kind, State)
	c.Uints(&m.Epoch, &m.Number, &m.Done)
	c.AnyID(&m.Who)
	c.Uint(&m.ID)
	protocol.Text(c, &m.Op)
	bulky := m.More != nil
	c.Bool(&bulky)
	c.Want(bulky == (m.Kind == NewEp || m.Kind == Records || m.Kind == State))
	if bulky {
		protocol.Pointer(c, &m.More).fields(c)
	}
	return m
}

func (k *Bulk) fields(c *protocol.Codec) {
	c.AnyID(&k.Owner)
	visitRecords(c, &k.Records)
	c.Words(protocol.List(c, &k.Granted))
	visitClaims(c, &k.Requests)
	c.Words(protocol.List(c, &k.Lives))
	c.Words(protocol.List(c, &k.Last))
	protocol.Text(c, &k.Object)
}

func visitRecords(c *protocol.Codec, list *[]Record) {
	for i := range protocol.List(c, list) {
		r := &(*list)[i]
		c.Uints(&r.Number, &r.Before)
		c.AnyID(&r.Who)
		c.Uint(&r.ID)
		protocol.Text(c, &r.Op)
		c.Want(i == 0 || r.Number > (*list)[i-1].Number)
	}
}

func visitClaims(c *protocol.Codec, list *[]Claim) {
	for i := range protocol.List(c, list) {
		c.AnyID(&(*list)[i].Who)
		c.Uint(&(*list)[i].ID)
	}
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Uint(&p.curEp)
	c.ID(&p.curOwner, p.n)
	c.Uints(&p.curSN, &p.top, &p.committed, &p.executed, &p.stable)
	protocol.Upto(c, &p.state, lost)
	c.Uints(&p.reqID, &p.operation, &p.life, &p.missed)
	for _, list := range [...][]uint64{p.granted, p.lives, p.last, p.done, p.wishes} {
		c.Words(list)
	}
	protocol.Text(c, &p.lastIssuedOp)
	c.Bools(&p.late, &p.block, &p.proposed)
	visitClaims(c, &p.reqs)
	visitRecords(c, &p.opHist)
	for _, s := range [...]protocol.Set{p.logged, p.asked, p.fetchers, p.suspected} {
		c.Set(s, p.n)
	}
	for i := range p.votes {
		protocol.Nested(c, &p.votes[i], Message.fields)
	}
	for i := range protocol.List(c, &p.early) {
		e := &p.early[i]
		c.ID(&e.from, p.n)
		protocol.Nested(c, &e.msg, Message.fields)
	}
}

// fits: all that indexes an array is within it, and a vote alone is proposed.
func fits(m Message, n int, proposed bool) bool {
	if m.Who >= protocol.ID(n) || proposed && m.Kind != NewEp {
		return false
	}
	k := m.More
	if k == nil {
		return true
	}
	lives, last := n, 0
	switch m.Kind {
	case Records:
		lives = 0
	case State:
		last = n
	}
	return k.Owner < protocol.ID(n) && len(k.Granted) == n && len(k.Lives) == lives && len(k.Last) == last &&
		!slices.ContainsFunc(k.Records, func(r Record) bool { return r.Who >= protocol.ID(n) }) &&
		!slices.ContainsFunc(k.Requests, func(c Claim) bool { return c.Who >= protocol.ID(n) })
}

// snapshot is the object of a STATE.
func snapshot(m Message) (object string, ok bool) {
	if m.Kind == State {
		return m.More.Object, true
	}
	return "", false
}

// ints: an operation and a copy of the object count one.
func ints(m Message) int {
	k := 4
	if m.More != nil {
		k += 4*len(m.More.Records) + len(m.More.Granted) + 2*len(m.More.Requests) + len(m.More.Lives) + len(m.More.Last) + 1
	}
	return k
}

func text(m Message) string {
	name := messages[m.Kind].Name
	switch m.Kind {
	case Request:
		return fmt.Sprintf("%s(%d,%d,%d)", name, m.Epoch, m.ID, m.Done)
	case Grant:
		return fmt.Sprintf("%s(%d,%d,#%d,%d,%d)", name, m.Epoch, m.Number, m.Who, m.ID, m.Done)
	case Invoke:
		return fmt.Sprintf("%s(%d,%d,#%d,%d,%s,%d)", name, m.Epoch, m.Number, m.Who, m.ID, m.Op, m.Done)
	case Ack, DoInvoke, Ahead:
		return fmt.Sprintf("%s(%d,%d,%d)", name, m.Epoch, m.Number, m.Done)
	case Sync:
		return fmt.Sprintf("%s(%d,%d,%d,%d)", name, m.Epoch, m.Number, m.Done, m.ID)
	case Fetch:
		return name
	}
	return fmt.Sprintf("%s(%d,%d,%d,%s)", name, m.Epoch, m.Number, m.Done, m.More)
}

// String implements fmt.Stringer.
func (k *Bulk) String() string {
	return fmt.Sprintf("#%d,log%v,granted%v,waits%v,lives%v,last%v,%q", k.Owner, k.Records, k.Granted, k.Requests, k.Lives, k.Last, k.Object)
}

// String implements fmt.Stringer.
func (r Record) String() string {
	return fmt.Sprintf("%d>%d:#%d,%d,%s", r.Before, r.Number, r.Who, r.ID, r.Op)
}

// String implements fmt.Stringer.
func (c Claim) String() string { return fmt.Sprintf("#%d,%d", c.Who, c.ID) }

// Show is where the process is in the epochs and records, and what it waits for.
func (p *Process) Show() string {
	text := fmt.Sprintf("epoch %d, token #%d, record %d, executed %d", p.curEp, p.curOwner, p.curSN, p.executed)
	switch {
	case !p.joined():
		text = "joins"
	case p.block:
		text += ", ends the epoch"
	}
	if len(p.reqs) > 0 {
		text += ", waiting " + fmt.Sprint(p.reqs)
	}
	if p.state == csIssuing {
		text += ", issues " + p.lastIssuedOp
	}
	return text
}
