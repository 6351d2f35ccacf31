// Package ringelection implements the election on a logical ring: an ELECTION goes round and
// collects ids, and its initiator announces the highest of them by a COORDINATOR that goes
// round too.
//
// # Model
//
// n processes, reliable channels (FIFO not needed), asynchronous: no bound on any delay.
// Processes crash and come back empty, as a new incarnation. The failure detector may be
// wrong, but tells of each crash and of each mistake in the end. Everybody can send to
// everybody; the successor of a process is the next one that it does not suspect. At first
// the highest id leads, and all know.
//
// # Properties
//
// In the end all live processes follow the live one with the highest id, whoever elected and
// however many did at once. The epochs of one process never decrease, and no two processes
// lead one epoch. Each ELECTION ends within n hops, also when its initiator has crashed. A
// partition has one leader on each side.
//
// # Complexity
//
// 2n messages when all are alive, n ELECTIONs and n COORDINATORs. 2(n-1) when the crashed
// leader is skipped; an ELECTION that its predecessor sends before it hears of the crash, as
// a probe, is one more. When all notice at once, 2n-3 ELECTIONs and n-1 COORDINATORs. An
// ELECTION carries up to n ids and two integers, a COORDINATOR two; O(n) integers of state.
//
// # Source
//
// G. N. Frederickson, N. A. Lynch, "Electing a Leader in a Synchronous Ring", JACM 34(1),
// 1987, doi:10.1145/7531.7919, is what the lecture names. The algorithm with a list of ids is
// that of A. S. Tanenbaum and M. van Steen, "Distributed Systems", section 5.4.
//
// # Deviations
//
// Epochs, pairs of round and leader: an ELECTION carries the one that it is to end, and its
// announcer begins the next one. Of several elections to end one epoch that of the highest
// initiator goes on, and others end where they meet it. What a process handed on it hands on
// again when it hears that its successor has crashed, or comes back. Who finds its own id in
// an ELECTION announces, so that one whose initiator has crashed ends at the first process
// after it. A process that recovers says so to all, by a message of its own: it does not know whose
// successor it is, and what its former life was handed is lost.
//
// # Checked
//
// TestHolds decides all properties, and that every election ends: for three processes with a
// crash, a crash and a recovery, a crash and a mistaken suspicion, for four with two crashes.
// TEST_LANE=long adds three processes with two mistaken suspicions, with two crashes and a
// recovery, and four with a crash and a recovery. TestMessages counts messages for 3 to 20
// processes. TestMutants removes each guard: none survives.
package ringelection
