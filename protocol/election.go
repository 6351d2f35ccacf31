package protocol

import "fmt"

// Lead is the event that tells a process who leads, where another algorithm elects: the elector of
// this process says that From leads the epoch with number Arg. These numbers never decrease at one
// process, and an epoch has one leader. Only where Info.Elector.
const Lead Kind = 11

// Leader is the effect of an election: as far as this process knows, To leads the epoch with
// number Arg.
const Leader Do = 12

// NewLead is the event that id leads an epoch.
func NewLead(id ID, epoch uint64) Input { return Input{Kind: Lead, From: id, Arg: epoch} }

// Leader tells that id leads an epoch.
func (o *Out[M]) Leader(id ID, epoch uint64) {
	e := o.effect(Leader)
	e.To, e.Arg = id, epoch
}

// An Epoch is one reign. Epochs are ordered by round, and within a round by leader, so that
// no two leaders share one. The zero Epoch is older than all others, and nobody's.
type Epoch struct {
	Round  uint64 // from 1
	Leader ID
}

// Before reports whether e is older than o.
func (e Epoch) Before(o Epoch) bool {
	return e.Round < o.Round || e.Round == o.Round && e.Leader < o.Leader
}

// Number is the epoch as one number, in the same order, among n members.
func (e Epoch) Number(n int) uint64 { return e.Round*uint64(n) + uint64(e.Leader) }

// Text is the epoch in a trace.
func (e Epoch) Text() string {
	if e == (Epoch{}) {
		return "none"
	}
	return fmt.Sprintf("%d,#%d", e.Round, e.Leader)
}
