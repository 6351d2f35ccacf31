package tokengme

import "github.com/poundlock/poundlock/protocol"

// The kinds of Message, with the fields that each carries.
const (
	Request  uint8 = iota // Number, Groups
	Pass                  // Token: TOKEN of the paper
	Release               // Number: the session of a token that is given back
	ResetRSN              // nothing
	ResetSSN              // Number: the secondary tokens issued since the last reset
	AckRSN                // nothing
	AckSSN                // nothing
	Ask                   // of a client: Number, its count of tries, and Groups
	Grant                 // to a client: Number, Groups: the one that is granted
	Leave                 // of a client: Number
)

var messages = []protocol.Message{
	Request: {Name: "REQUEST"}, Pass: {Name: "TOKEN"}, Release: {Name: "RELEASE"},
	ResetRSN: {Name: "RESET_RSN"}, ResetSSN: {Name: "RESET_SSN"}, AckRSN: {Name: "ACK_RSN"}, AckSSN: {Name: "ACK_SSN"},
	Ask:   {Name: "ASK", Overhead: true, From: protocol.OnlyClients},
	Grant: {Name: "GRANT", Overhead: true, From: protocol.OnlyMembers},
	Leave: {Name: "LEAVE", Overhead: true, From: protocol.OnlyClients},
}

// A Message is what processes send each other. Fields that a kind does not carry are zero.
type Message struct {
	Kind   uint8
	Number uint64
	Groups protocol.Groups
	Token  *Token // frozen once sent
}

// A Token lets its holder in, once it is safe, into one group.
type Token struct {
	Primary   bool
	Safe      bool           // all tokens of the session before have been given back
	Group     protocol.Group // type
	Session   uint64
	Old       uint64   // oldNoOfTokens: the secondary ones that the session before issued
	Fence     uint64   // the fencing token of who is inside: it grows with each session, and each entry that is alone in one
	Fulfilled []uint64 // by process: the number of its request that was granted last

	// The rest is that of the primary token.
	Issued uint64  // noOfTokensIssued: the secondary ones of its own session
	Queue  []Entry // at most one of each process, in the order of arrival
	Total  uint64  // bounded: secondary ones since sessions were reset last
	Served []bool  // bounded, by process: it got a token of this session
}

// An Entry is a request that waits in the queue.
type Entry struct {
	Process protocol.ID
	Number  uint64
	Groups  protocol.Groups
	Age     uint64 // sessions that began since it was queued
}

// nothing is the group of the first token: nobody can want it.
const nothing protocol.Group = protocol.Alone
