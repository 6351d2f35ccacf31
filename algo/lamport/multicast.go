package lamport

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of MulticastMessage.
const (
	Tell     uint8 = iota // a command, for all
	Received              // the sender has got one, and all that it sends from now on is later
)

var multicastMessages = []protocol.Message{Tell: {Name: "TELL"}, Received: {Name: "RECEIVED"}}

// What commands do.
const (
	Enter    uint8 = iota // a section of the sender waits for its turn
	Invoke                // operation Op of the sender, which is inside
	Exit                  // the section of the sender ends
	commands              // how many there are
)

// A Command is what a user does, and all processes execute.
type Command struct {
	Do uint8
	Op string
}

// A MulticastMessage has the timestamp at which it was sent; that of a TELL is its command's.
type MulticastMessage struct {
	Kind    uint8
	Time    uint64
	Command Command // of TELL
}

// Multicast is a replicated lock and object over totally ordered multicast. MulticastUnordered is
// the same on channels that are not FIFO.
var (
	Multicast = multicast("multicast", "a replicated lock and object over totally ordered multicast", true)

	MulticastUnordered = multicast("multicast-unordered", "the same on channels that are not FIFO: copies differ", false,
		"one-copy", "contiguous", "fresh", "deadlock", "progress", "starvation", "order")
)

func multicast(variant, title string, fifo bool, refuted ...string) protocol.Algorithm[MulticastMessage] {
	// A command is one message to each of the others, each of which tells all that it got it.
	sent := func(commands float64) protocol.Cost {
		return func(c protocol.Config) float64 { return commands * float64(c.N*(c.N-1)) }
	}
	return protocol.Algorithm[MulticastMessage]{
		Info: protocol.Info{
			Name:     Algorithm.Name,
			Variant:  variant,
			Title:    title,
			Source:   Algorithm.Source,
			Family:   protocol.Permission,
			Users:    protocol.Members,
			Ordered:  true,
			Refuted:  refuted,
			FIFO:     fifo,
			Weak:     true,
			Messages: multicastMessages,
			Claims: []protocol.Claim{
				protocol.Exactly(protocol.LowLoad, protocol.ToEnter, sent(1), "N(N-1)"),
				protocol.Exactly(protocol.LowLoad, protocol.Messages, sent(2), "2N(N-1)"),
				protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2"),
				protocol.Exactly(protocol.HighLoad, protocol.Messages, sent(2), "2N(N-1)"),
				protocol.Between(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(1), protocol.Fixed(2), "1 to 2"),
			},
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[MulticastMessage] {
			return &Replica{order: order{id: id, n: c.N, heard: make([]uint64, c.N)}}
		},
		Fields: MulticastMessage.fields,
		KindOf: func(m MulticastMessage) int { return int(m.Kind) },
		Ints:   multicastInts,
		Text:   multicastText,
		Model: protocol.Model[MulticastMessage]{
			MapState: protocol.MapState[MulticastMessage], MapMsg: protocol.MapMsg(MulticastMessage.fields),
		},
	}
}

// An order is totally ordered multicast: all processes deliver the same commands, in the order of their
// timestamps. Those of one process are in the order in which it sent them, and a command that a process
// sent after it had received another one comes after that.
type order struct {
	id protocol.ID
	n  int

	clock uint64    // later than, or equal to, all that this process sent and received
	queue []stamped // not delivered, in their order
	heard []uint64  // by process: the latest time that arrived from it; 0: nothing, or this process
}

// stamped is a command with its place in the order.
type stamped struct {
	protocol.Stamp
	Command
}

// multicast sends a command to all, this process too.
func (o *order) multicast(c Command, out *protocol.Out[MulticastMessage]) {
	o.clock++
	o.insert(stamped{protocol.Stamp{Time: o.clock, ID: o.id}, c})
	out.Broadcast(MulticastMessage{Tell, o.clock, c})
}

// receive tells all that a command arrived: what this process sends later is later in the order.
func (o *order) receive(from protocol.ID, m MulticastMessage, out *protocol.Out[MulticastMessage]) {
	o.clock = max(o.clock, m.Time)
	o.heard[from] = max(o.heard[from], m.Time)
	if m.Kind == Tell {
		o.insert(stamped{protocol.Stamp{Time: m.Time, ID: from}, m.Command})
		o.clock++
		out.Broadcast(MulticastMessage{Kind: Received, Time: o.clock})
	}
}

func (o *order) insert(c stamped) {
	i, _ := slices.BinarySearchFunc(o.queue, c.Stamp, func(q stamped, s protocol.Stamp) int { return q.Compare(s) })
	o.queue = slices.Insert(o.queue, i, c)
}

// stable reports whether there is a first command, and no earlier one can arrive any more: on FIFO channels
// what arrives from a process is later than what has.
func (o *order) stable() bool {
	if len(o.queue) == 0 {
		return false
	}
	for j, t := range o.heard {
		if j := protocol.ID(j); j != o.id && (protocol.Stamp{Time: t, ID: j}).Before(o.queue[0].Stamp) {
			return false
		}
	}
	return true
}

// deliver takes the first command, which is stable.
func (o *order) deliver() stamped {
	c := o.queue[0]
	o.queue = slices.Delete(o.queue, 0, 1)
	return c
}

// Replica is one participant: a user, and a copy of the lock and of the object, which is the state machine
// that executes what is delivered.
type Replica struct {
	order

	executed uint64        // how many operations
	sections []protocol.ID // whose they are, as they entered: the first one is inside
}

// Step implements protocol.Process.
func (p *Replica) Step(ev protocol.Event[MulticastMessage], out *protocol.Out[MulticastMessage]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.multicast(Command{Do: Enter}, out)
	case protocol.Issue:
		p.multicast(Command{Do: Invoke, Op: ev.Data}, out)
	case protocol.Exit:
		p.multicast(Command{Do: Exit}, out)
	case protocol.Receive:
		p.receive(ev.From, ev.Msg, out)
	default:
		panic("lamport: unexpected event")
	}
	for p.stable() {
		p.execute(p.deliver(), out)
	}
}

// execute is the state machine.
func (p *Replica) execute(c stamped, out *protocol.Out[MulticastMessage]) {
	switch c.Do {
	case Enter:
		if p.sections = append(p.sections, c.ID); len(p.sections) == 1 {
			p.admit(out)
		}
	case Invoke:
		p.executed++
		out.Invoke(c.Op, p.executed)
		if c.ID == p.id {
			out.Outcome()
		}
	case Exit:
		if c.ID == p.id {
			out.Rem()
		}
		if slices.Index(p.sections, c.ID) == 0 { // on FIFO channels it is
			p.sections = slices.Delete(p.sections, 0, 1)
			p.admit(out)
		}
	}
}

// admit lets the first one in, if that is the user of this process.
func (p *Replica) admit(out *protocol.Out[MulticastMessage]) {
	if len(p.sections) > 0 && p.sections[0] == p.id {
		out.Crit(0)
	}
}

// Waiting is how many sections follow the one that is inside.
func (p *Replica) Waiting() int { return max(0, len(p.sections)-1) }
