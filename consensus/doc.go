// Package consensus is Paxos as a wrapper: it turns an algorithm that proposes and hears of decisions
// (protocol.Propose, protocol.Decide) into one that exchanges messages instead, so that the same
// process runs on channels alone.
//
// Each instance is one run of the single-decree protocol. A process takes part in the instance after
// the last decision that it has heard of, and in none before it resumes (protocol.Resume) if it
// came back with nothing. An instance costs nothing while nobody proposes in it.
//
// Who has a proposal sends it to the coordinator, the least process that it trusts. The coordinator
// makes a ballot of a number that exceeds all that it has met: a majority promises to take part in
// no smaller one, and tells what it has accepted last; then a majority accepts the value of the
// largest of these ballots, or, if there is none, the proposal. Now it is decided, and everybody
// is told. A process that takes no part says so, and another one coordinates.
//
// Messages between two processes may be lost, provided that each of the two is told Suspect or Restore
// of the other afterwards: then they ask all others what was decided, and repeat what they have asked for.
// Where a process lags by more decisions than another one remembers, its algorithm hears Restore once
// more: if somebody else does not know them either, it must resume.
//
// # Model
//
// n processes, asynchronous, channels that need not be FIFO, reliable but for the above; a majority takes part and does
// not crash; an eventually perfect failure detector. A process that comes back has lost everything,
// and resumes with an instance in which its life before has taken no part.
//
// # Properties
//
// Validity: what is decided was proposed. Uniform agreement: no two processes decide differently,
// nor one that crashes afterwards. Termination, once no process is suspected by mistake: the
// coordinator that all trust goes on to larger ballots until one is not refused.
//
// # Complexity
//
// Without suspicions a decision takes five steps from a proposal elsewhere, four at the coordinator:
// up to 5(n-1) messages, and one for each further proposal.
//
// # Source
//
// L. Lamport, "The Part-Time Parliament", ACM Transactions on Computer Systems 16(2), 1998;
// "Paxos Made Simple", ACM SIGACT News 32(4), 2001.
package consensus
