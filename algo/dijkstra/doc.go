// Package dijkstra implements the first solution of mutual exclusion for n processes: who
// finds that the one whose turn it is rests takes the turn, and who has the turn enters
// unless another one is about to.
//
// # Model
//
// N processes that share registers, of which k has every process as a writer; no failures,
// asynchronous. Registers are atomic.
//
// # Properties
//
// Mutual exclusion; no deadlock; progress: while somebody tries, somebody enters. No starvation
// freedom, and no order: one may wait for ever while another one enters again and again
// (TestStarvation finds such a run as a loop), and while one tries the others enter as often as
// they like (TestBypass).
//
// With safe registers exclusion still holds, and progress does not. At Li2 a process
// writes that c[i] is true although it may be so already, and again in each round. A read
// that overlaps this write may return false all the same, and then who has the turn looks again;
// both may go on like that for ever (TestSafe). What a read of k that overlaps a write
// returns does no harm: k only says who tries next, and c excludes.
//
// # Complexity
//
// Without contention n+3 reads and 6 writes of shared memory an entry, or n and 4 if k already
// names the process; 2n+1 registers. Under contention there is no bound.
//
// # Source
//
// E. W. Dijkstra, "Solution of a Problem in Concurrent Programming Control", CACM 8(9),
// 1965, doi:10.1145/365559.365617.
//
// # Deviations
//
// The registers b[i] and c[i] hold 1 for true and 0 for false. At Li3 k is read once
// more, as in the paper, where b[k] has a subscript that is shared. In safe registers a read
// of k may return 0, which names nobody: it stands for N.
//
// # Checked
//
// See TestHolds, TestStarvation, TestBypass and TestSafe for the bounds; TestMutants removes
// each guard.
package dijkstra
