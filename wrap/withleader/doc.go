// Package withleader runs an election beside an algorithm, one process of each in each member:
// the algorithm hears who leads and since which epoch, as event Lead.
//
// # Model
//
// That of both: the faults that both bear, and a detector that is good enough for each. A
// perfect one is good enough for an election, which only asks for one that may be wrong.
//
// # Properties
//
// Those of the algorithm, if it makes proper use of what the election promises: epochs of
// one process never decrease, an epoch has one leader, and in the end all live processes
// name the live one with the highest id. In between there may be several leaders, of
// different epochs. Nothing goes from the algorithm to the election.
//
// # Complexity
//
// The messages of the election are counted apart, as overhead. A frame is one bit larger
// than what it carries.
//
// # Deviations
//
// Of what the two say to the checker, their bounds and invariants are kept. Claims about
// counters and confluence are not: an epoch is a number of both, and none of the algorithms
// that run here makes any.
//
// # Checked
//
// By tests with two toys, and by the combinations: see packages centralised and tokenring.
package withleader
