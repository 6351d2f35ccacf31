package sigma

import (
	"fmt"
	"math"

	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Message, with the fields that each carries.
const (
	Request   uint8 = iota // client: Time, Serial (the last support given back), Stage, Group (the one that it prefers), Token and Inc (further ones), After (its head start)
	Response               // server: Owner, Time of the owner, Inc; Group of the owners; of the reader's own support Serial and Token, and Stage
	Yield                  // client: Time, Serial, After (its head start)
	Release                // client: Time; After (1: of a holder) and Token (its own, if it is not Time), where promises are made. With direct also to clients
	Inquiry                // client: Time
	Check                  // server: Time
	SetToken               // client: Time, Serial, Token
	Recorded               // server: Time, Token
	Refused                // server: Time, Token (its clock)
	Recall                 // server: Time, Serial, Inc
	Draining               // server: Inc
	Downgrade              // client: Time, Group (its own from now on), After (its head start)
	Promise                // server: Time of the reader's request, Serial and Token of the support that it will have, Owner and After (whom the server supports, and the time of its request), Inc
	Transfer               // server, with direct: Time of the reader's request, Owner (who is next)
)

// A Stage says what the sender of a REQUEST waits for.
type Stage uint8

// The stages. The literal form knows the first one only.
const (
	First  Stage = iota // the first REQUEST of an epoch
	Again               // it asked before, and waits since
	Inside              // it is inside, and has lost a support here

	Wanted = Again // of a RESPONSE to an owner that shares: somebody waits who does not
)

var messages = []protocol.Message{
	Request:   {Name: "REQUEST", From: protocol.OnlyClients},
	Response:  {Name: "RESPONSE", From: protocol.OnlyMembers},
	Yield:     {Name: "YIELD", From: protocol.OnlyClients},
	Release:   {Name: "RELEASE", From: protocol.OnlyClients},
	Inquiry:   {Name: "INQUIRY", From: protocol.OnlyClients},
	Check:     {Name: "CHECK", Overhead: true, From: protocol.OnlyMembers},
	SetToken:  {Name: "SETTOKEN", From: protocol.OnlyClients},
	Recorded:  {Name: "RECORDED", From: protocol.OnlyMembers},
	Refused:   {Name: "REFUSED", From: protocol.OnlyMembers},
	Recall:    {Name: "RECALL", From: protocol.OnlyMembers},
	Draining:  {Name: "DRAINING", From: protocol.OnlyMembers},
	Downgrade: {Name: "DOWNGRADE", From: protocol.OnlyClients},
	Promise:   {Name: "PROMISE", From: protocol.OnlyMembers},
	Transfer:  {Name: "TRANSFER", From: protocol.OnlyMembers},
}

// A Message is what clients and servers send each other. Fields that a kind does
// not carry are 0. In literal runs Inc, Serial and Token are always 0.
type Message struct {
	Kind   uint8
	Stage  Stage       // of the sender of a REQUEST; or Wanted
	Time   uint64      // the timestamp of a request
	Owner  protocol.ID // whom the server supports; of a TRANSFER whom it will support
	Inc    uint64      // the server's incarnation; of a REQUEST a further group
	Serial uint64      // the number of a support
	Token  uint64      // a fencing token or a clock, ns; of a REQUEST a further group
	Group  uint64      // the code of a group, see share; 0: of who is alone
	After  uint64      // of a PROMISE the time of Owner's request; of a RELEASE, and the RESPONSE on it, 1: that request has ended; of a REQUEST, a YIELD and a DOWNGRADE a head start, ns
}

const source = "Chen, Lin, Lian, Zhang: Sigma: A Fault-Tolerant Mutual Exclusion Algorithm in Dynamic " +
	"Distributed Systems Subject to Process Crashes and Memory Losses, PRDC 2005"

// The values of the option fence.
const (
	FenceOff       = iota // grants carry no token
	FenceOn               // tokens are recorded by a quorum before a grant
	FenceNoFloor          // unsound, for the evidence: a restarted server starts at 0
	FencePiggyback        // unsound, for the evidence: nothing is written back
)

var (
	quorumOption = protocol.Option{
		Name:    "quorum",
		Default: func(c protocol.Config) int64 { return int64(quorum.TwoThirds(c.N)) },
		Range:   func(c protocol.Config) (least, most int64) { return 1, int64(c.N) },
		Doc:     "servers that must support a holder (default two thirds, rounded up)",
	}
	checkOption = protocol.Option{
		Name:    "check",
		Default: func(protocol.Config) int64 { return 1e9 },
		InCheck: func(protocol.Config) int64 { return 0 },
		Sound:   between(1e6, 10e9),
		Doc:     "ns between two CHECKs of a server to the client that it supports; 0: none (default 1s; 0 in check)",
	}
	epsOption = protocol.Option{
		Name:    "eps",
		Default: func(protocol.Config) int64 { return 50e6 },
		Range:   between(0, 3600e9),
		Sound:   between(1e6, 1e9),
		Doc:     "ns: no clock is further from real time (default 50ms)",
	}
	orderOption = protocol.Option{
		Name:    "order",
		Default: func(protocol.Config) int64 { return byClock },
		Values:  []string{byClock: "clock", bySequence: "sequence", byID: "id"},
		Local:   "leases, tokens and ages of requests are by the clock",
		Doc:     "the total order of requests: by clock, by a sequence number of each client, or by the ids of clients (default clock)",
	}
	options = []protocol.Option{
		quorumOption,
		checkOption,
		{
			Name:    "delay",
			Default: func(protocol.Config) int64 { return 1e6 },
			Doc:     "ns, T: the message delay that back-off and safety timer are multiples of (default 1ms)",
		},
		{
			Name:    "fence",
			Default: func(protocol.Config) int64 { return FenceOff },
			Range:   between(FenceOff, FencePiggyback),
			Sound:   between(FenceOff, FenceOn),
			Doc:     "fencing tokens: 0 off, 1 on, 2 on without a floor after restarts, 3 piggybacked only",
		},
		epsOption,
		{
			Name:    "forget",
			Default: func(c protocol.Config) int64 { return max(10e9, tenEps(c)) },
			Range:   func(c protocol.Config) (least, most int64) { return tenEps(c), math.MaxInt64 },
			Doc:     "ns, D: how long a server remembers the token of an idle lock (default 10s or 10 eps)",
		},
		{
			Name:    "oldest",
			Default: func(protocol.Config) int64 { return 3600e9 },
			Doc:     "ns: servers refuse a first request that is further behind their clock (default 1h)",
		},
		{
			Name:    "refresh",
			Default: func(protocol.Config) int64 { return 1 },
			Range:   between(0, 1),
			Doc:     "1: a holder rebuilds the supports that restarts cost it; 0: it does not, for the evidence (default 1)",
		},
		{
			Name:    "promise",
			Default: func(protocol.Config) int64 { return 0 },
			Range:   between(0, 1),
			Doc:     "1: servers tell the next in line that it is next, and a hand-over needs only the first of them, for n messages more; 0: they do not (default 0; poundlock serve has 1)",
		},
		{
			Name:    "direct",
			Default: func(protocol.Config) int64 { return 0 },
			Range:   between(0, 1),
			Local:   "clients have no connections to each other",
			Doc:     "1: with promise=1 servers also tell a holder who is next, and it tells that client itself when it leaves, for n+1 messages more; 0: it does not (default 0, and on a network)",
		},
		{
			Name:    "head",
			Default: func(protocol.Config) int64 { return 0 },
			Range:   between(0, protocol.MaxHeadStart),
			Doc:     "ns, in check timestamps: the head start of c2, c4, c6 and so on, for the evidence (default 0)",
		},
		{
			Name:    "thrifty",
			Default: func(protocol.Config) int64 { return 0 },
			Range:   between(0, 1),
			Local:   "a client chooses by itself whom it asks first",
			Doc:     "1: each try asks a quorum first, a different one for each client, and the others if that does not do; 0: all at once, for the evidence (default 0)",
		},
	}
)

func between(least, most int64) func(protocol.Config) (int64, int64) {
	return func(protocol.Config) (int64, int64) { return least, most }
}

func tenEps(c protocol.Config) int64 {
	return 10 * protocol.Info{Options: []protocol.Option{epsOption}}.Option(c, epsOption.Name)
}

var info = protocol.Info{
	Name:      "sigma",
	Title:     "unbounded clients on memory-only servers that may restart empty",
	Source:    source,
	Family:    protocol.Quorum,
	Users:     protocol.Clients,
	Cancels:   true,
	Drains:    true,
	Shares:    true,
	Tells:     true,
	Several:   true,
	Early:     true,
	Thrifty:   true,
	Detector:  protocol.LeaseDetector,
	Tolerates: protocol.Crash | protocol.Amnesia,
	Messages:  messages,
	Options:   options,
	Delay:     "delay",
	Quorum:    "quorum",
	Claims:    claims(4.5, 2.2),
}

var literalInfo = protocol.Info{
	Name:      "sigma",
	Variant:   "literal",
	Title:     "Sigma as published, line by line",
	Source:    source,
	Family:    protocol.Quorum,
	Users:     protocol.Clients,
	Cancels:   true,
	Detector:  protocol.PerfectDetector,
	Tolerates: protocol.Crash | protocol.Amnesia,
	Messages:  messages,
	Options:   []protocol.Option{quorumOption, checkOption, orderOption},
	Quorum:    "quorum",
	Claims:    claims(0, 0)[:2], // under contention it floods: see the package documentation
}

// Algorithm is Sigma as one would run it: Figure 1 with numbered supports,
// deferral, re-requests from recovered servers, leases and fencing tokens.
var Algorithm = numbered(algorithm(info, newDefault, invariants[*Server](token)))

// Literal is Figure 1 line by line, without any extension.
var Literal = banded(algorithm(literalInfo, newLiteral, invariants[*LiteralServer](literalToken)))

type newProcess = func(id protocol.ID, c protocol.Config) protocol.Process[Message]

func algorithm(i protocol.Info, p newProcess, inv []protocol.Invariant) protocol.Algorithm[Message] {
	return protocol.Algorithm[Message]{
		Info:   i,
		New:    p,
		Fields: Message.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   ints,
		Text:   text,
		Fits:   fits,
		Model: protocol.Model[Message]{
			Idempotent:      func(m Message) bool { return m.Kind == Check },
			Invariants:      inv,
			Lasts:           asked,
			Confluent:       late,
			Interchangeable: anyway,
			Permute:         rename,
		},
	}
}

// numbered adds what the numbers of supports need in the checker.
func numbered(a protocol.Algorithm[Message]) protocol.Algorithm[Message] {
	a.MapState, a.MapMsg, a.Unsettled = protocol.MapState[Message], protocol.MapMsg(Message.fields), unsettled
	a.Interchangeable = unfenced
	a.Bounds = []protocol.Bound{protocol.NewBound("serials", 5, func(p interface{ serial() uint64 }) uint64 { return p.serial() })}
	return a
}

func newDefault(id protocol.ID, c protocol.Config) protocol.Process[Message] {
	if id < protocol.ID(c.N) {
		return newServer(id, c)
	}
	return newClient(id, c)
}

func newLiteral(id protocol.ID, c protocol.Config) protocol.Process[Message] {
	if id < protocol.ID(c.N) {
		return newLiteralServer(c)
	}
	return newLiteralClient(id, c)
}

// claims are 3n messages and two hops without contention, and with contention
// at most messages*n and sync hops.
func claims(messages, sync float64) []protocol.Claim {
	return []protocol.Claim{
		protocol.Exactly(protocol.LowLoad, protocol.Messages, protocol.Linear(3, 0), "3N"),
		protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2"),
		protocol.Between(protocol.HighLoad, protocol.Messages, protocol.Linear(3, 0), protocol.Linear(messages, 0), fmt.Sprintf("3N .. %gN", messages)),
		protocol.Between(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(2), protocol.Fixed(sync), fmt.Sprintf("2 .. %g", sync)),
	}
}

// A request is (client, timestamp). Requests are totally ordered, first by
// timestamp: the paper's predetermined order.
type request struct {
	client protocol.ID
	time   uint64
}

func (r request) before(s request) bool { return r.stamp().Before(s.stamp()) }

func (r request) stamp() protocol.Stamp { return protocol.Stamp{Time: r.time, ID: r.client} }
