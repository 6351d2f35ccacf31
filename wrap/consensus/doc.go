// Package consensus turns an algorithm that proposes and hears of decisions (protocol.Propose,
// protocol.Decide) into one that exchanges messages instead, so that the same process runs on
// channels alone. What decides is a core: Paxos (With) is here, and package wrap/consensus/raft has raft.
//
// Each instance is one run of the core, among those that take part. A process takes part in the
// instance after the last decision that it has heard of, and in none before it resumes
// (protocol.Resume) if it came back with nothing. An instance costs nothing while nobody proposes in it.
//
// A process that has a proposal sends it to the coordinator, the least process that it trusts, which has the
// core decide it, or another value that may be decided already. Now everybody is told. A process
// that takes no part says so, and another one coordinates. A process that is asked by another process tells it
// the decision when it hears of it, and of later ones as far as it keeps them.
//
// Paxos is the single-decree protocol: a coordinator makes a ballot of a number that exceeds all that
// it has met; a majority promises to take part in no smaller one, and tells what it has accepted
// last; then a majority accepts the value of the largest of these ballots, or, if there is none, the
// proposal.
//
// # Model
//
// n processes, asynchronous, channels that need not be FIFO; a majority takes part and does not
// crash; an eventually perfect failure detector. What was sent to each other may be lost where
// the two hear Suspect of each other after it, and Restore when messages arrive again: as with
// sessions that end. So may what a process has sent before it crashed. A process that comes
// back has lost everything, and resumes with an instance in which its life before has taken no part.
//
// # Properties
//
// Validity: what is decided was proposed. Uniform agreement: no two processes decide differently,
// nor one that crashes afterwards. Each process hears of the instances in their order, of each once.
// Termination, once no process is suspected by mistake: a process that waits for another one's
// ballot has answered it, and is told by that one when the ballot is over; so the coordinator that
// all trust goes on to larger ballots until one is not refused. Package consensustest tests all of
// this, for every implementation.
//
// # Complexity
//
// With the proposal at the coordinator Paxos decides after four steps, and everybody has heard of it
// after five, with 5(n-1) messages; a proposal elsewhere takes one step and one message more, and
// each further one another message. Suspicions make no difference, as long as all agree who
// coordinates. When a process suspects another one it sends one message (ASK) to compare its instance with
// that of the coordinator, and one to who is trusted again. Who coordinates and has heard of a decision from another process
// asks all that it trusts when it suspects one or is asked: what a crashed process has told it may be lost to them. A driver may repeat that somebody is suspected as often
// as it likes: a process is asked once in an instance, and again in it only where something may be lost since.
// It is in each one, for the next decision may be lost where the last one was not.
//
// A process keeps the last 64 decisions for those that lag behind, and at most 1024 envelopes of later
// instances; and of each of them at most 16 MiB, but the last decision in any case. Where envelopes are dropped
// it asks their senders (ASK) once it takes part in a later instance. In its instance Paxos keeps the proposal,
// and the values accepted and asked for.
//
// # Verification
//
// TestVoters explores Paxos where there is nothing else, with one suspicion by mistake: three processes of which one
// proposes, the first one and with TEST_LANE=long the second one, with ballots of at most two rounds, and two that both
// do, with at most four. TestVotersBroken forgets
// promises, or what was accepted: a model of three processes of which two propose finds two different decisions, 11
// steps from the start. TestConformance tries random worlds, each mistake in all scenarios that must find it; TestAsk and
// TestRelay are about what is asked.
//
// # Source
//
// L. Lamport, "The Part-Time Parliament", ACM Transactions on Computer Systems 16(2), 1998;
// "Paxos Made Simple", ACM SIGACT News 32(4), 2001.
package consensus
