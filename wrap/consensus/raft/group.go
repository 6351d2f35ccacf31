package raft

import (
	"fmt"
	"math"
	"slices"

	etcd "go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/consensus"
)

// A group is one process's part in the raft group of an instance.
//
// The library has no encoding of what a node is, and no way to make one but to start it from what
// it has stored. So a group keeps what its node was made from, and what it got since: base and
// inputs. A follower is no more than what it has stored and the leader that it knows, so that this
// is its base after each event; inputs are those since the node stood for election.
type group[M any] struct {
	alg  *protocol.Algorithm[M]
	id   protocol.ID
	n    int
	note func(any)

	node   *etcd.RawNode
	store  *etcd.MemoryStorage
	base   stored
	inputs []input[M]

	attempt bool        // it stands for election, or was elected
	ahead   protocol.ID // whose attempt this process waits for; itself: nobody's
	turned  bool        // it has given its turn to that one
	held    bool        // it has a proposal:
	value   M
}

// An input is what a node got.
type input[M any] struct {
	kind uint8
	from protocol.ID // of receive
	msg  Message[M]  // of receive; of propose with the value as an entry
}

// The kinds of input.
const (
	receive uint8 = iota
	campaign
	propose
	tick
)

// maxInputs bounds the inputs of one term. Beyond, the node starts again from what it has stored.
const maxInputs = 4096

func newGroup[M any](alg *protocol.Algorithm[M], id protocol.ID, n int, note func(any)) *group[M] {
	p := &group[M]{alg: alg, id: id, n: n, note: note, ahead: id}
	p.start(stored{})
	return p
}

// start makes a node from what one has stored.
func (p *group[M]) start(from stored) {
	p.base, p.inputs = from, nil
	store, err := from.storage(p.n)
	if err != nil {
		panic("raft: " + err.Error())
	}
	node, err := etcd.NewRawNode(&etcd.Config{
		ID:              uint64(p.id) + 1,
		ElectionTick:    math.MaxInt32, // followers have no ticks
		HeartbeatTick:   1,
		Storage:         store,
		MaxSizePerMsg:   math.MaxUint64,
		MaxInflightMsgs: 256,
		Logger:          silent{},
	})
	if err != nil {
		panic("raft: " + err.Error())
	}
	p.node, p.store = node, store
	p.drain()
	if from.lead != 0 { // to hear of it is all that the rest of a follower's state comes from
		_ = p.node.Step(p.wire(protocol.ID(from.lead-1), Message[M]{Kind: Heartbeat, Term: from.hard.GetTerm()}))
		p.drain()
	}
}

// drain stores what the node wants to be stored, and returns what it wants to be sent, and what is
// committed.
func (p *group[M]) drain() (sends []*raftpb.Message, decision []byte) {
	for p.node.HasReady() {
		ready := p.node.Ready()
		_ = p.store.Append(ready.Entries) // which never fails
		if !etcd.IsEmptyHardState(ready.HardState) {
			_ = p.store.SetHardState(ready.HardState)
		}
		for _, e := range ready.CommittedEntries {
			if decision == nil && valued(e) {
				decision = e.GetData()
			}
		}
		sends = append(sends, ready.Messages...)
		p.node.Advance(ready)
	}
	return sends, decision
}

// take gives the node an input. Where the library panics, because the input is impossible, it is as
// if the node had crashed and started again from what it has stored, without it.
func (p *group[M]) take(in input[M]) (sends []*raftpb.Message, decision []byte) {
	defer func() {
		if v := recover(); v != nil {
			p.note(v)
			p.start(p.stored())
			sends, decision = nil, nil
		}
	}()
	switch in.kind {
	case receive:
		_ = p.node.Step(p.wire(in.from, in.msg)) // it is no error of this process
	case campaign:
		_ = p.node.Campaign() // it has no configuration that could change
	case propose:
		_ = p.node.Propose(p.data(in.msg.Entries[0])) // only the leader does, without a limit
	case tick:
		p.node.Tick()
	}
	return p.drain()
}

// do gives the node an input, and keeps what has become of it.
func (p *group[M]) do(in input[M], t *consensus.Turn[M, Message[M]]) {
	if in.kind == campaign || len(p.inputs) == maxInputs {
		p.base, p.inputs = p.stored(), nil
		if in.kind != campaign {
			p.start(p.base)
		}
	}
	p.inputs = append(p.inputs, in)
	sends, decision := p.take(in)
	if s := p.node.BasicStatus(); s.RaftState == etcd.StateFollower {
		p.base, p.inputs = p.stored(), nil
		p.base.lead = s.Lead
	}
	if decision != nil {
		t.Decide(p.entry(decision).Value) // who is told needs no commit index
		return
	}
	for _, m := range sends {
		t.Send(protocol.ID(m.GetTo()-1), p.unwire(m))
	}
}

func (p *group[M]) role() etcd.StateType { return p.node.BasicStatus().RaftState }

// Lead stands for election, or has the leader propose.
func (p *group[M]) Lead(v M, t *consensus.Turn[M, Message[M]]) {
	p.adopt(v)
	if p.ahead == p.id && !p.attempt {
		p.stand(t)
	}
}

func (p *group[M]) adopt(v M) {
	if !p.held {
		p.held, p.value = true, v
	}
}

// stand stands for election in a new term.
func (p *group[M]) stand(t *consensus.Turn[M, Message[M]]) {
	p.attempt, p.turned, p.ahead = true, false, p.id
	p.do(input[M]{kind: campaign}, t)
	p.lead(t)
}

// lead lets a leader propose, unless a value is in its log, which may be decided already.
func (p *group[M]) lead(t *consensus.Turn[M, Message[M]]) (leads bool) {
	if p.role() != etcd.StateLeader {
		return false
	}
	p.attempt, p.turned, p.ahead = true, false, p.id
	if p.held && !slices.ContainsFunc(p.stored().entries, valued) {
		p.do(input[M]{kind: propose, msg: Message[M]{Entries: []Entry[M]{{Held: true, Value: p.value}}}}, t)
	}
	return true
}

// Receive takes a message of the library, or the turn.
func (p *group[M]) Receive(from protocol.ID, m Message[M], t *consensus.Turn[M, Message[M]]) {
	switch term := p.hard().GetTerm(); {
	case m.Kind == Turn:
		p.adopt(m.Entries[0].Value)
		t.Adopt(p.value)
		if p.role() != etcd.StateLeader {
			p.stand(t)
		}
		return
	case m.Term < term && m.asks():
		// The library says nothing here, and trusts in time-outs.
		t.Send(from, Message[M]{Kind: Old, Term: term})
		return
	case m.Kind == Old && m.Term == term:
		return // of an attempt before this term
	case m.Term < term:
		p.over(from, t)
		return
	}
	p.do(input[M]{kind: receive, from: from, msg: m}, t)
	switch {
	case p.follows(from, m) && t.Trusts(from):
		p.turned, p.ahead = false, from
	case m.Kind == Vote && p.turned && p.ahead == from: // it had its turn, and is not elected by this one
		p.turned, p.ahead = false, p.id
		t.Lose(p.id)
	}
	switch {
	case p.lead(t):
	case !p.attempt:
		if !m.asks() {
			p.over(from, t)
		}
	case m.Kind == VoteResp && m.Reject:
		p.refused(from, m, t)
	case p.role() == etcd.StateFollower:
		p.attempt = false
		if !m.asks() {
			from = p.id // which may wait for what is over
		}
		t.Lose(from)
	}
}

// follows reports whether process from leads, as far as this one knows after its message, or
// may be elected by its vote. That one gets an answer, and says so if its attempt is over.
func (p *group[M]) follows(from protocol.ID, m Message[M]) bool {
	if m.Kind == Vote {
		return p.hard().GetVote() == uint64(from)+1 && p.hard().GetTerm() == m.Term
	}
	return m.asks() && p.node.BasicStatus().Lead == uint64(from)+1
}

// over: process from has answered an attempt that is over, unless there is another one, of this
// process or of who has the turn.
func (p *group[M]) over(from protocol.ID, t *consensus.Turn[M, Message[M]]) {
	if !p.attempt && !p.turned {
		t.Again(from)
	}
}

// refused ends an attempt: process from has voted for somebody else in this term, or has a longer
// log, so that this process may never be elected. Then it is the turn of that one.
func (p *group[M]) refused(from protocol.ID, m Message[M], t *consensus.Turn[M, Message[M]]) {
	p.attempt = false
	if mine := p.last(Message[M]{}); t.Trusts(from) && longer(m, mine) {
		p.turned, p.ahead = true, from
		p.turn(t)
		return
	}
	t.Lose(from)
}

func (p *group[M]) turn(t *consensus.Turn[M, Message[M]]) {
	t.Send(p.ahead, Message[M]{Kind: Turn, Entries: []Entry[M]{{Held: true, Value: p.value}}})
}

// longer reports whether the log whose last entry a tells is the longer one.
func longer[M any](a, b Message[M]) bool {
	return a.LogTerm > b.LogTerm || a.LogTerm == b.LogTerm && a.Index > b.Index
}

// last makes m tell the last entry.
func (p *group[M]) last(m Message[M]) Message[M] {
	m.Index, _ = p.store.LastIndex()
	m.LogTerm, _ = p.store.Term(m.Index)
	return m
}

// GiveUp waits for a process no more. Somebody may wait for this one, which has given its turn to that one, or
// followed it.
func (p *group[M]) GiveUp(j protocol.ID, t *consensus.Turn[M, Message[M]]) {
	if p.ahead == j && j != p.id {
		p.turned, p.ahead = false, p.id
		t.Lose(p.id)
	}
}

// Repeat sends again what process j may not have got. A leader repeats what was lost once its
// heartbeat is answered; a candidate stands in a new term.
func (p *group[M]) Repeat(j protocol.ID, t *consensus.Turn[M, Message[M]]) {
	switch {
	case p.role() == etcd.StateLeader:
		p.do(input[M]{kind: tick}, t)
	case p.attempt:
		p.stand(t)
	case p.turned && p.ahead == j:
		p.turn(t)
	}
}

// State implements consensus.Instance.
func (p *group[M]) State(c *protocol.Codec) {
	c.Bools(&p.attempt, &p.turned)
	c.ID(&p.ahead, p.n)
	if c.Reading() {
		p.value = *new(M)
	}
	if c.Bool(&p.held); p.held {
		protocol.Nested(c, &p.value, p.alg.Visit)
	}
	term, vote, commit := p.base.hard.GetTerm(), p.base.hard.GetVote(), p.base.hard.GetCommit()
	protocol.Upto(c, &term, most)
	protocol.Upto(c, &vote, uint64(p.n))
	protocol.Upto(c, &commit, most)
	protocol.Upto(c, &p.base.lead, uint64(p.n))
	entries := p.unwired(p.base.entries)
	visitEntries(p.alg, c, &entries)
	for i := range protocol.List(c, &p.inputs) {
		in := &p.inputs[i]
		switch protocol.Upto(c, &in.kind, tick); in.kind {
		case receive:
			c.ID(&in.from, p.n)
			in.msg = in.msg.fields(p.alg, c)
		case propose:
			visitEntries(p.alg, c, &in.msg.Entries)
			c.Want(len(in.msg.Entries) == 1 && in.msg.Entries[0].Held)
		}
	}
	if _, err := c.Rest(); c.Reading() && err == nil {
		base := stored{lead: p.base.lead, entries: p.wired(0, entries)}
		if term > 0 {
			base.hard = &raftpb.HardState{Term: &term, Vote: &vote, Commit: &commit}
		}
		c.Want(p.restore(base, p.inputs))
	}
}

// restore makes a node from its base and inputs, and reports whether there can be one.
func (p *group[M]) restore(base stored, inputs []input[M]) (ok bool) {
	defer func() { ok = recover() == nil }()
	p.start(base)
	for _, in := range inputs {
		p.take(in)
	}
	p.base, p.inputs = base, inputs
	return true
}

// Show implements consensus.Instance.
func (p *group[M]) Show() string {
	s := p.node.BasicStatus()
	last, _ := p.store.LastIndex()
	return fmt.Sprintf("term %d, %s, log %d", s.GetTerm(), s.RaftState, last)
}

// The messages of the library that there are here, by kind.
var types = []raftpb.MessageType{
	Vote: raftpb.MsgVote, VoteResp: raftpb.MsgVoteResp, Append: raftpb.MsgApp, AppendResp: raftpb.MsgAppResp,
	Heartbeat: raftpb.MsgHeartbeat, HeartbeatResp: raftpb.MsgHeartbeatResp, Old: raftpb.MsgVoteResp,
}

// wire makes a message one of the library.
func (p *group[M]) wire(from protocol.ID, m Message[M]) *raftpb.Message {
	to, sender := uint64(p.id)+1, uint64(from)+1
	out := &raftpb.Message{
		Type: types[m.Kind].Enum(), To: &to, From: &sender, Term: &m.Term, LogTerm: &m.LogTerm, Index: &m.Index,
		Commit: &m.Commit, Reject: &m.Reject, RejectHint: &m.Hint,
	}
	if m.Kind == Old {
		out.Reject = new(true)
	}
	out.Entries = p.wired(m.Index, m.Entries)
	return out
}

// wired makes entries that follow one with an index those of the library.
func (p *group[M]) wired(after uint64, list []Entry[M]) (out []*raftpb.Entry) {
	for i, e := range list {
		index := after + uint64(i) + 1
		out = append(out, &raftpb.Entry{Term: &e.Term, Index: &index, Data: p.data(e)})
	}
	return out
}

// unwired makes entries of the library those of this package.
func (p *group[M]) unwired(list []*raftpb.Entry) (out []Entry[M]) {
	for _, e := range list {
		entry := p.entry(e.GetData())
		entry.Term = e.GetTerm()
		out = append(out, entry)
	}
	return out
}

// unwire makes a message of the library one of this package.
func (p *group[M]) unwire(m *raftpb.Message) Message[M] {
	kind := slices.Index(types, m.GetType())
	if kind < 0 {
		panic("raft: a message " + m.GetType().String())
	}
	out := Message[M]{
		Kind: uint8(kind), Term: m.GetTerm(), LogTerm: m.GetLogTerm(), Index: m.GetIndex(), Commit: m.GetCommit(),
		Reject: m.GetReject(), Hint: m.GetRejectHint(), Entries: p.unwired(m.GetEntries()),
	}
	if out.Kind == VoteResp {
		out = p.last(out)
	}
	return out
}

// data is what an entry holds, for the library: nothing, or one byte and a value.
func (p *group[M]) data(e Entry[M]) []byte {
	if !e.Held {
		return nil
	}
	return p.alg.Append([]byte{1}, e.Value)
}

// entry is what data was made from.
func (p *group[M]) entry(data []byte) (e Entry[M]) {
	if len(data) > 0 {
		var err error
		e.Held = true
		if e.Value, _, err = p.alg.Read(data[1:]); err != nil {
			panic("raft: an entry that was not written here: " + err.Error())
		}
	}
	return e
}
