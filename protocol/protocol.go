// Package protocol is the contract between an algorithm and its drivers: the
// simulator, the model checker and the network runtime.
//
// A process is a function of its state and one event. It never reads a clock,
// draws a random number, starts a goroutine or touches a socket: drivers own
// time, randomness, channels, failure detectors and users. The same process is
// therefore simulated, model-checked and run on a network by the same code.
//
// What does not depend on the message type (Input, Act) is a plain struct, so
// that histories, monitors and traces need no type parameter.
//
// This file is what all algorithms share. What only some of them need stands in files of its
// own: object.go, consensus.go, registers.go, election.go, leases.go, drain.go and groups.go
// add events and effects; info.go and option.go are what an algorithm says about itself, and
// model.go what it says to the model checker.
package protocol

// An ID names a process for ever. Members (peers, servers) are 0..N-1. A client
// has an id >= N that is drawn once, never reused and equal at every member,
// because ids break ties between requests.
type ID uint64

// A Kind says what happened to a process.
type Kind uint8

// The events that all families of algorithms share. The numbers of the others follow, each
// where it is explained.
const (
	// Start is the first event after New. Arg is the incarnation: a later life of
	// one member has a larger one, and 0 means that nobody knows it.
	Start Kind = iota + 1
	// Try: the user wants to enter. Arg is TryWait or TryOnce, and may have more: see WithHeadStart and WithLater.
	// Data is the Groups that it wants, "" where Info.Grouped is not set.
	Try
	// Cancel: the user gives up while trying. Only where Info.Cancels; answered
	// by Rem. A driver never sends it after Crit.
	Cancel
	// Exit: the user leaves the critical section, after Crit or Ejected.
	Exit
	// Receive: Event.Msg arrived from From.
	Receive
	// Timeout: the timer Timer fired, and is no longer set.
	Timeout
	// Suspect: the detector suspects From. It is a level, not an edge: a driver
	// repeats it after Start and after each message that it still delivers from
	// a suspected process, so a process need not remember whom it suspects.
	// At a client it says that its lease at server From lapsed. Members that have leases
	// at each other get it once for Lapsed and once for Ended, which is then its Arg.
	Suspect
	// Restore: From is trusted. Arg is its incarnation. Repeated after Start and
	// whenever the incarnation changes.
	Restore
)

// Values of Input.Arg in a Try.
const (
	TryWait = 0 // wait for the critical section
	TryOnce = 1 // give up with Rem as soon as somebody else seems to be first
)

// MaxHeadStart is the largest head start, ns: a minute.
const MaxHeadStart = 60e9

// WithHeadStart is the Arg of a Try whose request counts as made so many ns earlier, where Info.Early.
func WithHeadStart(arg, ns uint64) uint64 { return arg | ns<<1 }

// HeadStart is what the Arg of a Try says: TryOnce or not, and the head start, ns.
func HeadStart(arg uint64) (once bool, ns uint64) {
	return arg&1 == TryOnce, arg << MostLater >> (MostLater + 1)
}

// MostLater is how many members a Try can name that are asked later: its Arg has a bit for each, above the head start.
const MostLater = 27

// WithLater is the Arg of a Try which asks some members only if the others do not do, where Info.Thrifty: member j if bit j is set.
func WithLater(arg, members uint64) uint64 { return arg | members<<(64-MostLater) }

// Later is which members the Arg of a Try says are asked later.
func Later(arg uint64) (members uint64) { return arg >> (64 - MostLater) }

// Input is all of an event but the message.
type Input struct {
	Kind  Kind
	Timer uint32 // Timeout
	From  ID     // Receive, Suspect, Restore
	Arg   uint64 // see the kinds
	// Now is the process's own clock in nanoseconds since 1970, right or wrong: somebody may
	// set it, forward or back, in the life of a process. It is 0 in the checker, where a
	// hybrid logical clock thereby becomes a Lamport clock.
	Now  int64
	Data string // see the kinds: opaque, immutable
}

// NewStart is the first event of a life.
func NewStart(incarnation uint64) Input { return Input{Kind: Start, Arg: incarnation} }

// NewTry is the event that the user wants to enter, in one of these groups, and waits.
func NewTry(groups Groups) Input { return Input{Kind: Try, Data: string(groups)} }

// NewReceive is the event that a message, which stands in Event.Msg, arrived.
func NewReceive(from ID) Input { return Input{Kind: Receive, From: from} }

// An Event is what a process reacts to.
type Event[M any] struct {
	Input
	Msg M // Receive
}

// A Do is what a process asks of its driver.
type Do uint8

// The effects that all families of algorithms share. The numbers of the others follow.
const (
	// Send carries Effect.Msg to To. A process never sends to itself. Arg 1 says that
	// it sent the same before: such a message is counted apart. After says that the driver may keep it for
	// so many nanoseconds, for others to go with it; a driver need not.
	Send Do = iota + 1
	// Broadcast carries Effect.Msg to every member except the sender.
	Broadcast
	// Crit: the user is in the critical section. Arg is the fencing token, 0
	// where the algorithm has none. Data is the Group that was granted, one of those
	// that the user wanted.
	Crit
	// Rem: the user is out, after Exit, Cancel or a Try that gave up. Arg is the Reason of the
	// process that gave up, 0 in the regular cases.
	Rem
	// Ejected: the critical section was lost. The user must stop and then Exit;
	// from this effect on it no longer counts as inside.
	Ejected
	// SetTimer sets Timer to fire between After and After+Arg nanoseconds from
	// now: the driver draws. After is positive, so that no process keeps its driver busy by
	// itself. It replaces an earlier setting.
	SetTimer
	// StopTimer clears Timer.
	StopTimer
)

// Act is all of an effect but the message.
type Act struct {
	Do    Do
	Timer uint32
	To    ID
	Arg   uint64
	After int64
	Data  string
}

// An Effect is one request of a process to its driver.
type Effect[M any] struct {
	Act
	Msg M
}

// Out collects the effects of one step, in order. A driver resets and reuses
// it, so that a step in steady state allocates nothing.
type Out[M any] struct {
	Effects []Effect[M]
	words   []uint64
	block   int // the size of the last one that words are of
}

// Reset forgets the effects. Messages already sent stay valid.
func (o *Out[M]) Reset() { o.Effects = o.Effects[:0] }

// Send sends m to the process to.
func (o *Out[M]) Send(to ID, m M) {
	e := o.effect(Send)
	e.To, e.Msg = to, m
}

// SendWithin sends m to the process to, if not at once then after so many ns at most.
func (o *Out[M]) SendWithin(after int64, to ID, m M) {
	e := o.effect(Send)
	e.To, e.Msg, e.After = to, m, after
}

// Resend sends m to the process to once more.
func (o *Out[M]) Resend(to ID, m M) {
	o.Effects = append(o.Effects, Effect[M]{Act{Do: Send, To: to, Arg: 1}, m})
}

// Broadcast sends m to every member except this process.
func (o *Out[M]) Broadcast(m M) {
	o.effect(Broadcast).Msg = m
}

// Crit lets the user in, with a fencing token (0: none).
func (o *Out[M]) Crit(token uint64) { o.effect(Crit).Arg = token }

// Rem tells the user that it is out.
func (o *Out[M]) Rem() { o.effect(Rem) }

// GiveUp is Rem with the reason why the process gave up.
func (o *Out[M]) GiveUp(why Reason) { o.effect(Rem).Arg = uint64(why) }

// Ejected tells the user that its critical section is lost.
func (o *Out[M]) Ejected() { o.effect(Ejected) }

// SetTimer sets timer t to fire between after and after+jitter ns from now.
func (o *Out[M]) SetTimer(t uint32, after, jitter int64) {
	e := o.effect(SetTimer)
	e.Timer, e.After, e.Arg = t, after, uint64(jitter)
}

// StopTimer clears timer t.
func (o *Out[M]) StopTimer(t uint32) { o.effect(StopTimer).Timer = t }

// effect appends one, which the caller completes in its place: an effect that is
// put together elsewhere and copied costs several times as much.
func (o *Out[M]) effect(do Do) *Effect[M] {
	o.Effects = append(o.Effects, Effect[M]{})
	e := &o.Effects[len(o.Effects)-1]
	e.Do = do
	return e
}

// Words returns a zeroed vector of n words for a message. It is carved from a
// block that is never reused, so that many vectors cost one allocation and each
// is frozen once its message is sent. Blocks grow, for a process may keep an Out of its own.
func (o *Out[M]) Words(n int) []uint64 {
	const least, most = 16, 4096
	if len(o.words) < n {
		o.block = min(max(2*o.block, least), most)
		o.words = make([]uint64, max(n, o.block))
	}
	w := o.words[:n:n]
	o.words = o.words[n:]
	return w
}

// A Process is one participant. It depends on its state and the event only, and
// owns the memory of its state: what a sent message points to is frozen for
// ever, so the sender copies out and the receiver copies in.
//
// An event that the stated model makes impossible panics with the name of the
// algorithm; a driver turns that into a verdict or a lock that fails closed.
type Process[M any] interface {
	// Step reacts to ev and appends its effects to out.
	Step(ev Event[M], out *Out[M])
	// State visits the fields of the state: everything that a later effect can depend on and
	// nothing else. Equal states have equal bytes: dead fields are zero, sets are sorted. To
	// load a state reuses the memory of the old one and never panics. See AppendState and
	// LoadState.
	State(c *Codec)
}

// An Algorithm is what a package under algo exports.
type Algorithm[M any] struct {
	Info
	// New makes process id in its initial state: a member if id < c.N, and a
	// client otherwise. The roles may differ in type.
	New func(id ID, c Config) Process[M]
	// Fields visits the fields of a message, and returns it with what was read or moved: its
	// one encoding, for the wire, for fingerprints and for traces. It copies what it keeps and
	// never panics.
	Fields func(m M, c *Codec) M
	// KindOf is the index of m in Info.Messages, Ints the number of integers
	// that m carries, and Text its form in traces: one line, equal for equal
	// messages and different for different ones. It writes a process as #ID, in
	// place of which drivers put its name.
	KindOf func(m M) int
	Ints   func(m M) int
	Text   func(m M) string

	// The rest is optional.

	// Fits reports whether a process of a system of n members can have sent m, as far as its ids
	// and the lengths of its lists say; or have proposed it as a value of consensus. A driver that
	// hears from others refuses the rest: Step may panic there. nil: all messages fit.
	Fits func(m M, n int, proposed bool) bool
	// Snapshot is the copy of the object that m brings, as Install takes it; ok says that it brings one. A driver
	// on which copies may be malformed refuses m where it cannot be installed, before Step: after it there is no
	// way back. nil: no message brings one.
	Snapshot func(m M) (object string, ok bool)

	// Model is for the model checker alone.
	Model[M]
	// Unsettled is how many losses of members users have not made up for yet: members
	// whose new life somebody who tries or is inside has not heard of, and supports
	// that somebody who is inside has still to rebuild. Drivers that space losses
	// keep it below a bound. Where Tolerates has Recovery it is how many members came back
	// and take no part yet: see Spare. procs are by id, nil where crashed or never up.
	Unsettled func(procs []Stateful) int
}

// Append appends the encoding of a message.
func (a *Algorithm[M]) Append(b []byte, m M) []byte {
	c := new(Codec).Appending(b)
	a.Fields(m, c)
	return c.b
}

// Read reads a message, and returns what follows it.
func (a *Algorithm[M]) Read(b []byte) (m M, rest []byte, err error) {
	c := new(Codec).Loading(b)
	m = a.Visit(m, c)
	return m, c.from.Rest, c.from.Err
}

// Visit visits the fields of a message, which is of one of the kinds in Info.Messages.
func (a *Algorithm[M]) Visit(m M, c *Codec) M {
	m = a.Fields(m, c)
	if c.does == reads && c.from.Err == nil && len(a.Messages) > 0 && a.KindOf(m) >= len(a.Messages) {
		c.from.fail()
	}
	return m
}

// Spare reports whether enough members are up without member i. One that came back counts as
// crashed as long as it is Unsettled. procs are the members by id, nil where crashed.
func (a *Algorithm[M]) Spare(procs []Stateful, i ID) bool {
	p := procs[i]
	procs[i] = nil
	up := 0
	for _, p := range procs {
		if p != nil {
			up++
		}
	}
	if a.Unsettled != nil {
		up -= a.Unsettled(procs)
	}
	procs[i] = p
	return a.Enough(up, len(procs))
}
