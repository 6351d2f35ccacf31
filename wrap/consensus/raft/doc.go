// Package raft is consensus by etcd's implementation of raft, as a core of package consensus: With
// is to raft what consensus.With is to Paxos. It is a package of its own so that nothing links that
// library unasked.
//
// Each instance has a raft group of its own, and its first committed entry with a value is the
// decision. So a process that came back with nothing is no member that lost its disk: it takes part
// in the groups of later instances only, and needs no new id and no change of the configuration. Nor
// is there a log to compact, since a log ends with its instance. The price is an election in each
// instance: three round trips to a decision, where a group with a leader takes one, and Paxos two. An
// algorithm that has nothing to decide in nice runs, as weak mutual exclusion, pays nothing there.
//
// # Driving the library
//
// The library's RawNode is a state machine, of which a process is made that has neither clocks nor
// chance. Followers have no ticks, so that the time-outs which the library draws by lot never end.
// Instead the coordinator stands for election, when it has a proposal and waits for no leader or
// candidate that it trusts; and again when its vote is lost. Pre-votes and checks of the quorum,
// which count on ticks, are off. All processes are voters by the state that a node begins with, so
// that no entry ever changes the configuration.
//
// Three things that the library leaves to time-outs are done by messages here:
//
// A process whose log is longer than the coordinator's never votes for it, so the coordinator may
// never be elected, though no other one stands. Who refuses a vote tells its last entry (VOTERESP), and
// gets the turn (TURN) where its log is longer. A chain of turns ends, for each log is longer than
// the one before.
//
// Messages of old terms are refused (OLD), with the present one; the library is silent there. Otherwise a
// deposed leader would never hear that it leads no more.
//
// Who lost a vote or the lead says so to the coordinator, and again to it if it answers what is over. So does who gave its turn
// to a process, or followed it, that crashes; and whoever gave its turn away and refuses its vote then waits for it no more.
//
// Where messages were lost, a leader has one tick when it is asked (ASK) of package consensus: the
// heartbeats that this makes are answered, and then the library repeats appends. A candidate stands
// again, in a new term. So no timer is needed.
//
// # Model, properties
//
// Those of package consensus. As long as two processes that coordinate suspect each other by mistake, or one the other, they may
// interrupt each other: only Paxos, which gives way to who is trusted, decides meanwhile, too. A message that no process would have sent can make the library panic,
// such as a heartbeat that commits what the log has not. Then it is as if this message had been lost
// and the node had been started again from what it has stored, which is safe, as every answer was
// stored first. Other lies of members are believed. A reader refuses what is malformed by itself.
//
// # State
//
// The library has no encoding of a node. The state of a follower is what it has stored, and its
// leader; that of others what they were when they stood for election and all that they have received
// since, which LoadState repeats. So equal states of candidates and leaders may have different
// bytes: a model checker works, but sees more states than there are. Paxos is the one to check.
//
// # Complexity
//
// With the proposal at the coordinator it decides after six steps, and everybody has heard of it
// after seven, with 7(n-1)+2(n/2-1) messages, n/2 rounded down; a proposal elsewhere takes one step
// and one message more, and each further one another message. Of the six, four elect a leader whose
// first entry has no value, before a second one has it.
//
// # Source
//
// D. Ongaro, J. Ousterhout, "In Search of an Understandable Consensus Algorithm", USENIX Annual
// Technical Conference, 2014; go.etcd.io/raft/v3.
package raft
