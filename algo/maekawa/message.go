package maekawa

import (
	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Message. The basic form has the first three.
const (
	Request uint8 = iota
	Reply         // a vote
	Release
	Failed  // somebody else comes first: no vote for now
	Inquire // asks for the vote back
	Yield   // gives it back
)

var messages = []protocol.Message{
	Request: {Name: "REQUEST"},
	Reply:   {Name: "REPLY"},
	Release: {Name: "RELEASE"},
	Failed:  {Name: "FAILED"},
	Inquire: {Name: "INQUIRE"},
	Yield:   {Name: "YIELD"},
}

// A Message is REQUEST(timestamp), REPLY(latest timestamp that waits), or one of the
// others, which carry nothing. The basic form has no timestamps.
type Message struct {
	Kind uint8
	Time uint64 // of REQUEST and REPLY, 0: none
}

// source is what all forms go back to.
const source = "Maekawa: A sqrt(N) Algorithm for Mutual Exclusion in Decentralized Systems, ACM TOCS 1985"

// sets is the option that says which voting sets there are. The forms that are defined for
// few n come last, so that those which are possible are a range.
var sets = protocol.Option{
	Name:    "sets",
	Default: func(protocol.Config) int64 { return int64(quorum.Cyclic) },
	Range:   forms,
	Sound:   forms,
	Doc: "voting sets: 0 cyclic, 1 majorities, 2 rows and columns of a grid, " +
		"3 lines of a plane (n=3, 7, 13, 21, 31, 57, ..), 4 those of the lecture (n=3, 7)",
}

func forms(c protocol.Config) (least, most int64) {
	most = int64(quorum.Grid)
	for _, f := range []quorum.Form{quorum.Plane, quorum.Slides} {
		if f.Defined(c.N) {
			most = int64(f)
		}
	}
	return int64(quorum.Cyclic), most
}

func form(c protocol.Config) quorum.Form {
	return quorum.Form(protocol.Info{Options: []protocol.Option{sets}}.Option(c, sets.Name))
}

// votersOf is V_i of process i, in increasing order.
func votersOf(i protocol.ID, c protocol.Config) []protocol.ID {
	var voters []protocol.ID
	for _, j := range form(c).Of(int(i), c.N) {
		voters = append(voters, protocol.ID(j))
	}
	return voters
}

// others is k(K-1): k messages for each voter but the process itself. K is the mean where
// sets differ in size.
func others(k float64) protocol.Cost {
	return func(c protocol.Config) float64 {
		members := 0
		for i := range c.N {
			members += len(form(c).Of(i, c.N))
		}
		return k * (float64(members)/float64(c.N) - 1)
	}
}

// lowLoad is what one process at a time costs, in all forms: a vote of each member of its
// set, and their release.
var lowLoad = []protocol.Claim{
	published(protocol.Exactly(protocol.LowLoad, protocol.ToEnter, others(2), "2(K-1)"), "2 sqrt(N)"),
	published(protocol.Exactly(protocol.LowLoad, protocol.Messages, others(3), "3(K-1)"), "3 sqrt(N)"),
}

func published(c protocol.Claim, text string) protocol.Claim {
	c.Published = text
	return c
}
