// Package raymond implements Raymond's tree: the processes stand in a tree, the token is
// somewhere in it, and each process knows only which of its neighbours leads there.
//
// # Model
//
// N processes, each of which sends to its neighbours in the tree only; reliable channels (FIFO not needed), no
// failures, asynchronous. Process 0 is the root, and those below process i are ki+1 to ki+k, where option k is
// 2, or 1 for a line, or N-1 and more for a star. The last process has the token at first.
//
// # Properties
//
// Mutual exclusion; no deadlock; starvation freedom: the queue of each process is first come, first served,
// and a neighbour stands in it once at most. The order of tries is not kept: who passes the token on and has
// others in its queue sends a REQUEST behind it, and until that arrives the new holder enters again (TestOrder).
//
// # Complexity
//
// Without contention 2d messages an entry and 2d message delays to enter, d being the distance to the token:
// O(log N) with k > 1. Under load the token goes round the tree: 4(N-1)/N messages an entry. They carry
// nothing. A process stores a pointer, two bits, and a queue of k+2 at most.
//
// # Source
//
// K. Raymond, "A Tree-Based Algorithm for Distributed Mutual Exclusion", ACM TOCS 7(1), 1989,
// doi:10.1145/58564.59295.
//
// # Deviations
//
// The paper takes any tree; here it is a k-ary one. INITIALIZE, which turns the pointers to the first holder, and
// recovery are left out. So that no entry is free by chance, the first holder is who comes last at low load.
//
// # Checked
//
// TestConformance and TestTrees explore up to five processes with unlimited entries; TestMutants removes guards.
package raymond
