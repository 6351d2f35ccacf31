package tokengme

import (
	"fmt"
	"math"

	"github.com/poundlock/poundlock/protocol"
)

// A form is one of the catalogue.
type form struct {
	protocol.Info
	several bool // a request may name several groups
	clients bool // users are clients of members
	bounded bool // numbers are
	literal bool // it is the paper's
}

// Algorithm is TokenGME: a user wants one group.
var Algorithm = form{Info: protocol.Info{
	Title: "group locks: a primary token that issues secondary ones of its group",
}}.algorithm()

// Several lets a user want any one of several groups.
var Several = form{several: true, Info: protocol.Info{
	Variant: "several", Title: "the same, for users that want any one of several groups",
}}.algorithm()

// Bounded keeps all numbers bounded, by resets.
var Bounded = form{bounded: true, Info: protocol.Info{
	Variant: "bounded", Title: "the same with numbers that are reset, so that they stay bounded",
}}.algorithm()

// WithClients has many users at each member, who are inside together.
var WithClients = form{clients: true, Info: protocol.Info{
	Variant: "clients", Title: "the same with any number of clients at each member",
}}.algorithm()

// Literal is TokenGME as published, action by action. It sends what Algorithm sends.
var Literal = form{literal: true, Info: protocol.Info{
	Variant: "literal", Title: "the same as published, action by action, without options",
}}.algorithm()

func (f form) algorithm() protocol.Algorithm[Message] {
	i := f.Info
	i.Name, i.Family, i.Users = "tokengme", protocol.Token, protocol.Members
	i.Source = "Mittal, Mohan: A Priority-Based Distributed Group Mutual Exclusion Algorithm When Group Access Is Non-Uniform, JPDC 2007"
	i.Grouped, i.Several, i.Tells = true, f.several, !f.clients && !f.literal
	i.Messages, i.Options, i.Claims = messages[:Release+1], f.options(), f.claims()
	switch {
	case f.clients:
		i.Users, i.Among, i.Messages, i.Cancels = protocol.Clients, true, messages, true
		i.Lacks = []string{"concurrent-entry"} // once somebody gives up
	case f.bounded:
		i.Messages = messages[:AckSSN+1]
	}
	return protocol.Algorithm[Message]{
		Info:   i,
		New:    f.make,
		Fields: Message.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   ints,
		Text:   text,
		Model:  f.model(),
	}
}

func (f form) make(id protocol.ID, c protocol.Config) protocol.Process[Message] {
	switch {
	case id >= protocol.ID(c.N):
		return newClient(id, c, f.option(perOption, c))
	case f.literal:
		return &LiteralProcess{member: newMember(id, c.N)}
	}
	return newProcess(id, c, f)
}

func between(least, most int64) func(protocol.Config) (int64, int64) {
	return func(protocol.Config) (int64, int64) { return least, most }
}

func fixed(v int64) func(protocol.Config) int64 { return func(protocol.Config) int64 { return v } }

// The values of the option admission: whether the holder of the primary token issues
// secondary ones while a conflicting request waits.
const (
	Open   = iota // it does as long as it is inside itself
	Strict        // it does not
)

var (
	selectionOption = protocol.Option{
		Name: "selection", Default: fixed(Priority), Values: []string{"priority", "fifo", "largest"}, Sound: between(Priority, Largest),
		Doc: "whose session is next: priority, fifo or largest (default priority)",
	}
	admissionOption = protocol.Option{
		Name: "admission", Default: fixed(Open), Values: []string{"open", "strict"}, Sound: between(Open, Strict),
		Doc: "new tokens of a group while another one waits: open or strict (default open)",
	}
	perOption = protocol.Option{
		Name: "per", Default: fixed(0), Sound: between(0, 4),
		Doc: "clients in a row that have one home; 0: they go round the members (default 0)",
	}
	smaxOption = protocol.Option{
		Name: "smax", Default: fixed(1000), InCheck: fixed(2), Range: between(2, math.MaxInt32), Sound: between(2, 10),
		Doc: "the largest number of a request, and of a session, before a reset (default 1000; 2 in check)",
	}
)

func (f form) options() []protocol.Option {
	if f.literal {
		return nil
	}
	list := []protocol.Option{selectionOption}
	if !f.several {
		list = append(list, admissionOption)
	}
	if f.clients {
		list = append(list, perOption)
	}
	if f.bounded {
		list = append(list, smaxOption)
	}
	return list
}

// option is the value of o, 0 in forms that have no such option.
func (f form) option(o protocol.Option, c protocol.Config) int64 {
	i := protocol.Info{Options: f.options()}
	for _, have := range i.Options {
		if have.Name == o.Name {
			return i.Option(c, o.Name)
		}
	}
	return 0
}

// A request for several groups needs strict admission: Mittal and Mohan, section 5.1.
func (f form) strict(c protocol.Config) bool {
	return f.several || f.option(admissionOption, c) == Strict
}

func (f form) selection(c protocol.Config) int64 { return f.option(selectionOption, c) }
func (f form) smax(c protocol.Config) uint64     { return uint64(f.option(smaxOption, c)) }

// claims for users that want groups at random: who finds a token of its group sends
// nothing, and who ends a session has its RELEASEs counted. To the delays of a client come
// those of ASK and GRANT, and from one session to the next those of LEAVE and GRANT.
func (f form) claims() []protocol.Claim {
	none, entry, extra, sync := protocol.Fixed(0), protocol.Linear(2, -1), 0.0, "1"
	if f.clients {
		extra, sync = 2, "1 .. 3"
	}
	return []protocol.Claim{
		protocol.Between(protocol.LowLoad, protocol.ToEnter, none, entry, "0 .. 2N-1"),
		protocol.Between(protocol.LowLoad, protocol.Messages, none, entry, "0 .. 2N-1"),
		protocol.Between(protocol.LowLoad, protocol.Waiting, protocol.Fixed(extra), protocol.Fixed(2+extra), fmt.Sprintf("%g .. %g", extra, 2+extra)),
		protocol.Between(protocol.HighLoad, protocol.Messages, none, entry, "0 .. 2N-1"),
		protocol.Between(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(1), protocol.Fixed(1+extra), sync),
	}
}
