package protocol

// Decide is the event that consensus instance Arg decided Event.Msg. A process hears of each
// instance once, in their order from 0 on, or from the one that it named in Resume. Only where
// Info.Consensus.
const Decide Kind = 13

// The effects of consensus.
const (
	// Propose proposes Effect.Msg in consensus instance Arg, once. What is decided, for all
	// processes alike, is what some process proposed; it is decided unless half of those that
	// take part crash. A process takes part in instance 0, and in each one after that of a Decide.
	Propose Do = 16 + iota
	// Resume: this process goes on with consensus instance Arg. It takes part in it, though it
	// has not heard of every instance before.
	Resume
)

// NewDecide is the event that an instance decided a message, which stands in Event.Msg.
func NewDecide(instance uint64) Input { return Input{Kind: Decide, Arg: instance} }

// Propose proposes m in a consensus instance.
func (o *Out[M]) Propose(instance uint64, m M) {
	e := o.effect(Propose)
	e.Arg, e.Msg = instance, m
}

// Resume takes part in consensus from an instance on.
func (o *Out[M]) Resume(instance uint64) { o.effect(Resume).Arg = instance }
