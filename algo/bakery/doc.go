// Package bakery implements Lamport's bakery: a process that comes takes a ticket with a number larger
// than all that it sees, and enters when nobody has a smaller one.
//
// # Model
//
// N processes that share registers, each of which one process writes and all read; no
// failures, asynchronous. Registers may be atomic or only safe: a read that overlaps a write
// returns anything. The form Awaiting, behind package registers, runs over messages, on reliable
// channels (FIFO not needed).
//
// # Properties
//
// Mutual exclusion; no deadlock; starvation freedom. First come, first served: a process that has left
// its doorway before another process begins with its own enters before it (FirstCome holds
// that as an invariant). All of it with safe registers too.
//
// It has no order of requests as by happened-before: what counts is the doorway, and two that
// are in their doorways together enter in either order.
//
// A popular argument for exclusion is wrong, though the algorithm is right: that when p_i is in
// its doorway and p_j in the bakery, then (num_j, j) < (num_i, i). If p_i read num_j before
// p_j took its ticket, p_i may have the smaller number, or the same one and win the tie;
// TestDoorwayAndBakery finds such a state. What excludes is that p_j waits for choosing[i] to become
// false, and only then looks at num[i]. True is the invariant "smallest", which is
// Lamport's: that of p_j inside and p_i in the bakery.
//
// # Complexity
//
// With registers 3(N-1) reads and 4 writes of shared memory an entry, without repeated ones;
// two registers a process. A ticket is larger by at most one than all others at its time, and
// so unbounded as long as somebody always waits.
//
// Over messages 6(N-1) an entry, or 6N if own registers were read by messages too, which
// our processes cannot since nobody sends to itself; 6 message delays to enter, or 2+4(N-1)
// for the loop as printed (option parallel=0); exact under contention too, except where
// readers poll.
//
// # Source
//
// L. Lamport, "A New Solution of Dijkstra's Concurrent Programming Problem", CACM 17(8),
// 1974, doi:10.1145/361082.361093.
//
// # Deviations
//
// The condition of the second wait, num[j] != 0 and (num[j], j) < (num[i], i), reads num[j]
// once, and num[i] is known where it was written. A process skips itself in the loops.
// Awaiting reads all numbers of the doorway at once, and by default waits for all
// others at once: the proof asks for no order among them.
//
// # Checked
//
// Tickets beyond 12 are not explored, so that with unlimited entries only properties of
// finite runs are decided. A read of num that overlaps a write finds 0 to N+1. The bounds
// are in TestHolds and TestFirstCome; TestMutants removes each guard.
package bakery
