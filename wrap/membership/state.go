package membership

import (
	"fmt"
	"math"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// State implements protocol.Process.
func (p *Process[M]) State(c *protocol.Codec) {
	for j := range p.peers {
		p.peers[j].fields(c)
	}
	c.Uint(&p.number)
	p.counted.fields(c)
	c.Uint(&p.seen)
	c.Epoch(&p.epoch, math.MaxUint64)
	p.members.fields(c)
	p.linked.fields(c)
	c.Uint(&p.news)
	c.AnyID(&p.told.to)
	c.Uint(&p.told.number)
	protocol.Upto(c, &p.section, protocol.InExit)
	c.Bools(&p.active, &p.stray, &p.offered, &p.running, &p.frozen, &p.once, &p.asked, &p.byOld, &p.old.pending, &p.old.started, &p.old.late, &p.old.kept, &p.old.closed, &p.old.last)
	p.base.fields(c)
	protocol.Text(c, &p.wants)
	protocol.Text(c, &p.old.group)
	c.Uints(&p.old.before, &p.old.leaves)
	p.old.next.fields(c)
	p.lead.fields(c)
	p.turns.fields(c, p.n)
	for i := range protocol.List(c, &p.later) {
		c.ID(&p.later[i].from, p.n)
		protocol.Nested(c, &p.later[i].f, p.w.fields)
	}
	if c.Reading() {
		c.Want(!p.active || p.members.has(p.id) && p.members.minus(upTo(p.n)).empty())
		p.inner = nil
		if _, err := c.Rest(); p.active && err == nil {
			p.inner = p.w.inner.New(p.rank(p.id), p.config(p.members.len()))
		}
	}
	if p.inner != nil {
		p.inner.State(c)
	}
}

func (q *peer) fields(c *protocol.Codec) {
	if c.Reading() {
		*q = peer{}
	}
	protocol.Upto(c, &q.session, ended)
	c.Bool(&q.revoked)
	c.Uint(&q.since)
	if s := protocol.Optional(c, &q.said); s != nil {
		c.Epoch(&q.oldest, math.MaxUint64)
		c.Epoch(&s.epoch, math.MaxUint64)
		s.members.fields(c)
		c.Uint(&s.number)
		c.Words(protocol.List(c, &s.since))
		c.Bools(&s.stray, &s.asked)
	}
	if r := protocol.Optional(c, &q.asks); r != nil {
		c.Epoch(&r.Epoch, math.MaxUint64)
		protocol.Pointer(c, &r.Note).fields(c)
	}
}

func (l *lead) fields(c *protocol.Codec) {
	if c.Reading() {
		*l = lead{}
	}
	if c.Epoch(&l.epoch, math.MaxUint64); l.epoch == (protocol.Epoch{}) {
		return
	}
	for _, s := range [...]*set{&l.members, &l.joins, &l.done, &l.inside, &l.request} {
		s.fields(c)
	}
	c.Bool(&l.asked)
	c.Words(protocol.List(c, &l.based))
	if c.Reading() {
		l.wants = make([]protocol.Groups, len(l.based))
		c.Want(l.request.minus(upTo(len(l.wants))).empty())
	}
	for j := range l.wants {
		if l.request.has(protocol.ID(j)) {
			protocol.Text(c, &l.wants[j])
		}
	}
}

func (t *turns) fields(c *protocol.Codec, n int) {
	if c.Reading() {
		*t = turns{}
	}
	t.await.fields(c)
	protocol.Text(c, &t.group)
	if t.late.fields(c); t.late.empty() {
		return
	}
	if c.Reading() {
		t.wants = make([]protocol.Groups, n)
		c.Want(t.late.minus(upTo(n)).empty())
	}
	for j := range t.wants {
		if t.late.has(protocol.ID(j)) {
			protocol.Text(c, &t.wants[j])
		}
	}
}

// Show tells a person in which instance a process is.
func (p *Process[M]) Show() string {
	if !p.active {
		return "in no instance, the last one was " + p.epoch.Text()
	}
	text := fmt.Sprintf("instance %s of %v", p.epoch.Text(), p.members)
	if !p.running {
		text += ", suspended"
	}
	if inner, ok := protocol.As[protocol.Shower](p.inner); ok {
		text += "; " + strings.ReplaceAll(inner.Show(), "#", "@")
	}
	return text
}
