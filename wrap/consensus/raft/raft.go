package raft

import (
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/consensus"
)

// With runs an algorithm that has Info.Consensus over raft. It panics where the algorithm has no
// use for consensus.
func With[M any](alg protocol.Algorithm[M]) protocol.Algorithm[Frame[M]] {
	return with(alg, func(any) {})
}

// with tells note what the library panics with.
func with[M any](alg protocol.Algorithm[M], note func(any)) protocol.Algorithm[Frame[M]] {
	return consensus.Over(alg, func(alg *protocol.Algorithm[M]) consensus.Core[M, Message[M]] { return core(alg, note) })
}

// A Frame is a consensus.Envelope of raft.
type Frame[M any] = consensus.Envelope[M, Message[M]]

// The kinds of Message: those of the library, and Turn.
const (
	Vote uint8 = iota
	VoteResp
	Append
	AppendResp
	Heartbeat
	HeartbeatResp
	Turn // the receiver is to stand for election, because its log is longer than the sender's
	Old  // Term is the sender's, and that of what it was sent is older
)

var kinds = []protocol.Message{
	Vote: {Name: "VOTE"}, VoteResp: {Name: "VOTERESP"}, Append: {Name: "APPEND"}, AppendResp: {Name: "APPENDRESP"},
	Heartbeat: {Name: "HEARTBEAT"}, HeartbeatResp: {Name: "HEARTBEATRESP"}, Turn: {Name: "TURN"},
	Old: {Name: "OLD"},
}

// A Message is what the library sends, without what its sender and receiver say already.
type Message[M any] struct {
	Kind    uint8
	Term    uint64 // not of Turn
	LogTerm uint64 // of the entry at Index
	// Index is that of the sender's last entry, of Vote and VoteResp; of Append that of the entry
	// before the first one of Entries; of AppendResp the last one that the logs share, or the refused one.
	Index   uint64
	Commit  uint64     // of Append, Heartbeat
	Reject  bool       // of VoteResp, AppendResp
	Hint    uint64     // of AppendResp that rejects
	Entries []Entry[M] // of Append; of Turn the proposal
}

// An Entry is one of the log. The first one of each leader holds no value.
type Entry[M any] struct {
	Term  uint64
	Held  bool
	Value M
}

// asks reports whether a message wants an answer.
func (m Message[M]) asks() bool { return m.Kind == Vote || m.Kind == Append || m.Kind == Heartbeat }

// most is the largest term and index that is read: a larger one is hostile, and could overflow.
const most = 1 << 62

// core is raft.
func core[M any](alg *protocol.Algorithm[M], note func(any)) consensus.Core[M, Message[M]] {
	return consensus.Core[M, Message[M]]{
		Messages: kinds,
		New: func(id protocol.ID, n int) consensus.Instance[M, Message[M]] {
			return newGroup(alg, id, n, note)
		},
		Fields: func(m Message[M], c *protocol.Codec) Message[M] { return m.fields(alg, c) },
		KindOf: func(m Message[M]) int { return int(m.Kind) },
		Fits: func(m Message[M], n int) bool {
			return !slices.ContainsFunc(m.Entries, func(e Entry[M]) bool { return e.Held && !alg.Fits(e.Value, n, true) })
		},
		Asks: func(m Message[M]) bool { return m.asks() || m.Kind == Turn },
		Ints: func(m Message[M]) int {
			k := 5
			for _, e := range m.Entries {
				k++
				if e.Held {
					k += alg.Ints(e.Value)
				}
			}
			return k
		},
		Text: func(m Message[M]) string { return m.text(alg) },
	}
}

func (m Message[M]) fields(alg *protocol.Algorithm[M], c *protocol.Codec) Message[M] {
	protocol.Upto(c, &m.Kind, Old)
	for _, v := range [...]*uint64{&m.Term, &m.LogTerm, &m.Index} {
		protocol.Upto(c, v, most)
	}
	switch m.Kind {
	case VoteResp:
		c.Bool(&m.Reject)
	case AppendResp:
		if c.Bool(&m.Reject); m.Reject {
			protocol.Upto(c, &m.Hint, most)
		}
	case Append, Heartbeat:
		protocol.Upto(c, &m.Commit, most)
	}
	if m.Kind == Append || m.Kind == Turn {
		visitEntries(alg, c, &m.Entries)
	}
	c.Want(m.sound())
	return m
}

func visitEntries[M any](alg *protocol.Algorithm[M], c *protocol.Codec, list *[]Entry[M]) {
	for i := range protocol.List(c, list) {
		e := &(*list)[i]
		protocol.Upto(c, &e.Term, most)
		if c.Bool(&e.Held); e.Held {
			protocol.Nested(c, &e.Value, alg.Visit)
		}
	}
}

// sound reports whether somebody could have sent a message, as far as it says so itself: it has a
// term, and the terms of its entries do not decrease.
func (m Message[M]) sound() bool {
	if m.Kind == Turn {
		return m.Term == 0 && m.LogTerm == 0 && m.Index == 0 && len(m.Entries) == 1 && m.Entries[0].Held && m.Entries[0].Term == 0
	}
	last := m.LogTerm
	for _, e := range m.Entries {
		if e.Term < max(last, 1) {
			return false
		}
		last = e.Term
	}
	return m.Term > 0 && last <= m.Term
}

func (m Message[M]) text(alg *protocol.Algorithm[M]) string {
	if m.Kind == Turn {
		return alg.Text(m.Entries[0].Value)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "term %d,%d:%d", m.Term, m.Index, m.LogTerm)
	if m.Kind == Append || m.Kind == Heartbeat {
		fmt.Fprintf(&b, ",commit %d", m.Commit)
	}
	if m.Reject {
		fmt.Fprintf(&b, ",no %d", m.Hint)
	}
	for _, e := range m.Entries {
		fmt.Fprintf(&b, ",%d", e.Term)
		if e.Held {
			b.WriteString("=" + alg.Text(e.Value))
		}
	}
	return b.String()
}
