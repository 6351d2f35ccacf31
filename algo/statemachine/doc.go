// Package statemachine is a replicated lock and a replicated object by the state machine approach: whatever
// users do, enter, operation or exit, is a command, all processes agree on one order of commands by consensus,
// and each executes them. It is what weak mutual exclusion (package wme) is compared with, which needs no
// consensus in nice runs.
//
// Consensus is Paxos with a coordinator that stays: the owner of the first ballot, process 0, needs no promises,
// and proposes each command for the next place in the order as it comes. Who accepts it tells all, or, in the
// form "announced", the coordinator, which tells all. If the coordinator is suspected, the first process that
// nobody before is trusted of begins a larger ballot: it asks a majority what it has accepted,
// proposes that again, and goes on.
//
// A section is inside from when those that entered before it have ended. A process that suspects the user that is inside
// asks for its end by a command, too. So all processes agree on whether an operation of that user comes before or
// after it; after it, the operation fails everywhere.
//
// The form "memory" is a second algorithm for Theorem 4 of Chen et al. 2005: a lock alone, of clients. They propose to servers, which
// accept, keep everything in memory and may restart empty; a place in the log is a section.
//
// # Model
//
// n processes of which a majority is up, asynchronous; channels are reliable and need not be FIFO; crashes; an
// eventually perfect failure detector, which may be wrong for any time, of users and of coordinators. A process
// that crashed does not come back, and a user that waits cannot give up.
//
// Memory: n servers with m of them up (more than half by default), of which fewer than 2m-n lose their memory in an epoch;
// clients that are not known beforehand, and do not crash.
//
// # Properties
//
// What is done to the object, as history.Weak judges it: one-copy, contiguous, precedence, fresh, outcome, failed.
// Users enter in the order of their commands. Once nobody is suspected by mistake any more: starvation freedom, and
// every exit and every operation has its answer.
//
// Memory: mutual exclusion. A client that tries alone gets in; of several some does, unless their pauses go on to be equal.
//
// # Complexity
//
// Without suspicions each command takes (N-1)(N+2) messages, (N-1)(N+1) if it is the coordinator's, and 3 steps; as
// announced 4(N-1), 3(N-1) if it is the coordinator's, and 4 steps. The coordinator knows of its own commands after 2
// steps. Where N is 2 or 3, a process and the coordinator are a majority: in the first form that process, too, knows
// after 2 steps. To replace the coordinator takes 2 steps, 2(N-1) messages, and a proposal for each place that is not
// decided. Nothing is ever dropped from the log: O(commands) space.
//
// Memory: 5N messages, and four delays to enter; O(clients that wait) space.
//
// # Source
//
// F. B. Schneider, "Implementing Fault-Tolerant Services Using the State Machine Approach: A Tutorial", ACM
// Computing Surveys 22(4), 1990, doi:10.1145/98163.98167. L. Lamport, "The Part-Time Parliament", ACM
// Transactions on Computer Systems 16(2), 1998, doi:10.1145/279227.279229. P. Romano and L. Rodrigues, "An Efficient
// Weak Mutual Exclusion Algorithm", 2009, section 5, compare with such a lock.
//
// # Deviations
//
// Who coordinates promises, accepts and executes like all others. What is accepted elsewhere in a later ballot counts
// as accepted at a new coordinator, too. A command that two coordinators gave a place is executed in the first one.
//
// # Checked
//
// TestConformance, exhaustive: 2 processes with a section and an operation each; 2 of which one has them, with one
// false suspicion; as announced also 3 of which one has them. More is beyond 256 MiB.
// TestStorm: random worlds of up to 5 processes with false suspicions, also of coordinators, and crashes of a minority; with
// TEST_LANE=long, 200 000 of each form.
// Memory: TestConformanceMemory, TestMemoryExclusion and TestTheorem4.
package statemachine
