package wme

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Message. From Sync on they only heal: they are sent where messages were lost, a
// process lags behind, or comes back.
const (
	Request  uint8 = iota // A process that sends it wants the token, for its request ID
	Grant                 // record Number: the token goes to Who, for its request ID
	Invoke                // record Number: operation ID of Who
	Ack                   // record Number is logged
	DoInvoke              // record Number is committed
	NewEp                 // the vote of a process that ends the epoch
	Sync                  // how far a process is; ID: the life of one that is to join
	Records               // operations after those of a Sync, and who has the token
	Ahead                 // the log does not reach back to what a Sync asked for: ask for the state
	Fetch                 // send the state
	State                 // the state, with the object
)

var messages = []protocol.Message{
	Request: {Name: "REQUEST"}, Grant: {Name: "GRANTED"}, Invoke: {Name: "INVOKE"}, Ack: {Name: "ACK"},
	DoInvoke: {Name: "DOINVOKE"}, NewEp: {Name: "NEWEP"}, Sync: {Name: "SYNC"}, Records: {Name: "RECORDS"},
	Ahead: {Name: "AHEAD"}, Fetch: {Name: "FETCH"}, State: {Name: "STATE"},
}

// A Message carries what its kind needs.
type Message struct {
	Kind   uint8
	Epoch  uint64
	Number uint64 // of a record; of the last one that the sender has logged
	// Done is the last operation that the sender has executed: of REQUEST, ACK, SYNC, AHEAD and
	// STATE. Of records and DOINVOKE: that everybody has. Of NEWEP: that is logged. Of RECORDS:
	// that is committed.
	Done uint64
	Who  protocol.ID
	ID   uint64
	Op   string
	More *Bulk // of NEWEP, RECORDS and STATE; frozen
}

// A Bulk is what processes know of an epoch: a vote, a decision, or what somebody lacks.
type Bulk struct {
	Owner    protocol.ID // of the token in the next epoch, if it is a vote; else in this one
	Records  []Record    // in the order of their numbers
	Granted  []uint64    // by process: the largest request that was granted
	Requests []Claim     // in the order of service
	Lives    []uint64    // by process: the life that takes part
	Last     []uint64    // by process: its last operation that was executed; of STATE
	Object   string      // of STATE
}

// A Record is an operation in the log. All records between it and the operation before are grants,
// which need not be kept: owner and granted are what became of them.
type Record struct {
	Number, Before uint64 // its own, and that of the operation before it; 0: there is none
	Who            protocol.ID
	ID             uint64 // of the operation at Who
	Op             string
}

// overhead is about what a message or a record takes in memory beside its operation, in bytes.
const overhead = 100

// size is about what a message takes in memory, in bytes.
func (m Message) size() int {
	k := overhead + len(m.Op)
	if b := m.More; b != nil {
		k += size(b.Records) + 8*(len(b.Granted)+2*len(b.Requests)+len(b.Lives)+len(b.Last)) + len(b.Object)
	}
	return k
}

func (r Record) size() int { return overhead + len(r.Op) }

func size(list []Record) (k int) {
	for _, r := range list {
		k += r.size()
	}
	return k
}

// A Claim is a request that waits.
type Claim struct {
	Who protocol.ID
	ID  uint64
}

// The variants: to whom a process says that it has logged an operation.
const (
	toAll   = 1 // WME-1: everybody sees the majority
	toOwner = 2 // WME-2: the owner tells
)

// First is WME-1: an operation takes two steps and N^2-1 messages. Second is WME-2: two steps
// to its outcome, three to the last replica, and 3(N-1) messages.
var (
	First  = form(toAll, all, "wme-1", "weak mutual exclusion over a replicated object, acknowledged to all")
	Second = form(toOwner, all, "wme-2", "weak mutual exclusion over a replicated object, acknowledged to the owner")
)

// LiteralFirst and LiteralSecond are the same as printed: nothing is corrected.
var (
	LiteralFirst  = literal(toAll, "wme-1", "one-copy", "fresh", "lagging", "well-formed", "deadlock", "starvation")
	LiteralSecond = literal(toOwner, "wme-2", "one-copy", "lagging", "well-formed", "deadlock", "starvation")
)

func literal(acks int, name string, refuted ...string) protocol.Algorithm[Message] {
	a := form(acks, 0, name, "the same as printed, without the corrections that it needs")
	a.Variant, a.Refuted, a.Tolerates = "literal", refuted, protocol.Crash
	return a
}

// claims are about sections without operations. The token moves for each but the first one, and where it
// is already nothing is sent: see TestCosts for what each action costs.
var claims = []protocol.Claim{
	nearly(protocol.LowLoad, protocol.Messages, 2, -2, "2(N-1)"),
	nearly(protocol.LowLoad, protocol.Waiting, 0, 2, "2"),
	nearly(protocol.HighLoad, protocol.Messages, 2, -2, "2(N-1)"),
	protocol.Exactly(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(1), "1"),
}

// nearly claims kN+d, but for the first entry.
func nearly(l protocol.Load, m protocol.Measure, k, d float64, formula string) protocol.Claim {
	const first = 0.1
	return protocol.Claim{
		Load: l, Measure: m, Formula: formula,
		Least: protocol.Linear(k*(1-first), d*(1-first)), Most: protocol.Linear(k, d),
	}
}

func form(acks int, corrected corrections, name, title string) protocol.Algorithm[Message] {
	info := protocol.Info{
		Name:         name,
		Title:        title,
		Source:       "Romano, Rodrigues: An Efficient Weak Mutual Exclusion Algorithm, ISPDC 2009",
		Family:       protocol.Token,
		Users:        protocol.Members,
		Weak:         true,
		Consensus:    true,
		Cancels:      true,
		Detector:     protocol.UnreliableDetector,
		Tolerates:    protocol.Crash | protocol.Recovery,
		Incarnations: true,
		Majority:     true,
		Messages:     messages,
		Options:      []protocol.Option{carry, keep, room, stability, heal},
		Claims:       claims,
	}
	return protocol.Algorithm[Message]{
		Info: info,
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
			p := &Process{
				id: id, n: c.N, acks: acks, corrections: corrected,
				carry: int(info.Option(c, carry.Name)), keep: int(info.Option(c, keep.Name)), room: int(info.Option(c, room.Name)),
				stability: info.Option(c, stability.Name) == 1, heal: info.Option(c, heal.Name) == 1,
				granted: make([]uint64, c.N), lives: slices.Repeat([]uint64{1}, c.N), life: 1, last: make([]uint64, c.N),
				done: make([]uint64, c.N), wishes: make([]uint64, c.N), votes: make([]Message, c.N),
			}
			for _, s := range [...]*protocol.Set{&p.logged, &p.asked, &p.fetchers, &p.suspected} {
				*s = protocol.NewSet(c.N)
			}
			return p
		},
		Fields: Message.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   ints,
		Text:   text,
		Fits:   fits,

		Snapshot:  snapshot,
		Unsettled: unsettled,
		Model:     protocol.Model[Message]{Moot: moot},
	}
}

// unsettled is how many came back and take no part yet.
func unsettled(procs []protocol.Stateful) (k int) {
	for _, p := range procs {
		if p, up := protocol.As[*Process](p); up && !p.joined() {
			k++
		}
	}
	return k
}

// The options.
var (
	carry = option("carry", 8, 64, 1, 64,
		"how many operations a process puts into a message: of the last ones into its vote, when an epoch ends, and of "+
			"those that another one lacks and asks for into an answer")
	keep = option("keep", 1024, 1024, 1, 1<<20,
		"how many executed operations a process keeps for those that lag: who lacks older ones gets the whole object; "+
			"and how many it logs after one that it lacks")
	room = option("room", 16<<20, 16<<20, 1, 1<<30,
		"how many bytes of operations a process keeps for those that lag, how many it logs after one that it lacks, "+
			"and how many of messages wait for their time")
	stability = option("stability", 1, 0, 0, 1,
		"1: operations that everybody has executed are dropped; 0: they stay until keep drops them")
	heal = option("heal", 1, 0, 0, 1,
		"1: who was suspected hears again what it may have lost; 0: messages are not lost")
)

func option(name string, value, inCheck, least, most int64, doc string) protocol.Option {
	fixed := func(v int64) func(protocol.Config) int64 { return func(protocol.Config) int64 { return v } }
	within := func(protocol.Config) (int64, int64) { return least, most }
	return protocol.Option{
		Name: name, Default: fixed(value), InCheck: fixed(inCheck), Range: within, Sound: within,
		Doc: fmt.Sprintf("%s (default %d)", doc, value),
	}
}
