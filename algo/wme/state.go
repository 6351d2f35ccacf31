package wme

import (
	"encoding/binary"
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	for _, v := range []uint64{
		p.epoch, uint64(p.owner), p.number, p.top, p.committed, p.executed, p.stable, uint64(p.phase), p.request, p.operation, p.life, p.missed,
	} {
		b = binary.AppendUvarint(b, v)
	}
	for _, list := range [][]uint64{p.granted, p.lives, p.last, p.done, p.wishes} {
		for _, v := range list {
			b = binary.AppendUvarint(b, v)
		}
	}
	b = protocol.AppendText(b, p.op)
	for _, v := range []bool{p.late, p.blocked, p.proposed, p.joined} {
		b = protocol.AppendBool(b, v)
	}
	b = appendClaims(b, p.requests)
	b = appendRecords(b, p.log)
	for _, s := range []bitset{p.logged, p.asked, p.fetchers, p.suspected} {
		b = s.append(b)
	}
	for _, v := range p.votes {
		b = appendMessage(b, v)
	}
	b = binary.AppendUvarint(b, uint64(len(p.early)))
	for _, e := range p.early {
		b = appendMessage(binary.AppendUvarint(b, uint64(e.from)), e.msg)
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.epoch, p.owner = r.Uint(), protocol.ID(r.Max(uint64(p.n-1)))
	p.number, p.top, p.committed, p.executed, p.stable = r.Uint(), r.Uint(), r.Uint(), r.Uint(), r.Uint()
	p.phase, p.request, p.operation, p.life = phase(r.Max(uint64(lost))), r.Uint(), r.Uint(), r.Uint()
	p.missed = r.Uint()
	for _, list := range [][]uint64{p.granted, p.lives, p.last, p.done, p.wishes} {
		for i := range list {
			list[i] = r.Uint()
		}
	}
	p.op = r.Text()
	p.late, p.blocked, p.proposed, p.joined = r.Bool(), r.Bool(), r.Bool(), r.Bool()
	p.requests = readClaims(&r, p.requests[:0])
	p.log = readRecords(&r, p.log[:0])
	for _, s := range []bitset{p.logged, p.asked, p.fetchers, p.suspected} {
		s.load(&r, p.n)
	}
	for i := range p.votes {
		p.votes[i] = loadMessage(&r)
	}
	p.early = p.early[:0]
	for range r.Len() {
		p.early = append(p.early, early{protocol.ID(r.Max(uint64(p.n - 1))), loadMessage(&r)})
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }

func loadMessage(r *protocol.Reader) Message {
	if r.Err != nil {
		return Message{}
	}
	m, rest, err := readMessage(r.Rest)
	r.Rest, r.Err = rest, err
	return m
}

// show is where the process is in the epochs and records, and what it waits for.
func show(q protocol.Process[Message]) string {
	p := q.(*Process)
	text := fmt.Sprintf("epoch %d, token #%d, record %d, executed %d", p.epoch, p.owner, p.number, p.executed)
	switch {
	case !p.joined:
		text = "joins"
	case p.blocked:
		text += ", ends the epoch"
	}
	if len(p.requests) > 0 {
		text += ", waiting " + textOf(p.requests)
	}
	if p.phase == issuing {
		text += ", issues " + p.op
	}
	return text
}
