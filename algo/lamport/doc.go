// Package lamport implements the algorithm with which Lamport introduced logical clocks:
// every process keeps the queue of all requests, in one total order, and enters when its
// own is the first and nothing earlier can arrive any more.
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
// "unordered" shows it; with two processes it takes four steps until both are inside.
//
// # Complexity
//
// 3(n-1) messages an entry, 2(n-1) of them to enter; waiting two message delays,
// synchronization delay one; O(n) space; one integer a message.
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
// channels are for.
package lamport
