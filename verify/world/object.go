package world

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/poundlock/poundlock/protocol"
)

// # Replicated objects and consensus
//
// What becomes of a replicated object is judged by history.Weak. A copy of it is here the number
// of operations that it has executed.
//
// Any proposal of a consensus instance may be its decision. Those who take part hear of the
// decisions one by one, in the order of instances. Nobody knows of a decision before somebody
// hears of it: so one is made where somebody is to hear of it.

// Execute counts what the copy of a process executes.
func (e *End) Execute(a protocol.Act) {
	switch a.Do {
	case protocol.Invoke:
		e.Copied++
	case protocol.Install:
		k, _ := strconv.ParseUint(a.Data, 10, 32) // if it is no number the judge says so
		e.Copied = uint32(k)
	}
}

// Captured is the answer to Capture.
func (e *End) Captured() protocol.Input {
	return protocol.NewCaptured(strconv.Itoa(int(e.Copied)))
}

// Consensus is what is known of all instances.
type Consensus struct {
	Next      []uint64 // by member: 1 + the instance that it hears of next, 0: it takes no part
	Proposals []Ballot // that may be decided, in order
	Decisions []Ballot // in order
}

// A Ballot is a message in an instance. Drivers number messages.
type Ballot struct {
	Instance uint64
	Msg      uint32
	New      bool // a decision of which nobody has heard
}

func (b Ballot) compare(o Ballot) int {
	return cmp.Or(cmp.Compare(b.Instance, o.Instance), cmp.Compare(b.Msg, o.Msg))
}

// NewConsensus is that of n members which take part from instance 0 on.
func NewConsensus(n int) *Consensus { return &Consensus{Next: slices.Repeat([]uint64{1}, n)} }

// Clone returns a copy.
func (c *Consensus) Clone() *Consensus {
	return &Consensus{slices.Clone(c.Next), slices.Clone(c.Proposals), slices.Clone(c.Decisions)}
}

// Decided returns the decision of an instance.
func (c *Consensus) Decided(instance uint64) (msg uint32, decided bool) {
	i, decided := c.decision(instance)
	if !decided {
		return 0, false
	}
	return c.Decisions[i].Msg, true
}

// decision is the place of an instance among the decisions.
func (c *Consensus) decision(instance uint64) (int, bool) {
	return slices.BinarySearchFunc(c.Decisions, instance, func(b Ballot, k uint64) int { return cmp.Compare(b.Instance, k) })
}

// Awaited reports whether somebody hears of an instance next: it may be decided.
func (c *Consensus) Awaited(instance uint64) bool { return slices.Contains(c.Next, instance+1) }

// Hears returns the decision that member i hears of next, if there is one.
func (c *Consensus) Hears(i int) (b Ballot, hears bool) {
	k := c.Next[i]
	if k == 0 {
		return b, false
	}
	b.Instance = k - 1
	b.Msg, hears = c.Decided(b.Instance)
	return b, hears
}

// Hear tells member i the decision that it hears of next, which is there.
func (c *Consensus) Hear(i int) {
	k, _ := c.decision(c.Next[i] - 1)
	c.Decisions[k].New = false
	c.Next[i]++
}

// Propose adds a proposal, unless its instance is decided.
func (c *Consensus) Propose(b Ballot) {
	if _, decided := c.Decided(b.Instance); decided {
		return
	}
	if i, found := slices.BinarySearchFunc(c.Proposals, b, Ballot.compare); !found {
		c.Proposals = slices.Insert(c.Proposals, i, b)
	}
}

// Decide decides a proposal.
func (c *Consensus) Decide(b Ballot) {
	c.Proposals = slices.DeleteFunc(c.Proposals, func(p Ballot) bool { return p.Instance == b.Instance })
	b.New = true
	i, _ := c.decision(b.Instance)
	c.Decisions = slices.Insert(c.Decisions, i, b)
}

// Resume lets member i take part from an instance on.
func (c *Consensus) Resume(i int, instance uint64) { c.Next[i] = instance + 1 }

// Leave lets member i, which crashed, take no part.
func (c *Consensus) Leave(i int) { c.Next[i] = 0 }

// Forget forgets the instances of which all who take part have heard.
func (c *Consensus) Forget() {
	passed := func(b Ballot) bool {
		return !slices.ContainsFunc(c.Next, func(k uint64) bool { return k != 0 && k-1 <= b.Instance })
	}
	c.Decisions = slices.DeleteFunc(c.Decisions, passed)
	c.Proposals = slices.DeleteFunc(c.Proposals, passed)
}

// Append appends the encoding: equal ones have equal bytes.
func (c *Consensus) Append(b []byte) []byte {
	for _, k := range c.Next {
		b = binary.AppendUvarint(b, k)
	}
	for _, list := range [][]Ballot{c.Proposals, c.Decisions} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, v := range list {
			b = binary.AppendUvarint(binary.AppendUvarint(b, v.Instance), uint64(v.Msg))
			b = protocol.AppendBool(b, v.New)
		}
	}
	return b
}
