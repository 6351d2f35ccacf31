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
package protocol

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An ID names a process for ever. Members (peers, servers) are 0..N-1. A client
// has an id >= N that is drawn once, never reused and equal at every member,
// because ids break ties between requests.
type ID uint64

// A Kind says what happened to a process.
type Kind uint8

// The events of a process.
const (
	// Start is the first event after New. Arg is the incarnation: a later life of
	// one member has a larger one, and 0 means that nobody knows it.
	Start Kind = iota + 1
	// Try: the user wants to enter. Arg is TryWait or TryOnce, Data the Groups that it
	// wants, "" where Info.Grouped is not set.
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
	// At a client it says that its lease at server From lapsed. Among members with leases
	// Arg is Lapsed or Ended, and it is an edge.
	Suspect
	// Restore: From is trusted. Arg is its incarnation. Repeated after Start and
	// whenever the incarnation changes.
	Restore
	// Drain: a member is about to stop for good. From now on it gives nothing to
	// anybody, and keeps its word to those whom it gave something. A driver repeats
	// it after Start. Only where Info.Drains.
	Drain
	// Value: the access to register From that the process had open is done. Arg is what
	// it read, 0 after a Write.
	Value
	// Lead: the elector of this process says that From leads epoch Arg. Epochs of one
	// process never decrease, and an epoch has one leader. Only where Info.Elector.
	Lead
	// Issue: the user, inside and with no operation open, asks for operation Data on the
	// replicated object. Answered by Outcome, or by Ejected: then it was never executed, and
	// never will be. Only where Info.Weak.
	Issue
	// Decide: consensus instance Arg decided Event.Msg. A process hears of each instance
	// once, in their order from 0 on, or from the one that it named in Resume. Only where
	// Info.Consensus.
	Decide
	// Captured answers Capture before any other event of the process: Data is its copy of the
	// object, as Install takes it.
	Captured
)

// Values of Input.Arg in a Try.
const (
	TryWait = 0 // wait for the critical section
	TryOnce = 1 // give up with Rem as soon as somebody else seems to be first
)

// Values of Input.Arg in a Suspect among members with leases: see LeaseDetector.
const (
	Lapsed = 0 // the lease of this member at From may have lapsed
	Ended  = 1 // the lease of From here has lapsed too, and From knows or has crashed
)

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

// An Event is what a process reacts to.
type Event[M any] struct {
	Input
	Msg M // Receive
}

// A Do is what a process asks of its driver.
type Do uint8

// The effects of a process.
const (
	// Send carries Effect.Msg to To. A process never sends to itself. Arg 1 says that
	// it sent the same before: such a message is counted apart.
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
	// Owner tells whom a member supports from now on: To, whose request has the
	// time Arg; To 0 and Arg 0: nobody. It is for those who watch, and changes nothing.
	Owner
	// Read, Write and Await access register To of the shared memory, whose number is its
	// place in Info.Registers. Value follows, once: until then the process has no other
	// access to this register. Write makes it Arg. Await reads again and again until
	// it finds 0 or at least Arg.
	Read
	Write
	Await
	// Leader: as far as this process knows, To leads epoch Arg. Only an election does it.
	Leader
	// Revoke ends the lease that member To holds here, as if nothing were heard of it:
	// see LeaseDetector.
	Revoke
	// Invoke executes operation Data on this process's copy of the object. Arg is its number:
	// those of one copy grow.
	Invoke
	// Outcome: the user's operation succeeded. Its result is the one of the last operation of
	// this process that its copy has executed, or had when it was installed.
	Outcome
	// Propose proposes Effect.Msg in consensus instance Arg, once. What is decided, for all
	// processes alike, is what somebody proposed; it is decided unless half of those that take
	// part crash. A process takes part in instance 0, and in each one after that of a Decide.
	Propose
	// Resume: this process goes on with consensus instance Arg: it takes part in it, though it
	// has not heard of every instance before.
	Resume
	// Capture asks for the process's copy of the object: see Captured.
	Capture
	// Install makes Data this process's copy of the object. It is what Algorithm.Snapshot finds in the message
	// that this step receives.
	Install
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
}

// Reset forgets the effects. Messages already sent stay valid.
func (o *Out[M]) Reset() { o.Effects = o.Effects[:0] }

// Send sends m to the process to.
func (o *Out[M]) Send(to ID, m M) {
	e := o.effect(Send)
	e.To, e.Msg = to, m
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

// CritIn lets the user in, into group g, with a fencing token (0: none).
func (o *Out[M]) CritIn(g Group, token uint64) {
	e := o.effect(Crit)
	e.Arg, e.Data = token, string(g)
}

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

// Owner tells that this member supports the request that user c made at time; 0
// and 0: nobody.
func (o *Out[M]) Owner(c ID, time uint64) {
	e := o.effect(Owner)
	e.To, e.Arg = c, time
}

// Read reads register r.
func (o *Out[M]) Read(r int) { o.effect(Read).To = ID(r) }

// Write makes register r v.
func (o *Out[M]) Write(r int, v uint64) {
	e := o.effect(Write)
	e.To, e.Arg = ID(r), v
}

// Await waits until register r is 0 or at least v.
func (o *Out[M]) Await(r int, v uint64) {
	e := o.effect(Await)
	e.To, e.Arg = ID(r), v
}

// Leader tells that id leads epoch.
func (o *Out[M]) Leader(id ID, epoch uint64) {
	e := o.effect(Leader)
	e.To, e.Arg = id, epoch
}

// Invoke executes operation op, which is the one with this number.
func (o *Out[M]) Invoke(op string, number uint64) {
	e := o.effect(Invoke)
	e.Data, e.Arg = op, number
}

// Outcome tells the user that its operation succeeded.
func (o *Out[M]) Outcome() { o.effect(Outcome) }

// Propose proposes m in a consensus instance.
func (o *Out[M]) Propose(instance uint64, m M) {
	e := o.effect(Propose)
	e.Arg, e.Msg = instance, m
}

// Resume takes part in consensus from an instance on.
func (o *Out[M]) Resume(instance uint64) { o.effect(Resume).Arg = instance }

// Capture asks for the process's copy of the object.
func (o *Out[M]) Capture() { o.effect(Capture) }

// Install makes object the process's copy.
func (o *Out[M]) Install(object string) { o.effect(Install).Data = object }

// Revoke ends the lease that member id holds here.
func (o *Out[M]) Revoke(id ID) { o.effect(Revoke).To = id }

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
// is frozen once its message is sent.
func (o *Out[M]) Words(n int) []uint64 {
	const block = 4096
	if len(o.words) < n {
		o.words = make([]uint64, max(n, block))
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
	Unsettled func(procs []Process[M]) int
	// Inspect tells what a member knows about who is inside and who waits, and at
	// a user what its critical section rests on.
	Inspect func(p Process[M]) Standing
	// Show tells a person about the state of a process, on one line, with processes
	// written as in Text.
	Show func(p Process[M]) string
	// Waiting tells how many requests wait in the queue of a member, 0 at a user. It
	// is asked after each step.
	Waiting func(p Process[M]) int
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
	return m, c.b, c.err
}

// Visit visits the fields of a message, which is of one of the kinds in Info.Messages.
func (a *Algorithm[M]) Visit(m M, c *Codec) M {
	m = a.Fields(m, c)
	if c.does == reads && c.err == nil && len(a.Messages) > 0 && a.KindOf(m) >= len(a.Messages) {
		c.fail()
	}
	return m
}

// Spare reports whether enough members are up without member i. One that came back counts as
// crashed as long as it is Unsettled. procs are the members by id, nil where crashed.
func (a *Algorithm[M]) Spare(procs []Process[M], i ID) bool {
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

// A Claim is one cost that an algorithm promises and the suite measures.
type Claim struct {
	Load    Load
	Measure Measure
	// Least and Most bound the mean of the measure: messages an entry, or
	// delays in hops of one constant message delay.
	Least, Most Cost
	// Formula is that cost as one writes it, such as 2(N-1), and Published what the
	// source or the textbooks say where that differs; "": the same.
	Formula, Published string
}

// Exactly claims one cost, not a range.
func Exactly(l Load, m Measure, c Cost, formula string) Claim {
	return Claim{Load: l, Measure: m, Least: c, Most: c, Formula: formula}
}

// A Cost depends on the size of the system.
type Cost func(c Config) float64

// Fixed is the cost k for any number of members.
func Fixed(k float64) Cost { return func(Config) float64 { return k } }

// Linear is the cost kN+d for N members.
func Linear(k, d float64) Cost {
	return func(c Config) float64 { return k*float64(c.N) + d }
}

// A Load is a workload that a Claim refers to.
type Load uint8

// LowLoad has one user at a time; HighLoad has every user trying for ever.
const (
	LowLoad Load = iota
	HighLoad
)

// A Measure is what a Claim bounds.
type Measure uint8

// The measures of claims.
const (
	Messages  Measure = iota // messages an entry
	ToEnter                  // those of them that are sent between try and crit; of LowLoad
	Waiting                  // hops between try and crit
	SyncDelay                // hops between an exit and the next crit while somebody waits
	Accesses                 // to registers, an entry
)

// A Sender says who sends a message.
type Sender uint8

// The senders of messages.
const (
	Anybody Sender = iota
	OnlyMembers
	OnlyClients
)

// Users says who gets Try and Exit.
type Users uint8

// Members are processes 0..N-1; Clients have ids from N on. An election has no users.
const (
	Members Users = iota
	Clients
	Nobody
)

// A Family is how an algorithm works, in one word of the tables.
type Family string

// The families.
const (
	Permission   Family = "permission"    // of everybody, or of a coordinator
	Token        Family = "token"         // who holds it may enter
	Quorum       Family = "quorum"        // permission of some, of whom any two users share one
	SharedMemory Family = "shared memory" // registers, or what serves them by messages
	Election     Family = "election"      // of a leader
)

// A Detector is the failure detector that an algorithm asks for.
type Detector uint8

const (
	// NoDetector: nobody is ever suspected.
	NoDetector Detector = iota
	// PerfectDetector: members suspect exactly those that crashed: clients, or members
	// where there are no clients.
	PerfectDetector
	// LeaseDetector is what a network can have: a client holds a lease at each
	// server. When it may have lapsed the client gets Suspect(server), and only
	// after that does the server get Suspect(client), though both are alive; then
	// the client gets Restore(server) when a new lease begins, with the server's
	// incarnation. No message crosses from one lease into the next: what was on
	// its way is lost. A client also gets Restore when the incarnation changed.
	//
	// Where there are no clients, each member holds a lease at each other one, and those
	// of a pair begin and end together: they are a session. Restore, with the incarnation
	// of the other, begins it; what was sent before is lost. When it breaks, each of the
	// two gets Suspect(other) with Lapsed: from then on it gets no message from the other,
	// and what it sends to it is lost. After both of them had that, each gets
	// Suspect(other) with Ended, and when both had that too and hear each other, each gets
	// Restore(other), the second one before any message of the first. Revoke breaks a
	// session, too. Of a member that crashed each other one gets Lapsed and then Ended. Its
	// next life has no sessions: it gets Ended of each other one that had Lapsed of the life
	// before, or is down, and then Restore as above. In the first life Restore comes at
	// once. Each of the three comes once a session, and is not repeated.
	LeaseDetector
	// UnreliableDetector: a member suspects the members that crashed, and may suspect
	// others for a while, such as those from which a partition cuts it off. Restore ends
	// each suspicion of who is alive. On a network what is on its way between two members
	// may be lost, where the algorithm tolerates Recovery: each of them then gets Suspect of
	// the other, and Restore when no more is lost.
	UnreliableDetector
)

// Faults is a set of faults.
type Faults uint8

// The faults that a model may allow.
const (
	Crash       Faults = 1 << iota // a user's process stops for ever, or one that elects
	Amnesia                        // a member restarts in its initial state
	Loss                           // a channel loses messages, not all of those sent again and again
	Duplication                    // a channel delivers a message more than once
	Recovery                       // a member that crashed comes back empty, as a new incarnation
)

// ErrReliable is for drivers that are to lose or repeat messages of an algorithm
// whose model has no such channels.
var ErrReliable = errors.New("its model has channels that neither lose nor repeat; package reliable makes such of others")

// Info is what tables, documentation and drivers read about an algorithm.
type Info struct {
	Name     string // catalog id: lower case, hyphens
	Variant  string // "" for the default form
	Title    string // one line for a table
	Source   string // authors, title, venue, year
	Family   Family
	Users    Users
	Cancels  bool     // accepts Cancel
	Drains   bool     // its members accept Drain
	Ordered  bool     // claims that nobody enters before a user whose try happened before its own
	Refuted  []string // properties that it is published to have, and has not
	Lacks    []string // properties of every algorithm that it has not, as its source says; drivers judge them all the same
	FIFO     bool     // needs FIFO channels
	Detector Detector
	Elector  bool // gets Lead: it runs with an election beside it
	// Weak: its users Issue operations on a replicated object, and exclude each other weakly:
	// who is ejected may not know it for a while, and all that it does is in vain.
	Weak      bool
	Consensus bool // its processes Propose, and hear what they Decide
	Grouped   bool // its users want Groups, and those of one group are inside together
	Several   bool // a user may want more than one group at a time
	Tolerates Faults
	// Synchronous: it is right only if each of its time-outs exceeds a round trip, with
	// what the other ends do in between.
	Synchronous bool
	// Incarnations asks for Start.Arg where there are no leases: see LeaseDetector.
	Incarnations bool
	// Majority: its users are its members, and who tries may wait while too few of them are
	// up: see Enough.
	Majority  bool
	Registers func(c Config) []Register // the shared memory; nil: there is none
	Messages  []Message
	Options   []Option
	Delay     string // the option that is the message delay in ns, which a driver may measure; "": none
	Quorum    string // the option that is how many members a user needs; "": it may need all
	Claims    []Claim
}

// A Register is one variable of the shared memory.
type Register struct {
	Name    string // in traces, without blanks, such as num[2]
	Owner   ID     // who alone writes it, or Shared
	Initial uint64
	// Most is the largest value that a read may return which overlaps a write, where
	// registers are safe only.
	Most uint64
}

// Shared is the owner of a register that every process writes.
const Shared = ID(math.MaxUint64)

// Message describes one kind of message.
type Message struct {
	Name     string
	Overhead bool // not one of the algorithm's own messages: apart in counts
	// From says who sends it where there are clients, who may be strangers: a
	// network driver refuses it from others. Anybody: no check.
	From Sender
}

// An Option is a parameter of one algorithm.
type Option struct {
	Name    string
	Default func(c Config) int64
	// InCheck is the default in the checker, nil: Default. It may turn off what
	// only repeats messages, which the checker delivers in any order anyway. What they
	// do for who waits is Model.Lasts.
	InCheck func(c Config) int64
	// Range is what the option may be, nil: one of Values, or at least 0.
	Range func(c Config) (least, most int64)
	// Sound is the range in which the algorithm keeps its promises, nil: only the
	// default does for certain. A hunt draws from it.
	Sound func(c Config) (least, most int64)
	// Values are the names of its values, from 0 on, by which people choose one; nil: they
	// have none.
	Values []string
	Doc    string // with the unit
}

// Text is a value of the option for people.
func (o Option) Text(v int64) string {
	if v >= 0 && v < int64(len(o.Values)) {
		return o.Values[v]
	}
	return strconv.FormatInt(v, 10)
}

// within is what the option may be.
func (o Option) within(c Config) (least, most int64) {
	switch {
	case o.Range != nil:
		return o.Range(c)
	case o.Values != nil:
		return 0, int64(len(o.Values)) - 1
	}
	return 0, math.MaxInt64
}

// Config is what all processes of one system share. The zero Options are the
// defaults.
type Config struct {
	N       int // members
	Options map[string]int64
}

// Option returns the value of the option called name: the one set in c, else
// its default. It panics when the algorithm has no such option.
func (i Info) Option(c Config, name string) int64 {
	for _, o := range i.Options {
		if o.Name == name {
			if v, ok := c.Options[name]; ok {
				return v
			}
			return o.Default(c)
		}
	}
	panic("protocol: " + i.Name + " has no option " + name)
}

// Enough reports whether who tries may count on it that up of n members are enough: all that
// are up, or more than half where the algorithm needs a Majority.
func (i Info) Enough(up, n int) bool { return !i.Majority || 2*up > n }

// CheckOptions returns an error that names an option of c which the algorithm
// does not have, or which is out of its range; then it says what the option is for, too.
func (i Info) CheckOptions(c Config) error {
	var have []string
	for _, o := range i.Options {
		have = append(have, o.Name)
		least, most := o.within(c)
		switch v := i.Option(c, o.Name); {
		case (v < least || v > most) && o.Values != nil:
			return fmt.Errorf("option %s=%d: want one of %s", o.Name, v, strings.Join(o.Values, ", "))
		case v < least && most == math.MaxInt64:
			return fmt.Errorf("option %s=%d: want at least %d", o.Name, v, least)
		case v < least || v > most:
			why := ""
			if o.Doc != "" {
				why = " (" + o.Doc + ")"
			}
			return fmt.Errorf("option %s=%d: want %d to %d with n=%d%s", o.Name, v, least, most, c.N, why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Options)) {
		switch {
		case slices.Contains(have, name):
		case have == nil:
			return fmt.Errorf("no option %q: it has no options", name)
		default:
			return fmt.Errorf("no option %q: its options are %s", name, strings.Join(have, ", "))
		}
	}
	return nil
}

// A Section is where a user is.
type Section uint8

// The sections of a user, in their cyclic order. A user whose critical section
// was lost is in Lost until it exits. A user that called exit and has not been
// told rem yet is in Exit, and one inside with an operation open in Issue.
const (
	InRem Section = iota
	InTry
	InCrit
	InLost
	InExit
	InIssue
)

// Standing is what a process knows about one lock: a member about its users, a
// user that is inside about the members.
type Standing struct {
	Holders  []Request // whom the member supports or knows inside
	Waiters  []Request // in the order of service
	Supports []ID      // the members that the user's critical section counts on
	Since    int64     // the time of the request that got it, 0 where unknown
}

// A Request is a user and the time of its request.
type Request struct {
	User  ID
	Since int64  // ns of the user's clock, 0 where unknown
	Token uint64 // the fencing token recorded for it here, 0 where unknown
}
