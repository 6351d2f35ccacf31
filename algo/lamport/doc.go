// Package lamport implements the algorithm with which Lamport introduced logical clocks:
// every process keeps the queue of all requests, in one total order, and enters when its
// own is the first and nothing earlier can arrive any more. The form "multicast" beside it is
// totally ordered multicast of commands, with a state machine on top that executes them: a lock
// and an object, of which each process has a copy.
//
// # Model
//
// n processes, reliable FIFO channels, no failures, asynchronous.
//
// # Properties
//
// Mutual exclusion; no deadlock; starvation freedom; entries follow (timestamp, id), and so
// the happened-before order of the requests. FIFO channels are needed for all of them: what
// has arrived from a process says nothing of its earlier messages otherwise. The variant
// "unordered" shows it; with two processes it takes four steps until both are inside. The
// fencing token of an entry is its (timestamp, id) as one number.
//
// Multicast: all deliver the same commands in the same order, each once, nothing that was not sent,
// and nothing before what happened before it. So of the object holds what history.Weak judges:
// one-copy, contiguous, precedence, fresh, outcome. The variant "multicast-unordered" shows that this
// takes FIFO channels, too.
//
// # Complexity
//
// 3(n-1) messages an entry, 2(n-1) of them to enter; waiting two message delays,
// synchronization delay one; O(n) space; one integer a message. Multicast: n(n-1) messages a
// command, of which an entry takes two and each operation one; two delays; at most three integers.
//
// # Source
//
// L. Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System",
// CACM 21(7), 1978, doi:10.1145/359545.359563.
//
// # Deviations
//
// The clock advances before a message is sent, and takes over a later time that it
// receives; the paper advances it at every other event, too. A process's messages have
// increasing times either way, which is all that the algorithm needs, and models are
// smaller. Every request is acknowledged, even where the paper allows to leave it out
// because something later is on its way: so the number of messages is the same for all.
//
// # Checked
//
// See TestConformance, TestLiveness and TestMutants for the bounds, TestChannels for what
// channels are for. Multicast by itself, without a state machine, is in TestMulticast.
package lamport
