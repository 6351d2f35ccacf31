package protocol

import "errors"

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
	return Between(l, m, c, c, formula)
}

// Between claims a range.
func Between(l Load, m Measure, least, most Cost, formula string) Claim {
	return Claim{Load: l, Measure: m, Least: least, Most: most, Formula: formula}
}

// PublishedAs is c where the source says something else.
func (c Claim) PublishedAs(what string) Claim {
	c.Published = what
	return c
}

// A Cost depends on the size of the system.
type Cost func(c Config) float64

// Fixed is the cost k for any number of members.
func Fixed(k float64) Cost { return func(Config) float64 { return k } }

// Linear is the cost kN+d for N members.
func Linear(k, d float64) Cost {
	return func(c Config) float64 { return k*float64(c.N) + d }
}

// AllButOne is the mean cost where one of N members pays nothing and the others k.
func AllButOne(k float64) Cost {
	return func(c Config) float64 { return k * float64(c.N-1) / float64(c.N) }
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
	Among    bool     // where there are clients: its members send messages to each other, too
	Largest  int      // how many members it is for, at most; 0: any number
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
	// Shares: its users may want Groups; those that do not are alone. Grouped is set for a run in which some do.
	Shares  bool
	Tells   bool // its users hear Wanted: whoever is inside with one of them may let others of their group in, until it does
	Several bool // a user may want more than one group at a time
	// Early: a try may have a head start, which is in its Arg: see WithHeadStart.
	Early bool
	// Thrifty: a try may ask a quorum first, and everybody else if that does not do. Whom it asks later is in its Arg: see WithLater.
	Thrifty   bool
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

// Message describes one kind of message.
type Message struct {
	Name     string
	Overhead bool // not one of the algorithm's own messages: apart in counts
	// From says who sends it where there are clients, who may be strangers: a
	// network driver refuses it from others. Anybody: no check.
	From Sender
}

// Form is the name of the algorithm with that of its variant, such as ra2/recovery.
func (i Info) Form() string {
	if i.Variant == "" {
		return i.Name
	}
	return i.Name + "/" + i.Variant
}
