// Package centralised implements the centralised algorithm: one process coordinates, lets
// one requester in at a time, and serves the others in the order in which their requests
// arrived.
//
// # Model
//
// n processes, of which the one with the highest id coordinates and may enter as well;
// reliable channels (FIFO not needed), no failures, asynchronous. In the form Successor
// processes crash, a perfect detector tells, and an election beside it names the coordinator.
//
// # Properties
//
// Mutual exclusion; no deadlock; starvation freedom. Entries follow the order in which
// requests arrive at the coordinator, not that in which they are made: a request may be
// overtaken on its way. They do follow the happened-before order of the requests, over the
// messages of the algorithm: whoever has heard of a request did so from the coordinator,
// which had queued it. A process that hears of one in another way overtakes it.
//
// # Complexity
//
// ENTER, GRANTED and RELEASED: 3 messages an entry, 2 of them to enter, and none for the
// coordinator. The variant "denied" answers a request that has to wait with DENIED: 4.
// Waiting and synchronization delay two message delays, one where the coordinator takes
// part. O(n) space at the coordinator, O(1) elsewhere; no integers in messages.
//
// # Source
//
// Folklore. L. Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System",
// CACM 21(7), 1978, doi:10.1145/359545.359563, begins its section on mutual exclusion with
// it. G. Ricart, A. K. Agrawala, CACM 24(1), 1981, compare their costs with it.
//
// # Deviations
//
// The coordinator sends itself no messages. A process does nothing about DENIED: it tells
// that the coordinator lives, which matters to detectors alone.
//
// # Checked
//
// TestConformance decides all properties for one process, and for three and four with
// unlimited entries. RELEASED may be overtaken by the next ENTER of its sender: the
// coordinator then queues who still counts as inside, and the RELEASED serves the queue.
//
// Successor, with a bully election beside it: TestSuccessor decides all properties for three
// processes with one crash and two, also with a ring election, and finite runs with time-outs
// that are too short. TEST_LANE=long adds two entries each with two crashes and four processes
// with one.
//
// TestMutants and TestSuccessorMutants remove each guard: none survives.
package centralised
