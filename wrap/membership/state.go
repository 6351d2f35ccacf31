package membership

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// AppendState implements protocol.Process.
func (p *Process[M]) AppendState(b []byte) []byte {
	for j := range p.peers {
		b = p.peers[j].append(b)
	}
	b = binary.AppendUvarint(p.counted.append(binary.AppendUvarint(b, p.number)), p.seen)
	b = p.linked.append(p.members.append(p.epoch.Append(b)))
	for _, v := range []uint64{p.news, uint64(p.told.to), p.told.number} {
		b = binary.AppendUvarint(b, v)
	}
	b = append(b, byte(p.section))
	for _, v := range []bool{p.active, p.stray, p.offered, p.running, p.frozen, p.once, p.asked, p.byOld, p.old.pending, p.old.started} {
		b = protocol.AppendBool(b, v)
	}
	b = protocol.AppendText(protocol.AppendText(b, p.wants), p.old.group)
	b = binary.AppendUvarint(binary.AppendUvarint(b, p.old.before), p.old.leaves)
	b = p.old.next.append(b)
	b = p.lead.append(b)
	b = p.appendLater(b)
	if p.active {
		b = protocol.AppendState(b, p.inner)
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Process[M]) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	for j := range p.peers {
		p.peers[j].read(&r)
	}
	p.number, p.counted, p.seen = r.Uint(), readSet(&r), r.Uint()
	p.epoch, p.members, p.linked, p.news = r.Epoch(math.MaxUint64), readSet(&r), readSet(&r), r.Uint()
	p.told = told{protocol.ID(r.Uint()), r.Uint()}
	p.section = protocol.Section(r.Max(uint64(protocol.InExit)))
	for _, v := range []*bool{&p.active, &p.stray, &p.offered, &p.running, &p.frozen, &p.once, &p.asked, &p.byOld, &p.old.pending, &p.old.started} {
		*v = r.Bool()
	}
	p.wants, p.old.group = r.Text(), r.Text()
	p.old.before, p.old.leaves, p.old.next = r.Uint(), r.Uint(), readSet(&r)
	p.lead.read(&r)
	if err := p.readLater(&r); err != nil {
		return nil, err
	}
	p.inner = nil
	if !p.active || r.Err != nil {
		return r.Rest, r.Err
	}
	if !p.members.has(p.id) || p.members.below(protocol.ID(p.n)) < p.members.len() {
		return nil, protocol.ErrShort
	}
	p.inner = p.w.inner.New(p.rank(p.id), p.config(p.members.len()))
	return protocol.LoadState(r.Rest, p.inner)
}

// State implements protocol.Process.
func (p *Process[M]) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }

func (q *peer) append(b []byte) []byte {
	b = binary.AppendUvarint(protocol.AppendBool(append(b, byte(q.session)), q.revoked), q.since)
	if b = protocol.AppendBool(b, q.said != nil); q.said != nil {
		b = q.said.members.append(q.said.epoch.Append(q.oldest.Append(b)))
		b = appendWords(binary.AppendUvarint(b, q.said.number), q.said.since)
		b = protocol.AppendBool(protocol.AppendBool(b, q.said.stray), q.said.asked)
	}
	if b = protocol.AppendBool(b, q.asks != nil); q.asks != nil {
		b = q.asks.Note.append(q.asks.Epoch.Append(b))
	}
	return b
}

func (q *peer) read(r *protocol.Reader) {
	*q = peer{session: session(r.Max(uint64(ended))), revoked: r.Bool(), since: r.Uint()}
	if r.Bool() {
		q.oldest = r.Epoch(math.MaxUint64)
		q.said = &status{epoch: r.Epoch(math.MaxUint64), members: readSet(r), number: r.Uint(), since: readWords(r)}
		q.said.stray, q.said.asked = r.Bool(), r.Bool()
	}
	if r.Bool() {
		q.asks = &Frame[struct{}]{Kind: Restart, Epoch: r.Epoch(math.MaxUint64)}
		q.asks.Note = readNote(r)
	}
}

func (l *lead) append(b []byte) []byte {
	b = l.epoch.Append(b)
	if l.epoch == (protocol.Epoch{}) {
		return b
	}
	for _, v := range []set{l.members, l.joins, l.done, l.request, l.await} {
		b = v.append(b)
	}
	b = protocol.AppendBool(protocol.AppendBool(b, l.asked), l.serving)
	b = appendWords(b, l.based)
	for j := range l.request.all {
		b = protocol.AppendText(b, string(l.wants[j]))
	}
	return b
}

func (l *lead) read(r *protocol.Reader) {
	*l = lead{epoch: r.Epoch(math.MaxUint64)}
	if l.epoch == (protocol.Epoch{}) {
		return
	}
	for _, v := range []*set{&l.members, &l.joins, &l.done, &l.request, &l.await} {
		*v = readSet(r)
	}
	l.asked, l.serving = r.Bool(), r.Bool()
	l.based = readWords(r)
	l.wants = make([]protocol.Groups, len(l.based))
	if r.Err == nil && l.request.below(protocol.ID(len(l.wants))) < l.request.len() {
		r.Err = protocol.ErrShort // no such processes
	}
	if r.Err != nil {
		return
	}
	for j := range l.request.all {
		l.wants[j] = protocol.Groups(r.Text())
	}
}

// appendLater appends the frames that wait for their time.
func (p *Process[M]) appendLater(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(p.later)))
	for _, e := range p.later {
		b = p.w.append(binary.AppendUvarint(b, uint64(e.from)), e.f)
	}
	return b
}

func (p *Process[M]) readLater(r *protocol.Reader) error {
	p.later = nil
	for range r.Len() {
		from := protocol.ID(r.Max(uint64(p.n - 1)))
		f, rest, err := p.w.read(r.Rest)
		if err != nil {
			return err
		}
		r.Rest = rest
		p.later = append(p.later, early[M]{from, f})
	}
	return nil
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
