package raft

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/consensus"
)

// With runs an algorithm that has Info.Consensus over raft. It panics where the algorithm has no
// use for consensus.
func With[M any](alg protocol.Algorithm[M]) protocol.Algorithm[Frame[M]] {
	return consensus.Over(alg, core[M](func(any) {}))
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

// core is raft, which tells note what the library panics with.
func core[M any](note func(any)) consensus.Core[M, Message[M]] {
	return consensus.Core[M, Message[M]]{
		Messages: kinds,
		New: func(alg protocol.Algorithm[M], id protocol.ID, n int) consensus.Instance[M, Message[M]] {
			return newGroup(alg, id, n, note)
		},
		Append: appendMessage[M],
		Read:   readMessage[M],
		KindOf: func(m Message[M]) int { return int(m.Kind) },
		Fits: func(alg protocol.Algorithm[M], m Message[M], n int) bool {
			return !slices.ContainsFunc(m.Entries, func(e Entry[M]) bool { return e.Held && !alg.Fits(e.Value, n, true) })
		},
		Asks: func(m Message[M]) bool { return m.asks() || m.Kind == Turn },
		Ints: func(alg protocol.Algorithm[M], m Message[M]) int {
			k := 5
			for _, e := range m.Entries {
				k++
				if e.Held {
					k += alg.Ints(e.Value)
				}
			}
			return k
		},
		Text: text[M],
	}
}

func appendMessage[M any](alg protocol.Algorithm[M], b []byte, m Message[M]) []byte {
	b = append(b, m.Kind)
	for _, v := range []uint64{m.Term, m.LogTerm, m.Index} {
		b = binary.AppendUvarint(b, v)
	}
	switch m.Kind {
	case VoteResp:
		b = protocol.AppendBool(b, m.Reject)
	case AppendResp:
		if b = protocol.AppendBool(b, m.Reject); m.Reject {
			b = binary.AppendUvarint(b, m.Hint)
		}
	case Append, Heartbeat:
		b = binary.AppendUvarint(b, m.Commit)
	}
	if m.Kind == Append || m.Kind == Turn {
		b = appendEntries(alg, b, m.Entries)
	}
	return b
}

func appendEntries[M any](alg protocol.Algorithm[M], b []byte, list []Entry[M]) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, e := range list {
		if b = protocol.AppendBool(binary.AppendUvarint(b, e.Term), e.Held); e.Held {
			b = alg.Append(b, e.Value)
		}
	}
	return b
}

func readMessage[M any](alg protocol.Algorithm[M], b []byte) (m Message[M], rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m.Kind = uint8(r.Max(uint64(Old)))
	m.Term, m.LogTerm, m.Index = r.Max(most), r.Max(most), r.Max(most)
	switch m.Kind {
	case VoteResp:
		m.Reject = r.Bool()
	case AppendResp:
		if m.Reject = r.Bool(); m.Reject {
			m.Hint = r.Max(most)
		}
	case Append, Heartbeat:
		m.Commit = r.Max(most)
	}
	if m.Kind == Append || m.Kind == Turn {
		m.Entries = readEntries(alg, &r)
	}
	if r.Err == nil && !m.sound() {
		return m, nil, protocol.ErrShort
	}
	return m, r.Rest, r.Err
}

func readEntries[M any](alg protocol.Algorithm[M], r *protocol.Reader) (list []Entry[M]) {
	for range r.Len() {
		e := Entry[M]{Term: r.Max(most), Held: r.Bool()}
		if e.Held && r.Err == nil {
			e.Value, r.Rest, r.Err = alg.Read(r.Rest)
		}
		if list = append(list, e); r.Err != nil {
			return nil
		}
	}
	return list
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

func text[M any](alg protocol.Algorithm[M], m Message[M]) string {
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
